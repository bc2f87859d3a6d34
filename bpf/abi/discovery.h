/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Trees: a process that listens on TCP, with all its descendants from birth. The kernel side
 * founds a tree when a process starts to listen, user space gives it a name (read/trees.h) and
 * returns its slot when the last thread is gone.
 */
#ifndef WORKLOAD_ABI_DISCOVERY_H
#define WORKLOAD_ABI_DISCOVERY_H

#include "abi/kernel_types.h"

#define COMM_LEN 16

/* Bits of tree.flags, set by the kernel side, cleared by user space. */
#define TREE_USED 1U /* the slot belongs to a process */
#define TREE_WALK 2U /* some of its threads are not counted: walk the tasks */
#define TREE_EXEC 4U /* the founder has a new executable: identify again */
#define TREE_REFUSED 8U /* a thread of it could not have state: walk the tasks once more */

struct tree {
	__u32 flags;
	__u32 tgid; /* founder, in the initial pid namespace */
	__u64 start_ns; /* founder's start_boottime: pid and start time are an identity */
	__u64 cgroup; /* founder's cgroup (default hierarchy) */
	__u32 threads; /* alive now; the last one to go rings the doorbell */
	__u32 processes; /* alive now */
	__u32 pools; /* slots taken, at most POOLS_PER_TREE */
	__u32 endpoints; /* slots taken, at most ENDPOINTS_PER_TREE */
	char comm[COMM_LEN]; /* founder's, when it was founded: a name of last resort */
};
_Static_assert(sizeof(struct tree) == 56, "struct tree has a hole");

#endif
