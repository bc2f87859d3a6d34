/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector: one scrape's snapshot, from the kernel's tables through the ledger. The one place
 * that knows which parts a scrape has.
 */
#ifndef WORKLOAD_COLLECTOR_H
#define WORKLOAD_COLLECTOR_H

#include "ledger.h"
#include "read/kernel.h"
#include "registry.h"
#include "snapshot.h"

#define COLLECTOR_PARTS 3
#define COLLECTOR_PROGRAMS_MAX 32

struct collector {
	struct kernel *kernel; /* borrowed, as all of these */
	struct registry *registry;
	struct ledger *ledger;
	const struct build_row *build;
	const char *proc_root;
	uint64_t swept_ns; /* when the sockets were last swept */

	/* What the last snapshot points to. */
	struct drop_row drops[DROP_REASONS];
	struct map_row maps[KERNEL_MAPS];
	struct program_row programs[COLLECTOR_PROGRAMS_MAX];
	struct collector_row parts[COLLECTOR_PARTS];
	struct process_row process;
};

/* Gauges of sockets are not taken more often than this. */
#define COLLECTOR_SWEEP_NS 1000000000ULL

/*
 * Takes a snapshot. What fails is left out, visibly (its collector row says success 0). The
 * snapshot points into @collector and its ledger: good until the next call.
 */
void collector_collect(struct collector *collector, struct snapshot *snapshot);

#endif
