/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: what waits at each listening port and how long it took, observed at the sockets
 * (bpf/requests.bpf.c) or at the system calls (bpf/requests_syscall.bpf.c).
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "abi/limits.h"
#include "base/clock.h"
#include "base/units.h"
#include "features/feature.h"
#include "features/leaving.h"
#include "kernel/quotas.h"
#include "kernel/table.h"
#include "kernel/trees.h"
#include "kernel/view.h"
#include "model/counters.h"
#include "model/ledger_kinds.h"

#define SWEEP_NS 1000000000ULL /* gauges of sockets are not taken more often than this */
/* The endpoints of the kernel side. */
struct requests {
	struct kernel *kernel;
	struct view info, shards, gauges, sweeps;
	size_t copies; /* of what is counted at a slot: the shards; 0 while this is off */
	int slots, free; /* descriptors: which slot an endpoint has; slots without one */
	uint64_t swept_ns; /* when the gauges were taken */
	struct leaving *leaving; /* of each slot */
	struct budget_cost sweep, read;
};

/* Which endpoint a slot is. */
struct endpoint {
	uint32_t tree;
	uint16_t port;
};

/* --- sizes ---------------------------------------------------------------------------------- */

static void requests_size(struct map_sizes *sizes)
{
	size_t fit = ENDPOINTS_BYTES_MAX / (sizes->shards * sizeof(struct endpoint_shard));

	sizes->endpoints = fit > ENDPOINTS_MAX ? ENDPOINTS_MAX : (unsigned int)fit;
}

static unsigned int shards_entries(const struct map_sizes *sizes)
{
	return sizes->endpoints * sizes->shards;
}

static struct endpoint_shard *shard_at(struct requests *requests, uint32_t slot, size_t i)
{
	return view_at(&requests->shards, (size_t)slot * requests->kernel->sizes.shards + i);
}

/* --- opening -------------------------------------------------------------------------------- */

static void requests_close(void *state)
{
	struct requests *requests = state;

	view_close(&requests->info);
	view_close(&requests->shards);
	view_close(&requests->gauges);
	view_close(&requests->sweeps);
	free(requests->leaving);
	free(requests);
}

static int requests_open(const struct feature_env *env, void **state)
{
	const struct loader *loader = env->kernel->loader;
	struct requests *requests = calloc(1, sizeof(*requests));
	int r;

	if (!requests)
		return -ENOMEM;
	requests->kernel = env->kernel;
	requests->slots = loader_map_fd(loader, "endpoint_slots");
	requests->free = loader_map_fd(loader, "free_endpoints");
	requests->leaving = calloc(env->kernel->sizes.endpoints, sizeof(*requests->leaving));
	r = requests->leaving ? 0 : -ENOMEM;
	if (!r)
		r = view_open(&requests->info, loader, "endpoint_info",
			      sizeof(struct endpoint_info));
	if (!r)
		r = view_open(&requests->shards, loader, "endpoints",
			      sizeof(struct endpoint_shard));
	requests->copies = requests->shards.entries > 1 ? env->kernel->sizes.shards : 0;
	if (!r)
		r = view_open(&requests->gauges, loader, "endpoint_gauges",
			      sizeof(struct endpoint_gauges));
	if (!r)
		r = view_open(&requests->sweeps, loader, "sweeps", sizeof(struct sweep));
	if (r)
		requests_close(requests);
	else
		*state = requests;
	return r;
}

/* --- reading -------------------------------------------------------------------------------- */

static void shard_merge(struct endpoint_row *row, const struct endpoint_shard *shard)
{
	counters_merge(&row->abandoned, &shard->abandoned, sizeof(struct endpoint_counts));
	row->duration.sum_ns += shard->queue.sum_ns + shard->service.sum_ns;
	counters_merge(row->duration.bucket, shard->duration, sizeof(shard->duration));
}

/* Of what began at @since_ns, 0 if there is nothing. */
static uint64_t age_ns(uint64_t since_ns, uint64_t now_ns)
{
	return since_ns && now_ns > since_ns ? now_ns - since_ns : 0;
}

static void gauges_fill(struct endpoint_row *row, const struct endpoint_gauges *gauges,
			uint64_t swept_ns)
{
	row->queued = gauges->queued;
	row->in_service = gauges->in_service;
	row->connections = gauges->connections;
	row->accept_queue = gauges->accept_queue;
	row->accept_queue_limit = gauges->accept_queue_limit;
	row->oldest_queued_ns = age_ns(gauges->oldest_ns, swept_ns);
	row->oldest_in_service_ns = age_ns(gauges->oldest_read_ns, swept_ns);
}

/*
 * Reads endpoint @slot into @row (texts are left NULL), which must not be used on failure. 1 if the
 * slot is in use, 0 if it is not, -errno. SLOT_OTHER is always in use, and of no tree (0).
 */
static int endpoint_read(struct requests *requests, uint32_t slot, struct endpoint *endpoint,
			 struct endpoint_row *row)
{
	const struct endpoint_info *info = view_at(&requests->info, slot);
	const struct endpoint_gauges *gauges = view_at(&requests->gauges, slot);

	if (!info || !gauges)
		return -ENOMEM;
	if (slot != SLOT_OTHER && !__atomic_load_n(&info->used, __ATOMIC_ACQUIRE))
		return 0;
	memset(row, 0, sizeof(*row));
	for (size_t i = 0; i < requests->copies; i++) {
		const struct endpoint_shard *shard = shard_at(requests, slot, i);

		if (!shard)
			return -ENOMEM;
		shard_merge(row, shard);
	}
	/* What the sweep found waiting may have been read since: ages are of that moment. */
	gauges_fill(row, gauges, kernel_time_ns(requests->kernel, requests->swept_ns));
	*endpoint = (struct endpoint){ info->tree, (uint16_t)info->port };
	return 1;
}

/* --- the end of a port ---------------------------------------------------------------------- */

/* From now on a look-up of its port finds another slot. */
static void endpoint_hide(struct requests *requests, uint32_t slot, uint64_t now_ns)
{
	const struct endpoint_info *info = view_at(&requests->info, slot);
	struct endpoint_key key = { .tree = info->tree, .port = info->port };

	if (requests->leaving[slot].hidden_ns)
		return;
	table_delete(requests->slots, &key);
	requests->leaving[slot].hidden_ns = now_ns;
}

/* From now on nothing begins to be added to @slot: sockets that still remember it are stale. */
static int endpoint_close(struct requests *requests, uint32_t slot, uint64_t now_ns)
{
	struct endpoint_info *info = view_at(&requests->info, slot);

	endpoint_hide(requests, slot, now_ns);
	__atomic_store_n(&info->used, ENDPOINT_CLOSED, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < requests->copies; i++) {
		struct endpoint_shard *shard = shard_at(requests, slot, i);

		if (!shard)
			return -ENOMEM;
		__atomic_store_n(&shard->generation, info->generation + 1, __ATOMIC_SEQ_CST);
	}
	requests->leaving[slot].closed_ns = now_ns;
	return 0;
}

/* Returns a closed @slot to the kernel side, zeroed. */
static int endpoint_free(struct requests *requests, uint32_t slot)
{
	struct endpoint_info *info = view_at(&requests->info, slot);
	struct endpoint_gauges *gauges = view_at(&requests->gauges, slot);

	if (!info || !gauges)
		return -ENOMEM;
	for (size_t i = 0; i < requests->copies; i++) {
		struct endpoint_shard *shard = shard_at(requests, slot, i);

		if (!shard)
			return -ENOMEM;
		memset(&shard->abandoned, 0,
		       sizeof(*shard) - offsetof(struct endpoint_shard, abandoned));
	}
	trees_give_back(requests->kernel, info->tree, SHARE_ENDPOINTS, !info->port);
	memset(gauges, 0, sizeof(*gauges)); /* of the last sweep: not the next owner's */
	/* Before anything else, or what was closed would look open. */
	__atomic_store_n(&info->generation, info->generation + 1, __ATOMIC_SEQ_CST);
	*info = (struct endpoint_info){ .generation = info->generation };
	requests->leaving[slot] = (struct leaving){ 0 };
	return table_push(requests->free, slot);
}

/* Adds what was counted in @slot to what the ledger keeps. 0; -EAGAIN: it could not be read. */
static int endpoint_fold(struct requests *requests, uint32_t slot,
			 const struct retirement *retirement)
{
	struct endpoint endpoint;
	struct endpoint_row row;

	if (endpoint_read(requests, slot, &endpoint, &row) != 1)
		return -EAGAIN;
	ledger_fold_endpoint(retirement->ledger, retirement->handle, endpoint.port, &row);
	return 0;
}

/* 0; -EAGAIN: at a later refresh. */
static int endpoint_retire(struct requests *requests, uint32_t slot,
			   const struct retirement *retirement)
{
	const struct leaving *leaving = &requests->leaving[slot];

	if (!leaving->closed_ns && endpoint_close(requests, slot, retirement->now_ns))
		return -EAGAIN;
	if (retirement->now_ns < leaving->closed_ns + EVENTS_END_NS ||
	    endpoint_fold(requests, slot, retirement))
		return -EAGAIN;
	endpoint_free(requests, slot);
	return 0;
}

/* Nothing names hidden @slot any more, of a tree that lives. */
static void endpoint_give_back(struct requests *requests, const struct collection *collection,
			       uint32_t slot)
{
	const struct endpoint_info *info = view_at(&requests->info, slot);
	struct retirement retirement = { .ledger = collection->ledger, .tree = info->tree };

	if (!registry_find(collection->registry, info->tree, &retirement.handle))
		return;
	if (!endpoint_close(requests, slot, requests->swept_ns) &&
	    !endpoint_fold(requests, slot, &retirement))
		endpoint_free(requests, slot);
}

/*
 * After a sweep: a port rests that has no socket, and was not looked for since the sweep before. A
 * connection may get its state behind a sweep; only one that two sweeps in a row have missed, of a
 * port without a listener, would be stale, and counted so.
 */
static void endpoint_review(struct requests *requests, const struct collection *collection,
			    uint32_t slot)
{
	struct endpoint_info *info = view_at(&requests->info, slot);
	const struct endpoint_gauges *gauges = view_at(&requests->gauges, slot);
	bool sought;

	if (!info || !gauges || !__atomic_load_n(&info->used, __ATOMIC_ACQUIRE))
		return;
	sought = __atomic_exchange_n(&info->sought, 0, __ATOMIC_ACQ_REL);
	switch (leaving_next(&requests->leaving[slot], !sought && !gauges->sockets,
			     requests->swept_ns)) {
	case LEAVING_HIDE:
		endpoint_hide(requests, slot, clock_monotonic_ns());
		return;
	case LEAVING_FREE:
		endpoint_give_back(requests, collection, slot);
		return;
	case LEAVING_NOT:
		return;
	}
}

/* --- a scrape ------------------------------------------------------------------------------- */

/* Each walk takes the sweep further, and ends it as a rule. */
static int sockets_walk(struct requests *requests)
{
	struct sweep *sweep = view_at(&requests->sweeps, 0);
	uint64_t begin;
	int r;

	if (!sweep)
		return -ENOMEM;
	__atomic_store_n(&sweep->next, 1, __ATOMIC_RELAXED);
	do {
		begin = __atomic_load_n(&sweep->next, __ATOMIC_RELAXED);
		r = loader_walk(requests->kernel->loader, WALK_SOCKETS);
	} while (!r && __atomic_load_n(&sweep->next, __ATOMIC_RELAXED) > begin);
	return r;
}

/* Takes stock of all tracked sockets: about a microsecond per open connection. */
static int requests_sweep(struct requests *requests, const struct collection *collection)
{
	int r;

	requests->swept_ns = collection->budget.step_ns;
	for (uint32_t slot = 0; slot < requests->kernel->sizes.endpoints; slot++) {
		struct endpoint_gauges *gauges = view_at(&requests->gauges, slot);

		if (!gauges)
			return -ENOMEM;
		memset(gauges, 0, sizeof(*gauges));
	}
	r = sockets_walk(requests);
	for (uint32_t slot = 1; !r && slot < requests->kernel->sizes.endpoints; slot++)
		endpoint_review(requests, collection, slot);
	return r;
}

/* The gauges are as old as the sweep that filled them, ages included. */
static int requests_read(struct requests *requests, const struct collection *collection)
{
	struct endpoint endpoint;
	struct endpoint_row row;
	ledger_handle handle;
	int r = 0;

	ledger_begin_kind(collection->ledger, LEDGER_ENDPOINTS);
	for (uint32_t slot = 0; slot < requests->kernel->sizes.endpoints; slot++) {
		int found = endpoint_read(requests, slot, &endpoint, &row);

		if (found < 0)
			r = found;
		if (found == 1 &&
		    collection_find(collection, endpoint.tree, &row, sizeof(row), &handle))
			ledger_add_endpoint(collection->ledger, handle, endpoint.port, &row);
	}
	return r;
}

/* Without a sweep the counters are right, but the gauges are those of a sweep before. */
static int requests_collect(void *state, struct collection *collection)
{
	struct requests *requests = state;
	struct budget *budget = &collection->budget;
	int swept = 0, r;

	if (clock_monotonic_ns() - requests->swept_ns >= SWEEP_NS)
		swept = BUDGET_STEP(budget, &requests->sweep, requests_sweep(requests, collection));
	r = BUDGET_STEP(budget, &requests->read, requests_read(requests, collection));
	return r ? r : swept;
}

static void requests_show(void *state, const struct ledger *ledger, struct snapshot *snapshot)
{
	(void)state;
	snapshot->endpoints = ledger_endpoints(ledger, &snapshot->endpoints_len);
}

/* Sockets, like threads, have no table of their own. */
static size_t requests_maps(void *state, struct map_row rows[static FEATURE_MAPS_MAX])
{
	struct requests *requests = state;
	uint64_t used = 0;

	for (uint32_t slot = 1; slot < requests->kernel->sizes.endpoints; slot++) {
		const struct endpoint_info *info = view_at(&requests->info, slot);

		used += info && info->used;
	}
	rows[0] = (struct map_row){ "endpoints", used, requests->kernel->sizes.endpoints - 1 };
	rows[1] = quotas_row(requests->kernel, QUOTA_SOCKETS, "sockets");
	return 2;
}

/* --- the end of a tree ---------------------------------------------------------------------- */

/* Does @step with each endpoint of the tree. 0, or -EAGAIN of any. */
static int endpoints_each(struct requests *requests, const struct retirement *retirement,
			  int (*step)(struct requests *requests, uint32_t slot,
				      const struct retirement *retirement))
{
	int later = 0;

	for (uint32_t slot = 1; slot < requests->kernel->sizes.endpoints; slot++) {
		const struct endpoint_info *info = view_at(&requests->info, slot);

		if (info && info->used && info->tree == retirement->tree)
			later |= step(requests, slot, retirement);
	}
	return later;
}

static void requests_fold(void *state, const struct retirement *retirement)
{
	endpoints_each(state, retirement, endpoint_fold);
}

static int requests_retire(void *state, const struct retirement *retirement)
{
	return endpoints_each(state, retirement, endpoint_retire);
}

static const struct flag requests_flags[] = {
	FLAG("requests.backend", "BACKEND", "auto", FLAG_BACKEND,
	     "Where requests are observed: socket (Linux 6.3 and\n"
	     "later), syscall (costs more, shows accept waits), or\n"
	     "auto, the first that this kernel has.",
	     "`syscall` works on Linux 5.15 and later."),
};

const struct feature feature_requests = {
	.plan = {
		.name = "requests",
		.requires = "discovery",
		.backends = {
			/* Three tracepoints of the socket layer came with Linux 6.3. */
			{ .label = "socket", .object = "requests", .since_major = 6, .since_minor = 3 },
			{ .label = "syscall", .object = "requests_syscall" },
		},
		.size = requests_size,
		.maps = { { "endpoints", shards_entries } },
		.walks = {
			{ "requests_sweep", WALK_SOCKETS },
		},
	},
	.collector = true,
	.flags = requests_flags,
	.flags_len = COUNT(requests_flags),
	.open = requests_open,
	.close = requests_close,
	.collect = requests_collect,
	.show = requests_show,
	.maps = requests_maps,
	.fold = requests_fold,
	.retire = requests_retire,
};
