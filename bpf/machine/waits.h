/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wait of one thread, piece by piece, for profiles. Hooks of the scheduler follow it, one after
 * the other; a walk looks at it meanwhile, from another CPU, and tells of waits that last.
 *
 * `told` is the time up to which all is told. A program that tells a piece exchanges it, so that
 * each piece is told once. Hooks close it before they write anything else, and open it again behind
 * that: a walk that has read the rest, and can still exchange it, has read what belongs to it.
 */
#ifndef WORKLOAD_MACHINE_WAITS_H
#define WORKLOAD_MACHINE_WAITS_H

#include "abi/profiles.h"
#include "abi/threads.h"
#include "machine/paces.h"

#define WAIT_OPEN 1ULL /* in `told`: there is a wait, and it is sampled */

struct thread_wait {
	__u64 told; /* even, or with WAIT_OPEN */
	__u64 look_ns; /* struct look: at which the rest was written; else it is of an older one */
	__u64 hash; /* of its stack; of one that is not known: unseen_hash() */
	struct pace pace; /* of waits of the thread, sampled or not */
	__u32 tree;
	__u8 state; /* enum thread_state */
	__u8 shift; /* it stands for 1 << shift of them */
	__u8 woken; /* it is over, but that a CPU is waited for */
	__u8 met_state; /* by the walk, which alone writes this: of a wait that is older than */
	__u64 met_ns; /* this look */
};

/* A piece of a wait. */
struct wait_piece {
	struct stack_key key; /* of its stack */
	__u64 ns; /* times 1 << shift: what it stands for */
	__u32 shift;
	__u32 woken;
};

static inline __u64 wait_time(__u64 told)
{
	return told & ~WAIT_OPEN;
}

/* For waits of which the stack is not known, by pool. */
static inline __u64 unseen_hash(__u32 pool)
{
	return (__u64)pool << 1;
}

static inline int state_is_looked_at(const struct look *look, __u32 state)
{
	return look->states >> state & 1;
}

static inline void piece_of(const struct thread_wait *wait, struct wait_piece *piece)
{
	piece->key.hash = wait->hash;
	piece->key.tree = wait->tree;
	piece->key.state = wait->state;
	piece->shift = wait->shift;
	piece->woken = wait->woken;
}

/* @ns of that piece; of waits for work only what follows them counts. */
static inline void piece_lasts(struct wait_piece *piece, __u64 from, __u64 now)
{
	int counts = piece->key.state != STATE_IDLE || piece->woken;

	piece->ns = counts && now > from ? (now - from) << piece->shift : 0;
}

/* --- hooks ---------------------------------------------------------------------------------- */

/*
 * The thread does something else from *@now on, or from where the walk, whose clock may be ahead,
 * has told of it already. Whether there is @piece to be told.
 */
static inline int wait_stop(struct thread_wait *wait, const struct look *look, __u32 tree,
			    __u32 pool, __u64 *now, struct wait_piece *piece)
{
	__u64 told = __sync_lock_test_and_set(&wait->told, wait_time(*now)), from = wait_time(told);
	__u64 met_ns;

	if (*now < from)
		*now = from;
	if (wait->look_ns == look->since_ns) {
		piece_of(wait, piece);
		piece_lasts(piece, from, *now);
		return told & WAIT_OPEN;
	}
	met_ns = __sync_fetch_and_add(&wait->met_ns, 0); /* before the state, on each machine */
	wait->look_ns = look->since_ns;
	wait->hash = unseen_hash(pool);
	wait->tree = tree;
	wait->state = wait->met_state;
	wait->shift = 0;
	wait->woken = 0;
	if (met_ns != look->since_ns || !state_is_looked_at(look, wait->state))
		return 0;
	piece_of(wait, piece);
	piece_lasts(piece, from > look->since_ns ? from : look->since_ns, *now);
	return 1;
}

/* It waits from @now on for what is in the rest of @wait. */
static inline void wait_open(struct thread_wait *wait, __u64 now)
{
	__sync_lock_test_and_set(&wait->told, now | WAIT_OPEN);
}

/* It waits with the stack of @key, and that for 1 << @shift waits. */
static inline void wait_start(struct thread_wait *wait, const struct stack_key *key, __u32 shift,
			      __u64 now)
{
	wait->hash = key->hash;
	wait->tree = key->tree;
	wait->state = key->state;
	wait->shift = shift;
	wait->woken = 0;
	wait_open(wait, now);
}

/* Whether a wakeup ends it, as far as it goes on then only for want of a CPU. */
static inline int wait_can_wake(const struct thread_wait *wait, const struct look *look)
{
	if (wait->look_ns != look->since_ns)
		return wait->met_ns == look->since_ns && wait->met_state != STATE_RUNNABLE;
	return wait->told & WAIT_OPEN && !wait->woken && wait->state != STATE_RUNNABLE;
}

/* After wait_stop(): it was woken. */
static inline void wait_wake(struct thread_wait *wait, const struct look *look, __u64 now)
{
	wait->woken = 1;
	if (state_is_looked_at(look, STATE_RUNNABLE) || look->states & LOOK_QUEUED)
		wait_open(wait, now);
}

/* --- the walk ------------------------------------------------------------------------------- */

/* What the walk sees of a thread. */
struct wait_seen {
	__u64 since_ns; /* of the state, or of the thread; 0: not known */
	__u32 state, pool, tree;
	__u32 zero;
};

/*
 * Whether there is @piece to be told. A wait that was taken for another one, until the walk of
 * threads knew that it is one for work, ends without it.
 */
static inline int wait_walk(struct thread_wait *wait, const struct look *look,
			    const struct wait_seen *seen, __u64 now, struct wait_piece *piece)
{
	__u64 told = __sync_fetch_and_add(&wait->told, 0); /* before all else, on each machine */
	__u64 from = wait_time(told), next = wait_time(now);

	if (*(volatile __u64 *)&wait->look_ns == look->since_ns) {
		piece_of(wait, piece);
		if (!(told & WAIT_OPEN))
			return 0;
		if (piece->woken || piece->key.state == STATE_IDLE || seen->state != STATE_IDLE)
			next = now | WAIT_OPEN;
	} else {
		if (*(volatile __u64 *)&wait->met_ns != look->since_ns ||
		    seen->state == STATE_IDLE) {
			if (seen->state == STATE_NONE || seen->state == STATE_RUNNING)
				return 0;
			wait->met_state = seen->state;
			__sync_lock_test_and_set(&wait->met_ns, look->since_ns);
		}
		piece->key.hash = unseen_hash(seen->pool);
		piece->key.tree = seen->tree;
		piece->key.state = wait->met_state;
		piece->shift = piece->woken = 0;
		if (from < look->since_ns)
			from = look->since_ns;
		if (from < seen->since_ns)
			from = seen->since_ns;
		if (!state_is_looked_at(look, piece->key.state))
			return 0;
	}
	if (now <= from || __sync_val_compare_and_swap(&wait->told, told, next) != told)
		return 0;
	piece_lasts(piece, from, now);
	return piece->ns && (piece->woken || seen->state != STATE_IDLE);
}

#endif
