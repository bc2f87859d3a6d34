/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two sets of stacks of the kernel side, read in turns: programs write one of them while the
 * other is read and emptied, so that no sample is lost or counted twice.
 *
 * One thread.
 */
#ifndef WORKLOAD_PROFILES_SETS_H
#define WORKLOAD_PROFILES_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/profiles.h"
#include "kernel/table.h"
#include "kernel/view.h"

struct sets {
	struct view now; /* struct profiling */
	struct view cpus; /* struct profiled: PROFILED_ROWS of each */
	int stacks[STACK_SETS]; /* descriptors, borrowed */
	bool unread; /* the set that is not written to has not been emptied */
};

/* 0; -ENOENT: there are no sets; -errno. sets_close() in any case. */
int sets_open(struct sets *sets, const struct loader *loader);
void sets_close(struct sets *sets);

/*
 * Calls @row with every struct stack_key and struct stack that was counted since this was called
 * last. 0; -EAGAIN: a program, that is interrupted or whose CPU stands still, has not left the set
 * yet: nothing is lost, call again later; -errno of reading: the same.
 */
int sets_take(struct sets *sets, table_row_fn row, void *arg);

/* Page faults, or samples of all else, for which there was no room in the sets, ever. */
uint64_t sets_lost(struct sets *sets, bool faults);

#endif
