/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector: one scrape's snapshot, from the kernel's tables through the ledger. The one place
 * that knows which parts a scrape has.
 */
#ifndef WORKLOAD_COLLECTOR_H
#define WORKLOAD_COLLECTOR_H

#include <stdbool.h>

#include "ledger.h"
#include "parts.h"
#include "read/kernel.h"
#include "read/mutexes.h"
#include "registry.h"
#include "snapshot.h"

#define COLLECTOR_PROGRAMS_MAX 32

/* What can take long, in this order; each is left out if the budget of a scrape is too small. */
enum collector_step { STEP_REFRESH, STEP_SWEEP, STEP_REQUESTS, STEP_THREADS, COLLECTOR_STEPS };

struct collector {
	struct kernel *kernel; /* borrowed, as all of these */
	struct registry *registry;
	struct ledger *ledger;
	const struct build_row *build;
	struct mutexes *mutexes; /* NULL: no probes on mutexes */
	const char *proc_root;
	bool self_hidden; /* nothing is told of the exporter itself but its version */
	const struct http_refusal_row *http_refusals; /* NULL while nothing is served */
	size_t http_refusals_len;
	uint64_t swept_ns; /* when the sockets were last swept */
	uint64_t cost_ns[COLLECTOR_STEPS]; /* what each step is expected to take */

	/* What the last snapshot points to. */
	struct drop_row drops[DROP_REASONS];
	struct map_row maps[KERNEL_MAPS];
	struct program_row programs[COLLECTOR_PROGRAMS_MAX];
	struct collector_row parts[PARTS];
	struct mutex_row mutexes_by_result[MUTEX_RESULTS];
	struct process_row process;
};

/* Gauges of sockets are not taken more often than this. */
#define COLLECTOR_SWEEP_NS 1000000000ULL

/*
 * Takes a snapshot of @parts (a mask of parts.h); what belongs to others is neither read nor in it.
 * What fails, or would not be done by @deadline_ns (CLOCK_MONOTONIC), is left out, visibly: its
 * collector row says success 0. Returns whether the deadline was late enough for everything.
 *
 * The snapshot points into @collector and its ledger: good until the next call.
 */
bool collector_collect(struct collector *collector, unsigned int parts, uint64_t deadline_ns,
		       struct snapshot *snapshot);

#endif
