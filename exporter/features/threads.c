/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: what the pools of each service do and wait for (bpf/threads.bpf.c), and the waits for
 * locks that sleep.
 */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "abi/limits.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "features/feature.h"
#include "features/holders.h"
#include "features/leaving.h"
#include "kernel/table.h"
#include "kernel/trees.h"
#include "kernel/view.h"
#include "model/counters.h"
#include "model/ledger_kinds.h"

/* A writer needs some 20 ns; it can take long only while its virtual CPU is not running. */
#define READ_TRIES 1000
#define POOL_NAME_LEN 48 /* valid UTF-8: each of the 15 bytes may need three, and a NUL */
_Static_assert(POOL_NAME_LEN <= LEDGER_LABEL_LEN, "the ledger cuts names of pools");

/* The pools of the kernel side. */
struct threads {
	struct kernel *kernel;
	struct view info, states, waits, holders;
	int slots, free; /* descriptors: which slot a pool has; slots without one */
	struct leaving *leaving; /* of each slot */
	uint32_t freed; /* by the scrape in progress: a tree that had a slot; 0: none had */
	bool crowded; /* and whether there are threads in an `other` */
	struct budget_cost judge, read;
};

/* Which pool a slot is. */
struct pool {
	uint32_t tree;
	enum pool_role role;
	char name[POOL_NAME_LEN];
};

/* --- sizes ---------------------------------------------------------------------------------- */

static void threads_size(struct map_sizes *sizes)
{
	size_t fit = POOL_STATES_BYTES_MAX / ((sizes->cpus + 1) * sizeof(struct pool_shard));

	sizes->pools = fit > POOLS_MAX   ? POOLS_MAX
		       : fit < POOLS_MIN ? POOLS_MIN
					 : (unsigned int)fit;
}

static unsigned int states_entries(const struct map_sizes *sizes)
{
	return sizes->pools * (sizes->cpus + 1);
}

static unsigned int waits_entries(const struct map_sizes *sizes)
{
	return sizes->pools * sizes->shards;
}

static struct pool_shard *states_at(struct threads *threads, uint32_t slot, size_t i)
{
	return view_at(&threads->states, (size_t)slot * (threads->kernel->sizes.cpus + 1) + i);
}

static struct pool_waits *waits_at(struct threads *threads, uint32_t slot, size_t i)
{
	return view_at(&threads->waits, (size_t)slot * threads->kernel->sizes.shards + i);
}

/* --- opening -------------------------------------------------------------------------------- */

static int threads_fill(const struct loader *loader)
{
	return table_fill(loader_map_fd(loader, "free_pools"), loader_sizes(loader)->pools);
}

static void threads_close(void *state)
{
	struct threads *threads = state;

	view_close(&threads->info);
	view_close(&threads->states);
	view_close(&threads->waits);
	view_close(&threads->holders);
	free(threads->leaving);
	free(threads);
}

static int threads_open(const struct feature_env *env, void **state)
{
	const struct loader *loader = env->kernel->loader;
	struct threads *threads = calloc(1, sizeof(*threads));
	int r;

	if (!threads)
		return -ENOMEM;
	threads->kernel = env->kernel;
	threads->slots = loader_map_fd(loader, "pool_slots");
	threads->free = loader_map_fd(loader, "free_pools");
	threads->leaving = calloc(env->kernel->sizes.pools, sizeof(*threads->leaving));
	r = threads->leaving ? 0 : -ENOMEM;
	if (!r)
		r = view_open(&threads->info, loader, "pool_info", sizeof(struct pool_info));
	if (!r)
		r = view_open(&threads->states, loader, "pool_states", sizeof(struct pool_shard));
	if (!r)
		r = view_open(&threads->waits, loader, "pool_waits", sizeof(struct pool_waits));
	if (!r)
		r = holders_open(&threads->holders, loader);
	if (r)
		threads_close(threads);
	else
		*state = threads;
	return r;
}

/* --- reading -------------------------------------------------------------------------------- */

/* A copy between two equal, even sequence numbers. */
static int shard_copy(const struct pool_shard *shard, struct pool_shard *copy)
{
	for (int i = 0; i < READ_TRIES; i++) {
		uint64_t seq = __atomic_load_n(&shard->seq, __ATOMIC_ACQUIRE);

		if (!(seq & 1)) {
			for (size_t w = 0; w < sizeof(*copy) / sizeof(uint64_t); w++)
				((uint64_t *)copy)[w] = __atomic_load_n(
					&((const uint64_t *)shard)[w], __ATOMIC_RELAXED);
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			if (__atomic_load_n(&shard->seq, __ATOMIC_RELAXED) == seq)
				return 0;
		}
		if (i % 100 == 99)
			sched_yield();
	}
	return -EAGAIN;
}

/* Sums that cannot be negative, read at slightly different instants. */
static uint64_t not_negative(uint64_t sum)
{
	return (int64_t)sum < 0 ? 0 : sum;
}

static int states_read(struct threads *threads, uint32_t slot, uint64_t now_ns,
		       struct pool_row *row)
{
	uint64_t n[STATES] = { 0 }, a[STATES] = { 0 };

	for (size_t i = 0; i <= threads->kernel->sizes.cpus; i++) {
		const struct pool_shard *shard = states_at(threads, slot, i);
		struct pool_shard copy = { 0 };

		if (!shard)
			return -ENOMEM;
		if (shard_copy(shard, &copy))
			return -EAGAIN;
		for (int s = 0; s < STATES; s++) {
			n[s] += copy.n[s];
			a[s] += copy.a[s];
		}
		row->started += copy.started;
		row->exited += copy.exited;
	}
	for (int s = 0; s < STATES; s++) {
		row->threads[s] = not_negative(n[s]);
		row->thread_ns[s] = not_negative(a[s] + n[s] * now_ns);
	}
	return 0;
}

static int waits_read(struct threads *threads, uint32_t slot, struct pool_row *row)
{
	for (size_t i = 0; i < threads->kernel->sizes.shards; i++) {
		const struct pool_waits *waits = waits_at(threads, slot, i);

		if (!waits)
			return -ENOMEM;
		counters_merge(&row->runqueue, waits, sizeof(*waits));
	}
	return 0;
}

/*
 * Reads pool @slot into @row (texts are left NULL), open intervals included up to @now_ns, a
 * CLOCK_MONOTONIC time taken before the call. 1 if the slot is in use, 0 if it is not, -EAGAIN if a
 * shard kept changing (counted as torn), -errno. SLOT_OTHER is always in use, and of no tree (0).
 */
static int pool_read(struct threads *threads, uint32_t slot, uint64_t now_ns, struct pool *pool,
		     struct pool_row *row)
{
	const struct pool_info *info = view_at(&threads->info, slot);
	char raw[COMM_LEN + 1] = "";
	int r;

	if (!info)
		return -ENOMEM;
	if (slot != SLOT_OTHER && !__atomic_load_n(&info->used, __ATOMIC_ACQUIRE))
		return 0;
	memset(row, 0, sizeof(*row));
	r = states_read(threads, slot, kernel_time_ns(threads->kernel, now_ns), row);
	if (r == -EAGAIN)
		kernel_drop(threads->kernel, info->tree, DROP_TORN);
	if (!r)
		r = waits_read(threads, slot, row);
	if (r)
		return r;
	memcpy(raw, info->name, COMM_LEN);
	utf8_copy(pool->name, sizeof(pool->name), slot == SLOT_OTHER ? POOL_OTHER_NAME : raw);
	pool->tree = info->tree;
	pool->role = info->role == POOL_SERVING ? POOL_SERVING : POOL_OTHER;
	return 1;
}

/* --- the end of a pool ---------------------------------------------------------------------- */

static bool pool_lives(const struct pool_row *row)
{
	uint64_t threads = 0;

	for (int state = 0; state < STATES; state++)
		threads |= row->threads[state];
	return threads;
}

/* From now on a look-up of the pool finds another slot. */
static void pool_hide(struct threads *threads, uint32_t slot, uint64_t now_ns)
{
	const struct pool_info *info = view_at(&threads->info, slot);
	struct pool_key key = { .tree = info->tree, .role = info->role };

	if (threads->leaving[slot].hidden_ns)
		return;
	memcpy(key.name, info->name, COMM_LEN);
	table_delete(threads->slots, &key);
	threads->leaving[slot].hidden_ns = now_ns;
}

/* Returns @slot to the kernel side, zeroed. No thread may be counted in it any more. */
static int pool_free(struct threads *threads, uint32_t slot)
{
	struct pool_info *info = view_at(&threads->info, slot);

	if (!info)
		return -ENOMEM;
	for (size_t i = 0; i <= threads->kernel->sizes.cpus; i++) {
		struct pool_shard *shard = states_at(threads, slot, i);

		if (!shard)
			return -ENOMEM;
		memset(shard, 0, sizeof(*shard));
	}
	for (size_t i = 0; i < threads->kernel->sizes.shards; i++) {
		struct pool_waits *waits = waits_at(threads, slot, i);

		if (!waits)
			return -ENOMEM;
		memset(waits, 0, sizeof(*waits));
	}
	holders_clear(&threads->holders, slot);
	trees_give_back(threads->kernel, info->tree, SHARE_POOLS, pool_is_other(info->name));
	threads->leaving[slot] = (struct leaving){ 0 };
	memset(info, 0, sizeof(*info));
	return table_push(threads->free, slot);
}

/*
 * Whether pool @slot, of which @row was read just now, is to be given back. Of a thread that leaves
 * a pool the exit is counted, also where it only takes another name.
 */
static bool pool_is_over(struct threads *threads, uint32_t slot, const struct pool_row *row,
			 uint64_t now_ns)
{
	struct leaving *leaving = &threads->leaving[slot];
	bool rests = leaving_rests(leaving, !pool_lives(row), row->exited);
	enum leaving_step step = leaving_next(leaving, rests, now_ns);

	if (slot == SLOT_OTHER)
		return false;
	if (step == LEAVING_HIDE)
		pool_hide(threads, slot, clock_monotonic_ns());
	return step == LEAVING_FREE;
}

/* --- a scrape ------------------------------------------------------------------------------- */

/* By a glance at one shard after the other: a sum that is never exact, and 0 only if all are. */
static bool pool_has_waiters(struct threads *threads, uint32_t slot)
{
	const struct pool_info *info = view_at(&threads->info, slot);
	uint64_t waiting = 0;

	if (!info || !__atomic_load_n(&info->used, __ATOMIC_ACQUIRE))
		return false;
	for (size_t i = 0; i <= threads->kernel->sizes.cpus; i++) {
		const struct pool_shard *shard = states_at(threads, slot, i);

		if (!shard)
			return false;
		waiting += __atomic_load_n(&shard->n[STATE_WAIT], __ATOMIC_RELAXED) +
			   __atomic_load_n(&shard->n[STATE_NETWORK], __ATOMIC_RELAXED);
	}
	return waiting;
}

/*
 * Has the kernel side judge anew the threads that wait in the middle of a request: some requests
 * have ended. It looks at all tasks of the machine, and at none if no thread waits.
 */
static int threads_judge(struct threads *threads)
{
	for (uint32_t slot = 0; slot < threads->kernel->sizes.pools; slot++)
		if (pool_has_waiters(threads, slot))
			return loader_walk(threads->kernel->loader, WALK_WAITS);
	return 0;
}

static void pool_fold_into(struct threads *threads, uint32_t slot, struct ledger *ledger,
			   ledger_handle handle, const struct pool *pool,
			   const struct pool_row *row)
{
	ledger_fold_pool(ledger, handle, pool->role, pool->name, row);
	holders_fold(&threads->holders, slot, ledger, handle, pool->name);
}

/* Adds @row of pool @slot to the ledger, or folds it. */
static void pool_tell(struct threads *threads, uint32_t slot, struct ledger *ledger,
		      ledger_handle handle, const struct pool *pool, const struct pool_row *row,
		      uint64_t now_ns)
{
	if (!pool_is_over(threads, slot, row, now_ns)) {
		ledger_add_pool(ledger, handle, pool->role, pool->name, row);
		holders_add(&threads->holders, slot, ledger, handle, pool->name);
		return;
	}
	pool_fold_into(threads, slot, ledger, handle, pool, row);
	pool_free(threads, slot);
	threads->freed = pool->tree;
}

/* Where slots have become free, threads that are in an `other` may have pools of their own. */
static void threads_seek(struct threads *threads)
{
	if (threads->freed && threads->crowded)
		trees_ask_walk(threads->kernel, threads->freed);
	threads->freed = 0;
	threads->crowded = false;
}

static int threads_read(struct threads *threads, const struct collection *collection)
{
	uint64_t now_ns = collection->budget.step_ns;
	ledger_handle handle;
	struct pool_row row;
	struct pool pool;
	int r = 0;

	ledger_begin_kind(collection->ledger, LEDGER_POOLS);
	ledger_begin_kind(collection->ledger, LEDGER_BLOCKED);
	for (uint32_t slot = 0; slot < threads->kernel->sizes.pools; slot++) {
		int found = pool_read(threads, slot, now_ns, &pool, &row);

		if (found < 0)
			r = found;
		if (found != 1 ||
		    !collection_find(collection, pool.tree, &row, sizeof(row), &handle))
			continue;
		threads->crowded |= pool_is_other(pool.name) && pool_lives(&row);
		pool_tell(threads, slot, collection->ledger, handle, &pool, &row, now_ns);
	}
	threads_seek(threads);
	return r;
}

static int threads_collect(void *state, struct collection *collection)
{
	struct threads *threads = state;
	struct budget *budget = &collection->budget;
	int judged = BUDGET_STEP(budget, &threads->judge, threads_judge(threads));
	int r = BUDGET_STEP(budget, &threads->read, threads_read(threads, collection));
	return r ? r : judged;
}

static void threads_show(void *state, const struct ledger *ledger, struct snapshot *snapshot)
{
	(void)state;
	snapshot->pools = ledger_pools(ledger, &snapshot->pools_len);
	snapshot->blocked = ledger_blocked(ledger, &snapshot->blocked_len);
}

static size_t threads_maps(void *state, struct map_row rows[static FEATURE_MAPS_MAX])
{
	struct threads *threads = state;
	uint64_t used = 0;

	for (uint32_t slot = 1; slot < threads->kernel->sizes.pools; slot++) {
		const struct pool_info *info = view_at(&threads->info, slot);

		used += info && info->used;
	}
	rows[0] = (struct map_row){ "pools", used, threads->kernel->sizes.pools - 1 };
	return 1;
}

/* --- the end of a tree ---------------------------------------------------------------------- */

static int pool_retire(struct threads *threads, uint32_t slot, const struct retirement *retirement)
{
	struct pool_row row;
	struct pool pool = { 0 };

	if (pool_read(threads, slot, retirement->now_ns, &pool, &row) != 1 || pool_lives(&row))
		return -EAGAIN;
	pool_hide(threads, slot, retirement->now_ns);
	pool_fold_into(threads, slot, retirement->ledger, retirement->handle, &pool, &row);
	pool_free(threads, slot);
	return 0;
}

/* Adds what was counted in @slot to what the ledger keeps. 0; -EAGAIN: it could not be read. */
static int pool_fold(struct threads *threads, uint32_t slot, const struct retirement *retirement)
{
	struct pool_row row;
	struct pool pool;

	if (pool_read(threads, slot, retirement->now_ns, &pool, &row) != 1)
		return -EAGAIN;
	pool_fold_into(threads, slot, retirement->ledger, retirement->handle, &pool, &row);
	return 0;
}

/* Does @step with each pool of the tree. 0, or -EAGAIN of any. */
static int pools_each(struct threads *threads, const struct retirement *retirement,
		      int (*step)(struct threads *threads, uint32_t slot,
				  const struct retirement *retirement))
{
	int later = 0;

	for (uint32_t slot = 1; slot < threads->kernel->sizes.pools; slot++) {
		const struct pool_info *info = view_at(&threads->info, slot);

		if (info && info->used && info->tree == retirement->tree)
			later |= step(threads, slot, retirement);
	}
	return later;
}

static void threads_fold(void *state, const struct retirement *retirement)
{
	pools_each(state, retirement, pool_fold);
}

static int threads_retire(void *state, const struct retirement *retirement)
{
	return pools_each(state, retirement, pool_retire);
}

const struct feature feature_threads = {
	.plan = {
		.name = "threads",
		.requires = "discovery",
		.backends = { { .object = "threads" } },
		.walks = {
			{ "threads_walk", WALK_TASKS },
			{ "threads_judge", WALK_WAITS },
		},
		.size = threads_size,
		.maps = { { "pool_states", states_entries }, { "pool_waits", waits_entries } },
		.fill = threads_fill,
	},
	.collector = true,
	.open = threads_open,
	.close = threads_close,
	.collect = threads_collect,
	.show = threads_show,
	.maps = threads_maps,
	.fold = threads_fold,
	.retire = threads_retire,
};
