/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/collector.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collect/self.h"

#define REFRESH_BUDGET_NS 15000000ULL /* for answers of the namer */

/* --- trees ----------------------------------------------------------------------------------- */

/* What features have counted of a tree that has left `other` stays there. */
static void tree_fold(const struct collector *collector, uint32_t tree)
{
	struct retirement retirement = {
		.ledger = collector->ledger,
		.handle = LEDGER_OTHER,
		.tree = tree,
	};

	if (!registry_take_left_other(collector->registry, tree))
		return;
	retirement.now_ns = clock_monotonic_ns();
	features_fold(collector->features, &retirement);
}

static void trees_fold(const struct collector *collector)
{
	for (uint32_t tree = 1; tree < TREES_MAX; tree++)
		tree_fold(collector, tree);
}

/* A tree that leaves `other` and ends is folded twice: into `other`, and into what it was last. */
static void tree_refresh(const struct collector *collector, uint32_t tree, uint64_t now_ns)
{
	struct retirement retirement = {
		.ledger = collector->ledger,
		.tree = tree,
		.now_ns = now_ns,
	};
	bool ended = registry_look(collector->registry, tree, now_ns, &retirement.handle);

	tree_fold(collector, tree);
	if (ended && !features_retire(collector->features, &retirement))
		registry_give_back(collector->registry, tree);
}

int collector_refresh(struct collector *collector, uint64_t now_ns, uint64_t budget_ns)
{
	int r;

	registry_answered(collector->registry);
	for (uint32_t tree = 1; tree < TREES_MAX; tree++)
		tree_refresh(collector, tree, now_ns);
	r = registry_seek(collector->registry, now_ns, budget_ns);
	trees_fold(collector);
	return r;
}

int collector_adopt(struct collector *collector, uint64_t now_ns, uint64_t budget_ns)
{
	int r = registry_adopt(collector->registry, budget_ns);

	collector_refresh(collector, now_ns, budget_ns);
	return r;
}

void collector_answered(struct collector *collector)
{
	registry_answered(collector->registry);
	trees_fold(collector);
}

/* --- features ------------------------------------------------------------------------------- */

static int collect_feature(const struct collector *collector, size_t id,
			   struct collection *collection)
{
	if (!features_on(collector->features, id))
		return -EOPNOTSUPP;
	if (!features_table[id]->collect)
		return 0;
	return features_table[id]->collect(collector->features->states[id], collection);
}

/* What no request can ask for, and is on, goes along with what it needs. */
static bool goes_along(const struct collector *collector, size_t id, const struct feature *with)
{
	const struct feature *feature = features_table[id];

	return !feature->collector && features_on(collector->features, id) &&
	       feature->plan.requires && !strcmp(feature->plan.requires, with->plan.name);
}

static int collect_with_others(const struct collector *collector, size_t id,
			       struct collection *collection)
{
	int r = collect_feature(collector, id, collection);

	for (size_t i = id + 1; i < features_len; i++) {
		int also = 0;

		if (goes_along(collector, i, features_table[id]))
			also = collect_feature(collector, i, collection);
		r = r ? r : also;
	}
	return r;
}

/*
 * The rows of `workload_scrape_collector_*`, of those that were asked for. What comes before them
 * since @start_ns is a part of the first: of discovery.
 */
static size_t collect_asked(struct collector *collector, unsigned int asked,
			    struct collection *collection, uint64_t start_ns)
{
	size_t len = 0;

	for (size_t id = 0; id < features_len; id++) {
		const struct feature *feature = features_table[id];
		bool is_asked = feature->collector && asked & 1U << id;
		uint64_t end_ns;
		int r = 0;

		if (is_asked || feature->always)
			r = collect_with_others(collector, id, collection);
		end_ns = clock_monotonic_ns();
		if (is_asked)
			collector->rows[len++] = (struct collector_row){
				.collector = feature->plan.name,
				.duration_ns = end_ns - start_ns,
				.success = r == 0,
			};
		start_ns = end_ns;
	}
	return len;
}

/* --- the exporter itself -------------------------------------------------------------------- */

static bool statistics_on(const char *proc_root)
{
	_cleanup_(cleanup_fclose) FILE *file = NULL;
	char path[256];

	snprintf(path, sizeof(path), "%s/sys/kernel/bpf_stats_enabled", proc_root);
	file = fopen(path, "re");
	return file && fgetc(file) == '1';
}

static void show_features(struct collector *collector, struct snapshot *snapshot)
{
	snapshot->maps = collector->maps;
	for (size_t id = 0; id < features_len; id++) {
		const struct feature *feature = features_table[id];
		void *state = collector->features->states[id];

		if (!collector->features->open[id])
			continue;
		if (feature->maps)
			snapshot->maps_len += feature->maps(state,
							    collector->maps + snapshot->maps_len);
		if (feature->show_self)
			feature->show_self(state, snapshot);
	}
}

static void collect_self(struct collector *collector, struct snapshot *snapshot)
{
	struct kernel *kernel = collector->kernel;

	kernel->lost[DROP_SKIPPED] = loader_skipped(kernel->loader);
	kernel->lost[DROP_WORKLOADS_FULL] = ledger_workloads_full(collector->ledger);
	kernel->lost[DROP_SERIES_FULL] = ledger_rows_full(collector->ledger);
	kernel_drops(kernel, collector->drops);
	collector->drops[DROP_TORN].dropped += ledger_torn(collector->ledger);
	snapshot->drops = collector->drops;
	snapshot->drops_len = DROP_REASONS;
	snapshot->http_refusals = collector->http_refusals;
	snapshot->http_refusals_len = collector->http_refusals_len;
	show_features(collector, snapshot);
	snapshot->probes = loader_probes(kernel->loader, &snapshot->probes_len);
	if (statistics_on(collector->proc_root))
		snapshot->programs = loader_programs(kernel->loader, &snapshot->programs_len);
	if (!self_read(collector->proc_root, &collector->process))
		snapshot->process = &collector->process;
}

bool collector_collect(struct collector *collector, unsigned int asked, uint64_t deadline_ns,
		       struct snapshot *snapshot)
{
	struct collection collection = {
		.kernel = collector->kernel,
		.ledger = collector->ledger,
		.registry = collector->registry,
		.budget = { .deadline_ns = deadline_ns },
	};
	struct budget *budget = &collection.budget;
	uint64_t start_ns = clock_monotonic_ns();

	collection.refreshed =
		BUDGET_STEP(budget, &collector->refresh,
			    collector_refresh(collector, budget->step_ns, REFRESH_BUDGET_NS));
	*snapshot = (struct snapshot){ .build = collector->build };
	snapshot->collectors = collector->rows;
	snapshot->collectors_len = collect_asked(collector, asked, &collection, start_ns);
	if (ledger_end(collector->ledger, clock_monotonic_ns())) {
		for (size_t i = 0; i < snapshot->collectors_len; i++)
			collector->rows[i].success = 0;
	}
	for (size_t id = 0; id < features_len; id++)
		if (features_table[id]->show && asked & 1U << id)
			features_table[id]->show(collector->features->states[id], collector->ledger,
						 snapshot);
	if (!collector->self_hidden)
		collect_self(collector, snapshot);
	return !collection.budget.cut;
}
