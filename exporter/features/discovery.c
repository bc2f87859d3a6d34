/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery: which processes listen, and which tree each process belongs to. It measures nothing by
 * itself; all other features ask it whose an event is.
 */
#include <errno.h>
#include <stdlib.h>

#include "abi/limits.h"
#include "base/clock.h"
#include "features/feature.h"
#include "kernel/table.h"
#include "kernel/quotas.h"
#include "kernel/trees.h"

struct discovery {
	struct kernel *kernel;
	struct budget_cost recount;
	uint64_t recounted_ns; /* when threads were counted */
};

static int discovery_fill(const struct loader *loader)
{
	int r = table_fill(loader_map_fd(loader, "free_trees"), TREES_MAX);

	return r ? r
		 : table_fill(loader_map_fd(loader, "free_endpoints"),
			      loader_sizes(loader)->endpoints);
}

static int discovery_open(const struct feature_env *env, void **state)
{
	struct discovery *discovery = calloc(1, sizeof(*discovery));

	if (!discovery)
		return -ENOMEM;
	discovery->kernel = env->kernel;
	*state = discovery;
	return 0;
}

static int discovery_recount(struct discovery *discovery, uint64_t now_ns)
{
	discovery->recounted_ns = now_ns;
	return quotas_recount_threads(discovery->kernel);
}

static void tree_add(const struct collection *collection, uint32_t slot, ledger_handle handle,
		     const struct tree *tree)
{
	uint64_t drops[DROP_REASONS] = { 0 };

	ledger_add_processes(collection->ledger, handle, tree->processes);
	kernel_drops_of(collection->kernel, slot, drops);
	ledger_add_drops(collection->ledger, handle, drops);
}

static int discovery_collect(void *state, struct collection *collection)
{
	struct discovery *discovery = state;
	struct budget *budget = &collection->budget;
	ledger_handle handle;
	struct tree tree;
	int counted = 0;

	ledger_begin(collection->ledger);
	for (uint32_t slot = 1; slot < TREES_MAX; slot++)
		if (registry_find(collection->registry, slot, &handle) &&
		    trees_read(collection->kernel, slot, &tree) == 1)
			tree_add(collection, slot, handle, &tree);
	if (clock_monotonic_ns() - discovery->recounted_ns >= QUOTAS_RECOUNT_NS)
		counted = BUDGET_STEP(budget, &discovery->recount,
				      discovery_recount(discovery, budget->step_ns));
	return collection->refreshed ? collection->refreshed : counted;
}

static void discovery_show(void *state, const struct ledger *ledger, struct snapshot *snapshot)
{
	(void)state;
	snapshot->workloads = ledger_workloads(ledger, &snapshot->workloads_len);
}

/* Threads have no table of their own: the kernel stores what is known with each. */
static size_t discovery_maps(void *state, struct map_row rows[static FEATURE_MAPS_MAX])
{
	const struct discovery *discovery = state;
	uint64_t trees = 0;
	struct tree tree;

	for (uint32_t slot = 1; slot < TREES_MAX; slot++)
		trees += trees_read(discovery->kernel, slot, &tree) == 1;
	rows[0] = (struct map_row){ "trees", trees, TREES_MAX - 1 };
	rows[1] = quotas_row(discovery->kernel, QUOTA_THREADS, "threads");
	return 2;
}

const struct feature feature_discovery = {
	.plan = {
		.name = "discovery",
		.supports = true,
		/* Measured on Linux 6.18, x86-64 (tests/README.md): 590 bytes a socket, 704 a thread. */
		.backends = { { .object = "discovery",
				.bytes = { [QUOTA_SOCKETS] = 640, [QUOTA_THREADS] = 768 } } },
		.walks = {
			{ "discovery_listeners", WALK_LISTENERS },
			{ "discovery_connections", WALK_CONNECTIONS },
			{ "discovery_processes", WALK_PROCESSES },
			{ "discovery_recount", WALK_MEMBERS },
		},
		.fill = discovery_fill,
	},
	.collector = true,
	.always = true,
	.hint = "workload_info and the like",
	.open = discovery_open,
	.close = free,
	.collect = discovery_collect,
	.show = discovery_show,
	.maps = discovery_maps,
};
