/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pools: threads of a tree that have one role and whose names follow one pattern, and where their
 * time goes.
 *
 * For state s, n[s] threads are in it and total time = A[s] + n[s] * now (mod 2^64, read as
 * signed): on entering n += 1, A -= now, on leaving n -= 1, A += now. So an interval that is still
 * open counts, and no walk is needed. A thread may enter on one CPU and leave on another: only the
 * sum over the shards has a meaning.
 */
#ifndef WORKLOAD_ABI_THREADS_H
#define WORKLOAD_ABI_THREADS_H

#include "abi/discovery.h"
#include "abi/histogram.h"
#include "abi/kernel_types.h"

/* STATE(identifier, label): the order is part of the layout. */
#define STATE_LIST(STATE)           \
	STATE(RUNNING, "running")   \
	STATE(RUNNABLE, "runnable") \
	STATE(LOCK, "lock")         \
	STATE(DISK, "disk")         \
	STATE(NETWORK, "network")   \
	STATE(WAIT, "wait")         \
	STATE(SLEEP, "sleep")       \
	STATE(IDLE, "idle")

enum thread_state {
#define STATE(id, label) STATE_##id,
	STATE_LIST(STATE)
#undef STATE
		STATES,
	STATE_NONE = STATES, /* not accounted: not yet seen, or gone */
};

/*
 * ROLE(identifier, label). Serving: the thread has read or answered a request. It is decided once
 * and kept while the thread lives, since a worker that happens to rest is one all the same. What
 * merely shares a process and a name with those that serve (a master, an acceptor, a housekeeper)
 * must not dilute how busy they are.
 */
#define POOL_ROLE_LIST(ROLE) \
	ROLE(OTHER, "other") \
	ROLE(SERVING, "serving")

enum pool_role {
#define ROLE(id, label) POOL_##id,
	POOL_ROLE_LIST(ROLE)
#undef ROLE
		POOL_ROLES,
};

struct pool_key {
	__u32 tree;
	__u32 role;
	char name[COMM_LEN]; /* normalised, NUL-padded: keys are compared as bytes */
};

/* The pool of a tree, one of each role, for threads that have no room in one of their own. */
#define POOL_OTHER_NAME "other"

static inline int pool_is_other(const char name[COMM_LEN])
{
	for (unsigned int i = 0; i < sizeof(POOL_OTHER_NAME); i++)
		if (name[i] != POOL_OTHER_NAME[i])
			return 0;
	return 1;
}

/* Array `pool_info`, one per slot; used is set last. */
struct pool_info {
	__u32 tree;
	__u32 role;
	__u32 used;
	__u32 zero;
	char name[COMM_LEN];
};
_Static_assert(sizeof(struct pool_info) == 32, "struct pool_info has a hole");

/*
 * Array `pool_states`: slot * (CPUs + 1) + CPU. A shard has a single writer, the scheduler hooks of
 * its CPU with interrupts off; the extra last shard belongs to the iterators. seq is odd while a
 * shard is being written: a reader takes a copy only between two equal even values.
 */
struct pool_shard {
	__u64 seq;
	__u64 n[STATES];
	__u64 a[STATES];
	__u64 started;
	__u64 exited;
	__u64 pad[5]; /* whole cache lines: shards of different CPUs share none */
};
_Static_assert(sizeof(struct pool_shard) == 192, "struct pool_shard is not three cache lines");

/*
 * Array `pool_waits`: slot * shards + shard, atomic additions only. 64-bit cells, shown as they
 * are: see struct endpoint_counts.
 */
struct pool_waits {
	struct hist runqueue;
	struct hist disk;
	struct hist mutex;
	__u64 acquisitions; /* of mutexes; only while probes are on them */
};

#define LOCK_HOLDERS 7 /* of a pool */

enum { HOLDER_FREE, HOLDER_TAKEN, HOLDER_NAMED };

struct lock_holder {
	__u64 state; /* HOLDER_: exchanged only; it has a name last */
	__u64 name[2]; /* of a pool of the same tree, as in struct pool_info */
	__u64 ns; /* of waits that its threads have ended */
};

/*
 * Array `pool_holders`, by slot: how long threads of the pool were in STATE_LOCK, until they were
 * woken, by the pool of the thread that woke them. Times are
 * added atomically.
 */
struct pool_holders {
	struct lock_holder holders[LOCK_HOLDERS];
	__u64 other_ns; /* ended by no such thread, or by one of a pool that has no place */
};
_Static_assert(sizeof(struct pool_holders) == 232, "struct pool_holders has a hole");

#endif
