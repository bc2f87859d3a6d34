/* SPDX-License-Identifier: Apache-2.0 */
#include "collector.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "discovery/self.h"
#include "read/requests.h"
#include "read/threads.h"
#include "read/trees.h"

static bool feature_on(const struct collector *collector, enum feature_id id)
{
	return loader_feature(collector->kernel->loader, id)->on;
}

/* Rows of `other` are nobody's and mostly empty: they are shown once something is in them. */
static bool all_zero(const void *row, size_t size)
{
	const char *bytes = row;

	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

static bool workload_of(const struct collector *collector, uint32_t tree, const void *row,
			size_t size, ledger_handle *handle)
{
	if (tree)
		return registry_find(collector->registry, tree, handle);
	*handle = LEDGER_OTHER;
	return !all_zero(row, size);
}

/* --- steps: what can take long ------------------------------------------------------------- */

static int step_refresh(struct collector *collector, uint64_t now_ns)
{
	return registry_refresh(collector->registry, now_ns);
}

static int step_sweep(struct collector *collector, uint64_t now_ns)
{
	collector->swept_ns = now_ns;
	return requests_sweep(collector->kernel);
}

static int step_requests(struct collector *collector, uint64_t now_ns)
{
	struct endpoint_row row;
	ledger_handle handle;
	uint32_t tree;
	uint16_t port;
	int r = 0;

	(void)now_ns; /* the gauges are as old as the sweep that filled them, ages included */
	ledger_begin_endpoints(collector->ledger);
	for (uint32_t slot = 0; slot < collector->kernel->sizes.endpoints; slot++) {
		int found = requests_read(collector->kernel, slot, collector->swept_ns, &tree,
					  &port, &row);

		if (found < 0)
			r = found;
		if (found == 1 && workload_of(collector, tree, &row, sizeof(row), &handle))
			ledger_add_endpoint(collector->ledger, handle, port, &row);
	}
	return r;
}

static int step_threads(struct collector *collector, uint64_t now_ns)
{
	char name[THREADS_NAME_LEN];
	ledger_handle handle;
	struct pool_row row;
	uint32_t tree;
	int r = 0;

	ledger_begin_pools(collector->ledger);
	for (uint32_t slot = 0; slot < collector->kernel->sizes.pools; slot++) {
		int found = threads_read(collector->kernel, slot, now_ns, &tree, name, &row);

		if (found < 0)
			r = found;
		if (found == 1 && workload_of(collector, tree, &row, sizeof(row), &handle))
			ledger_add_pool(collector->ledger, handle, name, &row);
	}
	return r;
}

/* A scrape in progress. */
struct collection {
	struct collector *collector;
	uint64_t deadline_ns;
	bool cut; /* a step was left out for want of time */
};

/*
 * A step is expected to take as long as it took last. Each time that is too long it is expected to
 * take a quarter less, so that it is tried again, if nobody else has the time for it.
 */
static int collect_step(struct collection *collection, enum collector_step step)
{
	static int (*const steps[])(struct collector * collector, uint64_t now_ns) = {
		[STEP_REFRESH] = step_refresh,
		[STEP_SWEEP] = step_sweep,
		[STEP_REQUESTS] = step_requests,
		[STEP_THREADS] = step_threads,
	};
	uint64_t *cost_ns = &collection->collector->cost_ns[step], now_ns = clock_monotonic_ns();
	int r;

	if (now_ns >= collection->deadline_ns || *cost_ns > collection->deadline_ns - now_ns) {
		*cost_ns -= *cost_ns / 4;
		collection->cut = true;
		return -ETIME;
	}
	r = steps[step](collection->collector, now_ns);
	*cost_ns = clock_monotonic_ns() - now_ns;
	return r;
}

/* --- parts: what users can ask for --------------------------------------------------------- */

/* Also for scrapes that do not ask for it: the others need to know whose everything is. */
static int collect_discovery(struct collection *collection)
{
	struct collector *collector = collection->collector;
	int r = collect_step(collection, STEP_REFRESH);
	ledger_handle handle;
	struct tree tree;

	ledger_begin(collector->ledger);
	for (uint32_t slot = 1; slot < TREES_MAX; slot++)
		if (registry_find(collector->registry, slot, &handle) &&
		    trees_read(collector->kernel, slot, &tree) == 1)
			ledger_add_processes(collector->ledger, handle, tree.processes);
	return r;
}

/* Without a sweep the counters are right, but the gauges are those of a sweep before. */
static int collect_requests(struct collection *collection)
{
	struct collector *collector = collection->collector;
	int swept = 0, r;

	if (!feature_on(collector, FEATURE_REQUESTS))
		return -EOPNOTSUPP;
	if (clock_monotonic_ns() - collector->swept_ns >= COLLECTOR_SWEEP_NS)
		swept = collect_step(collection, STEP_SWEEP);
	r = collect_step(collection, STEP_REQUESTS);
	return r ? r : swept;
}

static int collect_threads(struct collection *collection)
{
	struct mutexes *mutexes = collection->collector->mutexes;
	int attached = 0, r;

	if (!feature_on(collection->collector, FEATURE_THREADS))
		return -EOPNOTSUPP;
	if (mutexes)
		attached = mutexes_refresh(mutexes, clock_monotonic_ns());
	r = collect_step(collection, STEP_THREADS);
	return r ? r : attached;
}

/* The rows of `workload_scrape_collector_*`, of the parts that were asked for. */
static size_t collect_parts(struct collection *collection, unsigned int parts)
{
	static int (*const collects[])(struct collection * collection) = {
		[PART_DISCOVERY] = collect_discovery,
		[PART_REQUESTS] = collect_requests,
		[PART_THREADS] = collect_threads,
	};
	struct collector_row *rows = collection->collector->parts;
	size_t len = 0;

	for (int part = 0; part < PARTS; part++) {
		bool asked = parts & 1U << part;
		uint64_t start_ns = clock_monotonic_ns();
		int r = asked || part == PART_DISCOVERY ? collects[part](collection) : 0;

		if (asked)
			rows[len++] = (struct collector_row){
				.collector = part_name((enum part)part),
				.duration_ns = clock_monotonic_ns() - start_ns,
				.success = r == 0,
			};
	}
	return len;
}

/* --- the exporter itself ------------------------------------------------------------------- */

static bool statistics_on(const char *proc_root)
{
	_cleanup_(cleanup_fclose) FILE *file = NULL;
	char path[256];

	snprintf(path, sizeof(path), "%s/sys/kernel/bpf_stats_enabled", proc_root);
	file = fopen(path, "re");
	return file && fgetc(file) == '1';
}

static void collect_self(struct collector *collector, struct snapshot *snapshot)
{
	struct kernel *kernel = collector->kernel;

	kernel->lost[DROP_SKIPPED] = loader_skipped(kernel->loader);
	kernel->lost[DROP_WORKLOADS_FULL] = ledger_workloads_full(collector->ledger);
	kernel->lost[DROP_SERIES_FULL] = ledger_rows_full(collector->ledger);
	kernel_drops(kernel, collector->drops);
	snapshot->drops = collector->drops;
	snapshot->drops_len = DROP_REASONS;
	snapshot->http_refusals = collector->http_refusals;
	snapshot->http_refusals_len = collector->http_refusals_len;
	kernel_maps(kernel, collector->maps);
	snapshot->maps = collector->maps;
	snapshot->maps_len = KERNEL_MAPS;
	if (collector->mutexes) {
		mutexes_count(collector->mutexes, collector->mutexes_by_result);
		snapshot->mutexes = collector->mutexes_by_result;
		snapshot->mutexes_len = MUTEX_RESULTS;
	}
	snapshot->probes = loader_probes(kernel->loader, &snapshot->probes_len);
	if (statistics_on(collector->proc_root)) {
		snapshot->programs = collector->programs;
		snapshot->programs_len = loader_programs(kernel->loader, collector->programs,
							 COLLECTOR_PROGRAMS_MAX);
	}
	if (!self_read(collector->proc_root, &collector->process))
		snapshot->process = &collector->process;
}

bool collector_collect(struct collector *collector, unsigned int parts, uint64_t deadline_ns,
		       struct snapshot *snapshot)
{
	struct collection collection = { .collector = collector, .deadline_ns = deadline_ns };

	*snapshot = (struct snapshot){ .build = collector->build };
	snapshot->collectors = collector->parts;
	snapshot->collectors_len = collect_parts(&collection, parts);
	if (ledger_end(collector->ledger, clock_monotonic_ns())) {
		for (size_t i = 0; i < snapshot->collectors_len; i++)
			collector->parts[i].success = 0;
	}
	if (parts & 1U << PART_DISCOVERY)
		snapshot->workloads = ledger_workloads(collector->ledger, &snapshot->workloads_len);
	snapshot->endpoints = ledger_endpoints(collector->ledger, &snapshot->endpoints_len);
	snapshot->pools = ledger_pools(collector->ledger, &snapshot->pools_len);
	if (!collector->self_hidden)
		collect_self(collector, snapshot);
	return !collection.cut;
}
