/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel.h"

#include <stddef.h>

#include "identity/timens.h"
#include "abi/quotas.h"
#include "abi/shares.h"
#include "kernel/loader.h"
#include "kernel/table.h"

int kernel_open(struct kernel *kernel, struct loader *loader, const char *proc_root)
{
	struct timens timens;
	int r;

	timens_read(proc_root, &timens);
	*kernel = (struct kernel){
		.loader = loader,
		.sizes = *loader_sizes(loader),
		.ahead_ns = timens.monotonic_ns,
		.free_trees = loader_map_fd(loader, "free_trees"),
	};
	r = view_open(&kernel->trees, loader, "trees", sizeof(struct tree));
	if (!r)
		r = view_open(&kernel->shares, loader, "user_shares", sizeof(struct user_share));
	if (!r)
		r = view_open(&kernel->quotas, loader, "quotas", sizeof(struct quota));
	if (!r)
		r = view_open(&kernel->drops, loader, "drops", sizeof(uint64_t));
	if (r)
		kernel_close(kernel);
	return r;
}

void kernel_close(struct kernel *kernel)
{
	view_close(&kernel->trees);
	view_close(&kernel->shares);
	view_close(&kernel->quotas);
	view_close(&kernel->drops);
}

bool kernel_is_usable(struct kernel *kernel)
{
	struct walk_cursor begin = { 0 };
	struct tree tree;
	bool usable;

	usable = !table_read(kernel->trees.fd, 0, &tree) &&
		 loader_walk_some(kernel->loader, WALK_LISTENERS, &begin, 0) >= 0;
	walk_cursor_reset(&begin);
	return usable;
}

static uint64_t *drop_cell(struct kernel *kernel, uint32_t tree, unsigned int reason)
{
	return view_at(&kernel->drops, (size_t)tree * DROP_REASONS + reason);
}

void kernel_drop(struct kernel *kernel, uint32_t tree, enum drop_reason reason)
{
	uint64_t *cell = drop_cell(kernel, tree, reason);

	if (cell)
		__atomic_fetch_add(cell, 1, __ATOMIC_RELAXED);
	else
		kernel->lost[reason]++;
}

void kernel_drops_of(struct kernel *kernel, uint32_t tree, uint64_t sums[static DROP_REASONS])
{
	for (unsigned int reason = 0; reason < DROP_REASONS; reason++) {
		const uint64_t *cell = drop_cell(kernel, tree, reason);

		if (cell)
			sums[reason] += __atomic_load_n(cell, __ATOMIC_RELAXED);
	}
}

uint64_t kernel_lost(struct kernel *kernel, enum drop_reason reason)
{
	uint64_t sum = kernel->lost[reason];

	for (uint32_t tree = 0; tree < TREES_MAX; tree++) {
		const uint64_t *cell = drop_cell(kernel, tree, reason);

		sum += cell ? __atomic_load_n(cell, __ATOMIC_RELAXED) : 0;
	}
	return sum;
}

void kernel_drops_take(struct kernel *kernel, uint32_t tree, uint64_t sums[static DROP_REASONS])
{
	for (unsigned int reason = 0; reason < DROP_REASONS; reason++) {
		uint64_t *cell = drop_cell(kernel, tree, reason), taken;

		if (!cell || !*cell)
			continue;
		taken = __atomic_exchange_n(cell, 0, __ATOMIC_RELAXED);
		kernel->lost[reason] += taken;
		sums[reason] += taken;
	}
}

void kernel_drops(struct kernel *kernel, struct drop_row rows[static DROP_REASONS])
{
	static const char *const labels[] = {
#define DROP(id, label, help) label,
		DROP_LIST(DROP)
#undef DROP
	};
	uint64_t sums[DROP_REASONS] = { 0 };

	for (uint32_t tree = 0; tree < TREES_MAX; tree++)
		kernel_drops_of(kernel, tree, sums);
	for (unsigned int i = 0; i < DROP_REASONS; i++)
		rows[i] = (struct drop_row){ labels[i], kernel->lost[i] + sums[i] };
}
