/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector: one scrape's snapshot, from the kernel's tables through the ledger. Each feature
 * reads its own; here is what all of them have in common.
 */
#ifndef WORKLOAD_COLLECT_COLLECTOR_H
#define WORKLOAD_COLLECT_COLLECTOR_H

#include <stdbool.h>

#include "base/budget.h"
#include "features/features.h"
#include "kernel/kernel.h"
#include "model/ledger.h"
#include "model/snapshot.h"
#include "registry/registry.h"

struct collector {
	struct kernel *kernel; /* borrowed, as all of these */
	const struct features *features;
	struct registry *registry;
	struct ledger *ledger;
	const struct build_row *build;
	const char *proc_root;
	bool self_hidden; /* nothing is told of the exporter itself but its version */
	const struct http_refusal_row *http_refusals; /* NULL while nothing is served */
	size_t http_refusals_len;
	struct budget_cost refresh; /* of a scrape; zeroed at first */

	/* What the last snapshot points to. */
	struct drop_row drops[DROP_REASONS];
	struct map_row maps[LOADER_FEATURES_MAX * FEATURE_MAPS_MAX];
	struct collector_row rows[LOADER_FEATURES_MAX];
	struct process_row process;
};

/*
 * Brings the registry up to date (registry_look(), registry_seek()), and folds what features keep
 * of trees that have ended or left `other`. What registry_seek() returns.
 */
int collector_refresh(struct collector *collector, uint64_t now_ns, uint64_t budget_ns);

/* The first refresh, with registry_adopt(), whose failure it returns. */
int collector_adopt(struct collector *collector, uint64_t now_ns, uint64_t budget_ns);

/* Takes what the namer has answered, when its descriptor is readable. */
void collector_answered(struct collector *collector);

/*
 * Takes a snapshot of @asked, collectors as a mask of features.h; what belongs to others is neither
 * read nor in it. What fails, or would not be done by @deadline_ns (CLOCK_MONOTONIC), is left out,
 * visibly: its collector row says success 0. Returns whether the deadline was late enough for
 * everything.
 *
 * The snapshot points into @collector, its ledger and the loader: good until the next call.
 */
bool collector_collect(struct collector *collector, unsigned int asked, uint64_t deadline_ns,
		       struct snapshot *snapshot);

#endif
