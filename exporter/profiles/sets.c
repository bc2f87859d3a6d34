/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/sets.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/units.h"

/* A program is in a set for microseconds; longer only while its virtual CPU stands still, or, one
 * of faults, while it is interrupted. */
#define LEAVE_NS (2 * NS_PER_MS)

int sets_open(struct sets *sets, const struct loader *loader)
{
	static const char *const names[STACK_SETS] = { "stacks_0", "stacks_1" };
	int r;

	*sets = (struct sets){ 0 };
	for (unsigned int i = 0; i < STACK_SETS; i++) {
		sets->stacks[i] = loader_map_fd(loader, names[i]);
		if (sets->stacks[i] < 0)
			return sets->stacks[i];
	}
	r = view_open(&sets->now, loader, "profiling", sizeof(struct profiling));
	if (!r)
		r = view_open(&sets->cpus, loader, "profiled", sizeof(struct profiled));
	if (!r && (!view_at(&sets->now, 0) || !view_at(&sets->cpus, sets->cpus.entries - 1)))
		r = -ENOMEM;
	return r;
}

void sets_close(struct sets *sets)
{
	view_close(&sets->now);
	view_close(&sets->cpus);
}

static bool set_is_left(struct sets *sets, uint64_t set)
{
	for (size_t row = 0; row < sets->cpus.entries; row++) {
		const struct profiled *profiled = view_at(&sets->cpus, row);
		uint64_t left = __atomic_load_n(&profiled->left[set], __ATOMIC_SEQ_CST);

		if (__atomic_load_n(&profiled->entered[set], __ATOMIC_SEQ_CST) != left)
			return false;
	}
	return true;
}

/* A program that enters a set looks again which one it is: so none enters that is not seen here. */
static int set_wait(struct sets *sets, uint64_t set)
{
	uint64_t until_ns = clock_monotonic_ns() + LEAVE_NS;

	while (!set_is_left(sets, set)) {
		if (clock_monotonic_ns() >= until_ns)
			return -EAGAIN;
		sched_yield();
	}
	return 0;
}

/* Reads the set that is not written to. */
static int set_take(struct sets *sets, table_row_fn row, void *arg)
{
	static const struct table_shape shape = { sizeof(struct stack_key), sizeof(struct stack) };
	uint64_t set = ((struct profiling *)view_at(&sets->now, 0))->set ^ 1;
	int r = set_wait(sets, set);

	if (!r)
		r = table_take_all(sets->stacks[set], &shape, row, arg);
	if (!r)
		sets->unread = false;
	return r;
}

int sets_take(struct sets *sets, table_row_fn row, void *arg)
{
	struct profiling *now = view_at(&sets->now, 0);
	int r = sets->unread ? set_take(sets, row, arg) : 0;

	if (r)
		return r;
	__atomic_store_n(&now->set, now->set ^ 1, __ATOMIC_SEQ_CST);
	sets->unread = true;
	return set_take(sets, row, arg);
}

uint64_t sets_lost(struct sets *sets, bool faults)
{
	uint64_t lost = 0;

	for (size_t row = faults; row < sets->cpus.entries; row += PROFILED_ROWS) {
		const struct profiled *profiled = view_at(&sets->cpus, row);

		for (unsigned int set = 0; set < STACK_SETS; set++)
			lost += __atomic_load_n(&profiled->lost[set], __ATOMIC_RELAXED);
	}
	return lost;
}
