/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mutex machine: one call of a pthread_mutex function, from its entry to its return. No hook,
 * no helper, no map; the caller brings the facts.
 */
#ifndef WORKLOAD_MACHINE_MUTEX_H
#define WORKLOAD_MACHINE_MUTEX_H

#include "abi/mutex.h"
#include "abi/threads.h"

/* include/uapi/asm-generic/errno.h */
#define EOWNERDEAD 130

/* A futex wait of the call itself happens so close below its frame. */
#define MUTEX_CALL_STACK_BYTES 4096ULL

/* The outermost call that a thread is in. */
struct mutex_call {
	__u64 start_ns; /* 0: it is in none */
	__u64 sp; /* the stack pointer as it will be at the return */
	__u32 function;
	__u32 held; /* another thread had the lock */
};

/*
 * Whether another thread than @self, the caller's thread id in its own pid namespace, holds the
 * mutex that begins with @words.
 *
 * glibc (sysdeps/nptl/bits/struct_mutex.h): lock, count, owner. musl (src/internal/pthread_impl.h):
 * type, lock (the owner; of a normal mutex EBUSY), waiters.
 */
static inline int mutex_is_held(__u32 layout, const __u32 words[3], __u32 self)
{
	__u32 owner;

	if (layout == MUTEX_GLIBC)
		return words[0] && words[2] != self;
	owner = words[1] & 0x3fffffff;
	return owner && (!(words[0] & 15) || owner != self);
}

/*
 * musl's functions end in one another (lock calls timedlock, that calls trylock): what is called
 * from within a call is part of it. A call whose return was never seen must not swallow the next:
 * that has a higher stack pointer, or is not a function which the first one calls.
 */
static inline void mutex_enter(struct mutex_call *call, __u32 function, __u64 sp, __u32 held,
			       __u64 now)
{
	if (call->start_ns && sp <= call->sp && function > call->function &&
	    call->sp - sp < MUTEX_CALL_STACK_BYTES)
		return;
	call->start_ns = now;
	call->sp = sp;
	call->function = function;
	call->held = held;
}

enum {
	MUTEX_ACQUIRED = 1, /* the caller has the lock now */
	MUTEX_WAITED = 2, /* and *waited_ns tells how long it took: the lock was held */
};

/* Returns MUTEX_ bits; 0 also for the return of a function that was called from within. */
static inline __u32 mutex_leave(struct mutex_call *call, __u64 sp, __s32 result, __u64 now,
				__u64 *waited_ns)
{
	__u32 what = 0;

	if (!call->start_ns || sp != call->sp)
		return 0;
	if (!result || result == EOWNERDEAD)
		what |= MUTEX_ACQUIRED;
	if (call->held && call->function != MUTEX_TRY) {
		what |= MUTEX_WAITED;
		*waited_ns = now > call->start_ns ? now - call->start_ns : 0;
	}
	call->start_ns = 0;
	return what;
}

/*
 * A thread blocks. Returns whether it does so on the lock that the call wants, which then tells of
 * the wait: the lock may have been taken by another thread just after the entry. If it is idle
 * there it waits for its turn to accept (classify_lock()), which is no wait for a lock.
 */
static inline int mutex_block(struct mutex_call *call, __u32 state, __u64 sp)
{
	if (!call->start_ns || call->sp - sp >= MUTEX_CALL_STACK_BYTES)
		return 0;
	if (state == STATE_LOCK || state == STATE_IDLE)
		call->held = state == STATE_LOCK;
	return state == STATE_LOCK;
}

#endif
