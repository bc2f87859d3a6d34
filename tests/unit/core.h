/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core of the exporter on a kernel side of plain memory: registry, features, collector and
 * ledger, with a real namer that reads the processes of tests/unit/fixtures/proc.
 */
#ifndef TESTS_CORE_H
#define TESTS_CORE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collect/collector.h"
#include "features/features.h"
#include "plain_kernel.h"
#include "registry/namer.h"
#include "registry/registry.h"

#define CORE_ROOT "tests/unit/fixtures/proc"
#define CORE_NGINX 100 /* a process of the fixtures, of nginx.service, and when it started */
#define CORE_START_NS 1234569999999ULL
#define CORE_WAIT_NS (10 * 1000000000ULL)
#define CORE_GRACE_NS (300 * 1000000000ULL)

struct core {
	struct loader *loader;
	struct kernel kernel;
	struct features features;
	void *settings[LOADER_FEATURES_MAX]; /* none */
	struct ledger *ledger;
	struct namer *namer;
	struct registry registry;
	struct collector collector;
	struct snapshot snapshot; /* of the last scrape */
	plain_walk_fn walk; /* may be set at any time */
	void *arg;
};

static inline int core_walk(void *arg, enum walk walk)
{
	struct core *core = arg;

	return core->walk ? core->walk(core->arg, walk) : 0;
}

/* The walk that the argument points to fails, and no other. */
static inline int core_walk_fails(void *arg, enum walk walk)
{
	return walk == *(enum walk *)arg ? -ENOMEM : 0;
}

static inline unsigned int core_mask(const char *feature)
{
	return 1U << (unsigned int)features_find(feature);
}

static inline struct core *core_start(unsigned int wanted)
{
	static const struct user nobody_else;
	static const struct log log;
	struct core *core = calloc(1, sizeof(*core));
	const struct namer_options namer = {
		.proc_root = CORE_ROOT,
		.user = &nobody_else,
		.sandbox = SANDBOX_OFF, /* a sanitizer's own calls are not on its list */
	};
	struct feature_env env = { .proc_root = CORE_ROOT, .log = &log };

	cr_assert_not_null(core);
	wanted &= ~core_mask("profiles"); /* it needs helpers and a loop: profiler_site.h */
	wanted |= core_mask("nothing") | core_mask("nothing_to_scrape") | core_mask("counted");
	core->loader = plain_loader_new(wanted, core_walk, core);
	cr_assert_eq(kernel_open(&core->kernel, core->loader, CORE_ROOT), 0);
	env.kernel = &core->kernel;
	cr_assert_eq(features_open(&core->features, &env, core->settings), 0);
	core->ledger = ledger_new(CORE_GRACE_NS);
	cr_assert_not_null(core->ledger);
	cr_assert_eq(namer_start(&namer, &core->namer), 0);
	registry_init(&core->registry, &core->kernel, core->ledger, core->namer);
	core->collector = (struct collector){
		.kernel = &core->kernel,
		.features = &core->features,
		.registry = &core->registry,
		.ledger = core->ledger,
		.proc_root = CORE_ROOT,
	};
	return core;
}

static inline void core_stop(struct core *core)
{
	features_close(&core->features);
	ledger_free(core->ledger);
	kernel_close(&core->kernel);
	namer_stop(core->namer);
	plain_loader_free(core->loader);
	free(core);
}

/* Refreshes until the workload of @slot is @name, which the namer tells when it gets a CPU. */
static inline void core_wait_for_name(struct core *core, uint32_t slot, const char *name)
{
	uint64_t end_ns = clock_monotonic_ns() + CORE_WAIT_NS;
	ledger_handle handle, wanted;
	struct identity identity = { .runtime = "unknown" };

	snprintf(identity.name, sizeof(identity.name), "%s", name);
	wanted = ledger_join(core->ledger, &identity, 0);
	ledger_leave(core->ledger, wanted);
	do {
		cr_assert_lt(clock_monotonic_ns(), end_ns, "slot %u is never %s", slot, name);
		collector_refresh(&core->collector, clock_monotonic_ns(), CORE_WAIT_NS / 10);
	} while (!registry_find(&core->registry, slot, &handle) || handle != wanted);
}

/* What the kernel side does when nginx listens: its tree is in @slot from now on. */
static inline struct tree *core_found(struct core *core, uint32_t slot)
{
	struct tree *tree = plain_at(core->loader, "trees", slot);

	*tree = (struct tree){
		.flags = TREE_USED,
		.tgid = CORE_NGINX,
		.start_ns = CORE_START_NS,
		.threads = 1,
		.processes = 1,
		.comm = "founder",
	};
	core_wait_for_name(core, slot, "nginx");
	return tree;
}

/* The last thread of it is gone. */
static inline void core_end(struct core *core, uint32_t slot)
{
	struct tree *tree = plain_at(core->loader, "trees", slot);

	tree->threads = 0;
	tree->processes = 0;
}

/* Endpoint @slot of @tree, with @requests of 1000 ns in the queue, each in a copy of another CPU.
 */
static inline void core_serve(struct core *core, uint32_t slot, uint32_t tree, uint16_t port,
			      uint64_t requests)
{
	struct endpoint_info *info = plain_at(core->loader, "endpoint_info", slot);

	info->tree = tree;
	info->port = port;
	info->used = ENDPOINT_USED;
	for (uint64_t i = 0; i < requests; i++) {
		struct endpoint_shard *shard = plain_at(
			core->loader, "endpoints", (size_t)slot * PLAIN_SHARDS + i % PLAIN_SHARDS);

		shard->queue.sum_ns += 1000;
		shard->queue.bucket[0]++;
		shard->duration[0]++;
		shard->received_bytes += 10;
	}
}

/* Pool @slot of @tree, with @threads that are idle since @since_ns. */
static inline void core_idle(struct core *core, uint32_t slot, uint32_t tree, const char *name,
			     uint64_t threads, uint64_t since_ns)
{
	struct pool_info *info = plain_at(core->loader, "pool_info", slot);
	struct pool_shard *shard = plain_at(core->loader, "pool_states",
					    (size_t)slot * (PLAIN_CPUS + 1));

	info->tree = tree;
	info->used = 1;
	snprintf((char *)info->name, COMM_LEN, "%s", name);
	shard->n[STATE_IDLE] = threads;
	shard->a[STATE_IDLE] = -(threads * since_ns);
	shard->started = threads;
}

/* A scrape of everything; true if the time was enough. */
static inline bool core_scrape_until(struct core *core, unsigned int asked, uint64_t deadline_ns)
{
	return collector_collect(&core->collector, asked, deadline_ns, &core->snapshot);
}

static inline bool core_scrape(struct core *core)
{
	return core_scrape_until(core, features_collectors(), UINT64_MAX);
}

/* The row of a collector: whether it worked; -1: there is none. */
static inline int core_worked(const struct core *core, const char *collector)
{
	for (size_t i = 0; i < core->snapshot.collectors_len; i++)
		if (!strcmp(core->snapshot.collectors[i].collector, collector))
			return (int)core->snapshot.collectors[i].success;
	return -1;
}

#endif
