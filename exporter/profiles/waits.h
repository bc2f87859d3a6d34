/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The look of the kernel side at waits of threads, and at their page faults: of which trees it is
 * and from when to when it lasts, and what it tells of waits that are not over yet. Those that are
 * over, and faults, are in the sets (profiles/sets.h).
 *
 * One thread.
 */
#ifndef WORKLOAD_PROFILES_WAITS_H
#define WORKLOAD_PROFILES_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/limits.h"
#include "abi/profiles.h"
#include "kernel/loader.h"
#include "kernel/table.h"
#include "kernel/view.h"

#define WAITS_LOOKED_AT (STATES_OF_WAITS | LOOK_QUEUED) /* of the states of a look */
#define WAITS_TOLD_MAX 65536U /* between two calls of waits_take() */

struct waits {
	struct loader *loader; /* borrowed */
	struct view now; /* struct profiling */
	struct view trees; /* struct look */
	bool looks_now;
	uint64_t last_ns; /* when the last look at a tree began */
	struct wait_told *told; /* owned; in no set when it was read */
	size_t told_len, told_size;
	uint64_t lost; /* that found no room, ever */
};

/* 0; -ENOENT; -errno. waits_close() in any case. */
int waits_open(struct waits *waits, struct loader *loader);
void waits_close(struct waits *waits);

/* Begins or ends to look at waits; at first at those of no tree. */
void waits_look(struct waits *waits, bool look);

/*
 * At those waits of @tree that are spent in @states (struct look), while it looks at waits, and at
 * its faults of these states; 0: at none. Whether a look begins, as there is one more state: to it
 * all waits that last began before, and it begins for them with the next waits_read().
 */
bool waits_want(struct waits *waits, uint32_t tree, uint64_t states);

/* Reads what can be told of waits that last: up to now. Where it fails that is counted as lost, and
 * told the next time; but what finds no room is lost. */
void waits_read(struct waits *waits);

/*
 * Calls @row with a struct stack_key and a struct stack for all that was read: after the sets were
 * emptied, as the stacks of these waits are there.
 */
void waits_take(struct waits *waits, table_row_fn row, void *arg);

#endif
