/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many sockets and threads may have state. It lives on them, in no table of a fixed size, and
 * is charged to the exporter's own cgroup: user space says how many fit (exporter/kernel/quotas.h).
 */
#ifndef WORKLOAD_ABI_QUOTAS_H
#define WORKLOAD_ABI_QUOTAS_H

#include "abi/kernel_types.h"

#define QUOTA_SOCKETS 0U
#define QUOTA_THREADS 1U
#define QUOTAS 2U

/* Array `quotas`, one of each kind. */
struct quota {
	__u64 max; /* set by user space; 0: no bound */
	__u64 taken; /* times that state was made */
	__u64 given; /* and that it ended; of threads put right by user space, see
			quotas_recount_threads() */
	__u64 met; /* threads that a walk has met, set to 0 by user space before it */
	__u64 excess; /* user space's: how many more were known than the walk before has met */
};

/* How many have state now. */
static inline __s64 quota_held(const struct quota *quota)
{
	return (__s64)(quota->taken - quota->given);
}

/*
 * Whether there is room for another one. The last eighth is for those that begin something:
 * listeners, and processes that listen. So a crowd does not hide a service that starts meanwhile.
 */
static inline int quota_left(const struct quota *quota, int begins)
{
	__u64 max = begins ? quota->max : quota->max - quota->max / 8;

	return !quota->max || quota_held(quota) < (__s64)max;
}

#endif
