/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes on pthread mutexes (--mutex.backend=uprobe): what user space tells the programs when it
 * attaches them to a function of a process, and what it is told in turn.
 */
#ifndef WORKLOAD_ABI_MUTEX_H
#define WORKLOAD_ABI_MUTEX_H

#include "abi/kernel_types.h"

/* In the order in which musl's call each other (src/thread/pthread_mutex_lock.c, _timedlock.c). */
#define MUTEX_FUNCTION_LIST(FUNCTION)              \
	FUNCTION(LOCK, "pthread_mutex_lock")       \
	FUNCTION(TIMED, "pthread_mutex_timedlock") \
	FUNCTION(CLOCK, "pthread_mutex_clocklock") \
	FUNCTION(TRY, "pthread_mutex_trylock")

enum mutex_function {
#define FUNCTION(id, name) MUTEX_##id,
	MUTEX_FUNCTION_LIST(FUNCTION)
#undef FUNCTION
		MUTEX_FUNCTIONS,
};

/* Whose pthread_mutex_t it is. */
enum mutex_layout { MUTEX_GLIBC, MUTEX_MUSL };

/* The cookie of an attachment. */
static inline __u64 mutex_cookie(__u32 layout, __u32 function)
{
	return (__u64)layout << 8 | function;
}

static inline __u32 mutex_cookie_layout(__u64 cookie)
{
	return cookie >> 8;
}

static inline __u32 mutex_cookie_function(__u64 cookie)
{
	return cookie & 0xff;
}

#endif
