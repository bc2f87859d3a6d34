/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel side samples while profiles are taken: CPU time, by the clock of each CPU, page
 * faults, and waits; and what it has counted of them.
 *
 * One thread.
 */
#ifndef WORKLOAD_PROFILES_SAMPLING_H
#define WORKLOAD_PROFILES_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/loader.h"
#include "kernel/table.h"
#include "profiles/sets.h"
#include "profiles/waits.h"

#define SAMPLING_PROGRAMS 3U /* that perf events run */

struct sampling {
	struct loader *loader; /* borrowed */
	struct sets sets;
	struct waits waits;
	bool runs[SAMPLING_PROGRAMS];
	bool behind; /* sets could not be read after the waits that last */
};

/* 0; -ENOENT: the feature is off; -errno. sampling_close() in any case. */
int sampling_open(struct sampling *sampling, struct loader *loader);
void sampling_close(struct sampling *sampling);

/* What is sampled by perf events from now on: CPU time and faults of those states, each as 1 << it
 * (struct stack_key). 0 or -errno. */
int sampling_run(struct sampling *sampling, uint64_t states);

/* Whether anything is sampled. */
bool sampling_runs(const struct sampling *sampling);

/* Calls @row with every struct stack_key and struct stack since this was called last; if @lasting
 * also with what can be told of waits that are not over. 0; -EAGAIN: not with all of them, call
 * again; -errno. */
int sampling_take(struct sampling *sampling, bool lasting, table_row_fn row, void *arg);

/* Page faults, or samples of all else, and waits that they stand for or pieces of them, for which
 * there was no room in the kernel, or on the way from it; ever. */
uint64_t sampling_lost(struct sampling *sampling, bool faults);

#endif
