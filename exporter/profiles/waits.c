/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

int waits_open(struct waits *waits, struct loader *loader)
{
	int r;

	*waits = (struct waits){ .loader = loader };
	r = view_open(&waits->now, loader, "profiling", sizeof(struct profiling));
	if (!r)
		r = view_open(&waits->trees, loader, "looked_at", sizeof(struct look));
	if (!r && (!view_at(&waits->now, 0) || !view_at(&waits->trees, TREES_MAX - 1)))
		r = -ENOMEM;
	return r;
}

void waits_close(struct waits *waits)
{
	view_close(&waits->trees);
	view_close(&waits->now);
	free(waits->told);
	*waits = (struct waits){ 0 };
}

void waits_look(struct waits *waits, bool look)
{
	struct profiling *now = view_at(&waits->now, 0);

	waits->looks_now = look;
	__atomic_store_n(&now->looks, look, __ATOMIC_SEQ_CST);
	waits->told_len = 0;
	for (uint32_t tree = 0; !look && tree < TREES_MAX; tree++)
		waits_want(waits, tree,
			   ((struct look *)view_at(&waits->trees, tree))->states &
				   ~WAITS_LOOKED_AT);
}

/* Two looks never begin at the same time. */
static uint64_t look_begin(struct waits *waits)
{
	uint64_t now_ns = clock_monotonic_ns();

	waits->last_ns = now_ns > waits->last_ns ? now_ns : waits->last_ns + 1;
	return waits->last_ns;
}

bool waits_want(struct waits *waits, uint32_t tree, uint64_t states)
{
	struct look *look = view_at(&waits->trees, tree);
	bool begins = states & ~look->states & WAITS_LOOKED_AT;

	__atomic_store_n(&look->states, states, __ATOMIC_SEQ_CST);
	if (begins || !(states & WAITS_LOOKED_AT))
		__atomic_store_n(&look->since_ns, begins ? look_begin(waits) : 0, __ATOMIC_SEQ_CST);
	return begins;
}

static void told_add(void *arg, const void *row)
{
	struct waits *waits = arg;
	struct wait_told *told = array_grow(waits->told, waits->told_len, &waits->told_size,
					    WAITS_TOLD_MAX, sizeof(*told));

	if (!told) {
		waits->lost++;
		return;
	}
	waits->told = told;
	memcpy(&told[waits->told_len++], row, sizeof(*told));
}

void waits_read(struct waits *waits)
{
	loader_walk(waits->loader, WALK_WAITS); /* some may have become waits for work */
	if (loader_walk_rows(waits->loader, WALK_LASTING, told_add, waits))
		waits->lost++;
}

void waits_take(struct waits *waits, table_row_fn row, void *arg)
{
	for (size_t i = 0; i < waits->told_len; i++) {
		const struct wait_told *told = &waits->told[i];
		struct stack stack = { .end = STACK_BEGAN_BEFORE };

		if (told->woken)
			stack.queued_ns = told->ns;
		else
			stack.ns = told->ns;
		memcpy(stack.pool, told->pool, sizeof(stack.pool));
		row(arg, &told->key, &stack);
	}
	waits->told_len = 0;
}
