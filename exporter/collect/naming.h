/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who the trees of the kernel side are: which process tells it, when it is asked, and when again.
 *
 * A tree is who its head is. The head is the founder, which may be gone before it is looked at: a
 * daemon listens, forks and lets its child go on. Then the eldest process that lives is the heir,
 * and the head from there on. A founder that ends later than that (NAMING_HEIR_NS) keeps its name:
 * what it leaves behind is what it has started, and no continuation of it.
 *
 * Until it is known who a tree is nothing of it is shown, and nothing is lost: so no workload
 * changes its name for having been looked at too early. What cannot be read is tried again, some
 * seconds in all; then what every user may know must do, it is counted, and asked about later and
 * later, as it may be readable by then (a program that drops its rights only after it listens).
 *
 * Nobody waits for that. Questions are asked one after the other: of those that are due the ones
 * first whose process has never kept the namer waiting. A process that does is asked about again
 * later and later, with more patience each time, as long as it lives. It is shown by what every
 * user may know (its unit, its container, or the name of a thread) until the answer comes; so is
 * one whose turn does not come soon (PATIENCE).
 */
#ifndef WORKLOAD_COLLECT_NAMING_H
#define WORKLOAD_COLLECT_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/kernel.h"
#include "model/ledger.h"
#include "security/namer.h"

#define NAMING_HEIR_NS 10000000000ULL
#define NAMING_PATIENCE_NS 1000000000ULL

/* What is known of a tree. */
struct named {
	bool known; /* handle is good */
	bool whole; /* the executable is known */
	bool orphan; /* the head has ended: an heir is looked for */
	bool heir; /* and found: eldest, which is the head from now on */
	bool refused; /* it is in `other`, as there was no room for its workload */
	uint32_t uid; /* the founder's */
	unsigned int tries; /* that have failed since it was known last */
	unsigned int late; /* answers that did not come in time, since then */
	unsigned int unread; /* answers without the executable, of the present program */
	uint32_t tgid; /* the head */
	uint64_t start_ns;
	uint64_t found_ns; /* when the tree was first seen */
	uint64_t due_ns; /* when to ask; 0: there is no need */
	struct tree_process eldest; /* that the last walk has met; tid 0: none */
	ledger_handle handle;
};

/* The tree in @slot has been in `other`, and is to become a workload of its own. */
typedef void (*naming_leaves_fn)(void *arg, uint32_t slot);

struct naming {
	struct kernel *kernel; /* borrowed, as all of these */
	struct ledger *ledger;
	struct namer *namer;
	naming_leaves_fn leaves_other;
	void *arg;
	uint32_t asked; /* slot of the open question; 0: none, or it has become free meanwhile */
	uint64_t busy_ns; /* since when the namer works on it, or on being ready again */
	uint64_t walk_ns; /* processes are walked again no earlier than this */
	struct named trees[TREES_MAX];
};

/* @leaves_other(@arg, ...) folds what the tree has counted so far. */
void naming_init(struct naming *naming, struct kernel *kernel, struct ledger *ledger,
		 struct namer *namer, naming_leaves_fn leaves_other, void *arg);

/* Takes note of @tree, which is that of @slot now. */
void naming_look(struct naming *naming, uint32_t slot, const struct tree *tree, uint64_t now_ns);

/* Then, for all trees whose head has ended: looks for their heirs. 0 or -errno of the walk. */
int naming_find_heirs(struct naming *naming, uint64_t now_ns);

/*
 * Takes the answers that have come and asks what is due. Goes on for @budget_ns at most, while
 * answers come, but does not wait for one that has been asked for longer than that.
 */
void naming_exchange(struct naming *naming, uint64_t budget_ns);

/* Knows the tree by what there is: it has ended. */
void naming_settle(struct naming *naming, uint32_t slot, const struct tree *tree);

/* The slot is free. */
void naming_forget(struct naming *naming, uint32_t slot);

/* When to look again (CLOCK_MONOTONIC); UINT64_MAX: not before something happens, or is answered.
 */
uint64_t naming_due_ns(const struct naming *naming);

#endif
