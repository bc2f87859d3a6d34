/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the name of one tree, and what is to be done next: a state machine without a
 * clock, a kernel or a process to ask. naming.h asks the questions, tells it what comes, and does
 * what it says.
 *
 * A tree is named after its head. The head is the founder, which may be gone before it is looked
 * at: a daemon listens, forks and lets its child go on. Then the eldest process that lives is the
 * heir, and the head from there on. A founder that ends later than that (NAMED_HEIR_NS) keeps its
 * name: what it leaves behind is what it has started, and no continuation of it.
 *
 * Times are CLOCK_MONOTONIC, as passed by the caller.
 */
#ifndef WORKLOAD_REGISTRY_NAMED_H
#define WORKLOAD_REGISTRY_NAMED_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/discovery.h"
#include "model/ledger.h"

#define NAMED_HEIR_NS 10000000000ULL
#define NAMED_PATIENCE_NS 1000000000ULL /* with an answer, until the public name is shown */

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
	uint64_t found_ns; /* when the tree was first seen; 0: there is none */
	uint64_t due_ns; /* when to ask; 0: there is no need */
	struct tree_process eldest; /* that the last walk has met; tid 0: none */
	ledger_handle handle;
};

/* What is to be done about the tree. */
enum named_step {
	NAMED_WAIT, /* nothing now */
	NAMED_KNOW, /* know it by the answer that has come */
	NAMED_KNOW_PUBLIC, /* by what every user may know: no other answer will come */
	NAMED_KNOW_COMM, /* by the name of its founder's thread: no process could be read */
	NAMED_LATE, /* count an answer that did not come in time */
	NAMED_INHERIT, /* make tgid, which started at start_ns, the head */
};

/* --- what happens ---------------------------------------------------------------------------- */

/* Begins anew, unless @tree is the one that it is about already. */
void named_look(struct named *named, const struct tree *tree, uint64_t now_ns);

/* Whether it is about @tree. */
bool named_is(const struct named *named, const struct tree *tree);

/*
 * The head has called exec, or has @ended. Whether it is to be asked about anew; then the answer to
 * an open question may be about what was before.
 */
bool named_changed(struct named *named, bool exec, bool ended, uint64_t now_ns);

/* There is room for workloads again: asks at once, if the tree was refused and nothing is asked. */
void named_room(struct named *named, uint64_t now_ns);

/*
 * The answer to the question about it: 0, or as namer_take() and namer_ask() fail. @lives: it has
 * processes.
 */
enum named_step named_answer(struct named *named, int r, bool lives, uint64_t now_ns);

/* No process of it can be read any more: what is known stays known. */
enum named_step named_settle(struct named *named);

/* It is shown as @handle from now on; @refused: which is `other`, for want of room. */
void named_show(struct named *named, ledger_handle handle, bool refused);

/*
 * What is shown is the answer, with the executable if it is @whole. Whether it is to be counted
 * that the executable could not be read.
 */
bool named_know(struct named *named, bool whole, uint64_t now_ns);

/* --- heirs ----------------------------------------------------------------------------------- */

/* Before a walk over processes: none has been met. */
void named_walk(struct named *named);

/* The walk meets @process, of this tree. */
void named_meet(struct named *named, const struct tree_process *process);

/* Whether an heir is due. */
bool named_heir_is_due(const struct named *named, uint64_t now_ns);

/* After the walk, where an heir is due. */
enum named_step named_inherit(struct named *named, bool lives, uint64_t now_ns);

/* --- questions ------------------------------------------------------------------------------- */

/* Whether there is a process to be asked about; else its heir has to be found before. */
bool named_has_head(const struct named *named);

/* Whether the answer has been waited for long enough: the public name is to be shown. */
bool named_shows_public(const struct named *named, uint64_t now_ns);

/* The thread that tells what the tree is: its number, and when it started. */
uint32_t named_pid(const struct named *named);
uint64_t named_pid_start_ns(const struct named *named);

/* How long the answer may take: longer each time that it was late. */
uint64_t named_answer_ns(const struct named *named);

/* Of those in @trees (TREES_MAX) that are due the one that is asked about first; 0: none is. */
uint32_t named_next(const struct named *trees, uint64_t now_ns);

/*
 * When something is to be done about it. @ready: a question could be asked now; @walk_ns: there is
 * no walk before. UINT64_MAX: not before something happens.
 */
uint64_t named_due_ns(const struct named *named, bool ready, uint64_t walk_ns);

#endif
