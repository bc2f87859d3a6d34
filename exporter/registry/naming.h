/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the trees of the kernel side: asks the namer what is due, and does what the state
 * machine of each tree (named.h) makes of the answers.
 *
 * Until it is known what a tree is nothing of it is shown, and nothing is lost: so no workload
 * changes its name for having been looked at too early. What cannot be read is tried again, some
 * seconds in all; then what every user may know must do, it is counted, and asked about later and
 * later, as it may be readable by then (a program that drops its rights only after it listens).
 *
 * No caller waits for that beyond its budget. Questions are asked one after the other: of those
 * that are due the ones first whose process has never kept the namer waiting. A process that does
 * is asked about again later and later, with more patience each time, as long as it lives. It is
 * shown by what every user may know (its unit, its container, or the name of a thread) until the
 * answer comes; so is one whose turn does not come soon (NAMED_PATIENCE_NS).
 */
#ifndef WORKLOAD_REGISTRY_NAMING_H
#define WORKLOAD_REGISTRY_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/limits.h"
#include "kernel/kernel.h"
#include "model/ledger.h"
#include "registry/named.h"
#include "registry/namer.h"

struct naming {
	struct kernel *kernel; /* borrowed, as all of these */
	struct ledger *ledger;
	struct namer *namer;
	uint32_t asked; /* slot of the open question; 0: none, or it has become free meanwhile */
	uint64_t busy_ns; /* since when the namer works on it, or on being ready again */
	uint64_t walk_ns; /* processes are walked again no earlier than this */
	struct named trees[TREES_MAX];
	bool left_other[TREES_MAX]; /* naming_take_left_other() */
};

void naming_init(struct naming *naming, struct kernel *kernel, struct ledger *ledger,
		 struct namer *namer);

/* Takes note of @tree, which is that of @slot now. */
void naming_look(struct naming *naming, uint32_t slot, const struct tree *tree, uint64_t now_ns);

/* Then, for all trees whose head has ended: looks for their heirs. 0 or -errno of the walk. */
int naming_find_heirs(struct naming *naming, uint64_t now_ns);

/*
 * Takes the answers that have come and asks what is due. Goes on for @budget_ns at most, while
 * answers come, but does not wait for one that has been asked for longer than that.
 */
void naming_exchange(struct naming *naming, uint64_t budget_ns);

/*
 * Whether the tree in @slot was in `other` and has become a workload of its own, since this was
 * asked last: what it has counted so far stays in `other`.
 */
bool naming_take_left_other(struct naming *naming, uint32_t slot);

/* Knows the tree by what there is: it has ended. */
void naming_settle(struct naming *naming, uint32_t slot, const struct tree *tree);

/* The slot is free. */
void naming_forget(struct naming *naming, uint32_t slot);

/* When to look again (CLOCK_MONOTONIC); UINT64_MAX: not before something happens, or is answered.
 */
uint64_t naming_due_ns(const struct naming *naming);

#endif
