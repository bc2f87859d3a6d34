/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread machine: where a thread's time goes and how long it waited. No hook, no helper, no
 * map; the caller brings the facts, the clock and the shard to write to.
 */
#ifndef WORKLOAD_MACHINE_THREADS_H
#define WORKLOAD_MACHINE_THREADS_H

#include "abi/threads.h"
#include "machine/mutex.h"
#include "machine/words.h"

/* Lock waits on one address with less running than this between them are one episode. */
#define EPISODE_GAP_NS 20000ULL

/* A word that may be a lock's (machine/words.h). */
struct word_wait {
	__u64 address; /* 0: none */
	__u32 expected;
	__u32 zero;
};

/* Bits: what is known of the locks at which a thread may have waited for its turn. */
enum { TURN_SLEPT = 1, TURN_KNOWN = 2, TURN_TAKEN = 4 };

/*
 * One thread. `where` is pool and state in one word, only ever exchanged or compared and swapped: a
 * program that replaces a value accounts for leaving it, so the pools' sums hold whatever races.
 *
 * A thread is woken on another CPU than it runs on: what that needs is first, on one cache line.
 */
struct thread {
	__u64 where;
	__u64 since_ns; /* of the present state; 0 if it began before we looked */
	__u32 tree; /* the workload it shall be counted in, 0 for none */
	__u32 counted; /* the one it is counted in: changes together with `where` */
	__u32 process; /* leader: tree in which the process is counted */
	__u32 stale; /* tree, role or name has changed: find the pool anew, at so many events */
	__u16 role; /* enum pool_role */
	__u16 blocked; /* state of the last switch-out */
	__s32 syscall; /* of the last switch-out, for restart_syscall */
	__u64 request; /* the request that it is at: address of its struct conn; 0: none */
	__u64 request_ns; /* and that one's read_ns: see machine/binding.h */

	__u64 client; /* the file of that connection, an address; 0: none */
	__u64 left_ns; /* when it last went to wait for work */
	__u16 by_send; /* it answers a request that another thread has read */
	__u16 blocks; /* reads from its request's connection block: it is no event loop */
	__u32 turns; /* TURN_: which parts of `turn` mean something */
	__u64 lock_addr; /* the episode: which lock, */
	__u64 lock_start_ns; /* first switch-out (0: no episode), */
	__u64 lock_end_ns; /* last switch-in (0: still blocked), */
	__u64 lock_ran_ns; /* and what the thread has run since that */
	struct mutex_call mutex; /* while probes are on mutexes */
	struct word_wait word; /* where it waited last, for what may be a lock */
	struct word_turn turn;
	__u32 held; /* it is counted in QUOTA_THREADS */
	__u32 releaser; /* the pool of the thread that wakes it in futex(2); SLOT_OTHER: none does
			 */
};

#define THREAD_HEAD_BYTES offsetof(struct thread, lock_addr) /* what machine/binding.h looks at */

static inline __u64 thread_where(__u32 pool, __u32 state)
{
	return (__u64)pool << 8 | state;
}

static inline __u32 where_pool(__u64 where)
{
	return where >> 8;
}

static inline __u32 where_state(__u64 where)
{
	return where & 0xff;
}

/*
 * The thread that is running has read or answered a request: it serves from now on, and is in
 * another pool from its next event on. That may come at any instant, hence the order.
 */
static inline void thread_serves(struct thread *thread)
{
	if (thread->role == POOL_SERVING)
		return;
	thread->role = POOL_SERVING;
	__asm__ __volatile__("" ::: "memory");
	if (!thread->stale)
		thread->stale = 1;
}

/* The caller is the only writer of @shard; seq is odd meanwhile. */
static inline void shard_leave(struct pool_shard *shard, __u32 state, __u64 now)
{
	if (state >= STATES)
		return;
	shard->n[state]--;
	shard->a[state] += now;
}

static inline void shard_enter(struct pool_shard *shard, __u32 state, __u64 now)
{
	if (state >= STATES)
		return;
	shard->n[state]++;
	shard->a[state] -= now;
}

/*
 * The same lock: the two words on which a writer waits for one pthread_rwlock, first for the other
 * writers and then for the readers, are neighbours (__writers_futex, __wrphase_futex).
 */
static inline int lock_is_same(__u64 a, __u64 b)
{
	return a - b + sizeof(__u32) <= 2 * sizeof(__u32);
}

/*
 * A thread goes to sleep, on the lock at @lock_addr or, where that is 0, on none that is observed
 * here. Returns 1 and the length of an earlier lock episode if that is over now.
 */
static inline int thread_block(struct thread *thread, __u32 state, __u64 lock_addr, __u64 now,
			       __u64 *waited_ns)
{
	int over = 0;

	thread->blocked = state;
	if (thread->lock_start_ns && thread->lock_end_ns) {
		if (state == STATE_LOCK && lock_is_same(lock_addr, thread->lock_addr) &&
		    thread->lock_ran_ns < EPISODE_GAP_NS) {
			thread->lock_end_ns = 0;
			return 0;
		}
		/* The clocks of two CPUs may differ by a little. */
		*waited_ns = 0;
		if (thread->lock_end_ns > thread->lock_start_ns)
			*waited_ns = thread->lock_end_ns - thread->lock_start_ns;
		over = 1;
	}
	thread->lock_start_ns = 0;
	if (state == STATE_LOCK && lock_addr) {
		thread->lock_addr = lock_addr;
		thread->lock_start_ns = now;
		thread->lock_end_ns = 0;
	}
	return over;
}

/* A thread stops running, for whatever reason: running counts against an episode's gap. */
static inline void thread_ran(struct thread *thread, __u64 now)
{
	if (thread->lock_end_ns && thread->since_ns)
		thread->lock_ran_ns += now - thread->since_ns;
}

/* A thread runs again. */
static inline void thread_resume(struct thread *thread, __u64 now)
{
	if (thread->blocked == STATE_LOCK) {
		thread->lock_end_ns = now;
		thread->lock_ran_ns = 0;
	}
	thread->blocked = STATE_RUNNING;
}

/*
 * Whether a thread that comes to its CPU, or leaves it, has done the opposite before, and no hook
 * has seen that: some machines hide from all programs that an agent of the host hands its CPU on.
 */
static inline int thread_is_missed(const struct thread *thread, int comes)
{
	__u32 state = where_state(thread->where);

	return state != STATE_NONE && (state == STATE_RUNNING) == comes;
}

/*
 * It leaves its CPU, and that it came was not seen. What is known of its wait for a lock is when
 * that ended at the earliest, as the thread was woken then.
 */
static inline void thread_ran_unseen(struct thread *thread)
{
	if (where_state(thread->where) == STATE_RUNNABLE)
		thread_resume(thread, thread->since_ns);
}

#endif
