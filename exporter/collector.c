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

static int collect_discovery(struct collector *collector, uint64_t now_ns)
{
	int r = registry_refresh(collector->registry, now_ns);
	ledger_handle handle;
	struct tree tree;

	ledger_begin(collector->ledger);
	for (uint32_t slot = 1; slot < TREES_MAX; slot++)
		if (registry_find(collector->registry, slot, &handle) &&
		    trees_read(collector->kernel, slot, &tree) == 1)
			ledger_add_processes(collector->ledger, handle, tree.processes);
	return r;
}

static int collect_requests(struct collector *collector, uint64_t now_ns)
{
	struct endpoint_row row;
	ledger_handle handle;
	uint32_t tree;
	uint16_t port;
	int r = 0;

	if (now_ns - collector->swept_ns >= COLLECTOR_SWEEP_NS) {
		r = requests_sweep(collector->kernel);
		collector->swept_ns = now_ns;
	}
	for (uint32_t slot = 0; slot < ENDPOINTS_MAX; slot++) {
		int found = requests_read(collector->kernel, slot, now_ns, &tree, &port, &row);

		if (found < 0)
			r = found;
		if (found == 1 && workload_of(collector, tree, &row, sizeof(row), &handle))
			ledger_add_endpoint(collector->ledger, handle, port, &row);
	}
	return r;
}

static int collect_threads(struct collector *collector)
{
	uint64_t now_ns = clock_monotonic_ns();
	char name[THREADS_NAME_LEN];
	ledger_handle handle;
	struct pool_row row;
	uint32_t tree;
	int r = 0;

	for (uint32_t slot = 0; slot < collector->kernel->sizes.pools; slot++) {
		int found = threads_read(collector->kernel, slot, now_ns, &tree, name, &row);

		if (found < 0)
			r = found;
		if (found == 1 && workload_of(collector, tree, &row, sizeof(row), &handle))
			ledger_add_pool(collector->ledger, handle, name, &row);
	}
	return r;
}

static struct collector_row part(const char *name, uint64_t start_ns, int r)
{
	return (struct collector_row){
		.collector = name,
		.duration_ns = clock_monotonic_ns() - start_ns,
		.success = r == 0,
	};
}

/* One part per feature that is on: the rows of `workload_scrape_collector_*`. */
static size_t collect_parts(struct collector *collector)
{
	uint64_t start_ns = clock_monotonic_ns();
	size_t len = 0;

	collector->parts[len++] = part("discovery", start_ns,
				       collect_discovery(collector, start_ns));
	if (feature_on(collector, FEATURE_REQUESTS)) {
		start_ns = clock_monotonic_ns();
		collector->parts[len++] = part("requests", start_ns,
					       collect_requests(collector, start_ns));
	}
	if (feature_on(collector, FEATURE_THREADS)) {
		start_ns = clock_monotonic_ns();
		collector->parts[len++] = part("threads", start_ns, collect_threads(collector));
	}
	return len;
}

static bool statistics_on(const char *proc_root)
{
	_cleanup_(cleanup_fclose) FILE *file = NULL;
	char path[256];

	snprintf(path, sizeof(path), "%s/sys/kernel/bpf_stats_enabled", proc_root);
	file = fopen(path, "re");
	return file && fgetc(file) == '1';
}

void collector_collect(struct collector *collector, struct snapshot *snapshot)
{
	*snapshot = (struct snapshot){ .build = collector->build };
	snapshot->collectors = collector->parts;
	snapshot->collectors_len = collect_parts(collector);
	if (ledger_end(collector->ledger, clock_monotonic_ns()))
		collector->parts[0].success = 0;
	snapshot->workloads = ledger_workloads(collector->ledger, &snapshot->workloads_len);
	snapshot->endpoints = ledger_endpoints(collector->ledger, &snapshot->endpoints_len);
	snapshot->pools = ledger_pools(collector->ledger, &snapshot->pools_len);

	collector->kernel->lost[DROP_SKIPPED] = loader_skipped(collector->kernel->loader);
	collector->kernel->lost[DROP_WORKLOADS_FULL] = ledger_workloads_full(collector->ledger);
	collector->kernel->lost[DROP_SERIES_FULL] = ledger_rows_full(collector->ledger);
	kernel_drops(collector->kernel, collector->drops);
	snapshot->drops = collector->drops;
	snapshot->drops_len = DROP_REASONS;
	kernel_maps(collector->kernel, collector->maps);
	snapshot->maps = collector->maps;
	snapshot->maps_len = KERNEL_MAPS;
	snapshot->probes = loader_probes(collector->kernel->loader, &snapshot->probes_len);
	if (statistics_on(collector->proc_root)) {
		snapshot->programs = collector->programs;
		snapshot->programs_len = loader_programs(
			collector->kernel->loader, collector->programs, COLLECTOR_PROGRAMS_MAX);
	}
	if (!self_read(collector->proc_root, &collector->process))
		snapshot->process = &collector->process;
}
