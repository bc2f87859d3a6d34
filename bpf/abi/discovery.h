/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Trees: a process that listens on TCP, with all its descendants from birth. The kernel side
 * founds a tree when a process starts to listen, user space gives it a name
 * (exporter/kernel/trees.h) and returns its slot when the last thread is gone.
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
#define TREE_ORPHAN 16U /* the head has ended, others have not: find its heir */
/* Set by user space. */
#define TREE_TASKS 32U /* its runtime runs tasks on threads of any of them (Go) */

struct tree {
	__u32 flags;
	/*
	 * The head, in the initial pid namespace, and its start_boottime: together they are an
	 * identity. That is the founder, until user space replaces it by an heir.
	 */
	__u32 tgid;
	__u64 start_ns;
	__u64 cgroup; /* founder's cgroup, version 2 */
	__u64 cgroup_v1; /* and in the hierarchy of version 1 that arranges services; 0: none does
			  */
	__u32 threads; /* alive now; the last one to go rings the doorbell */
	__u32 processes; /* alive now */
	__u32 pools; /* slots that it has beside its `other`, at most POOLS_PER_TREE */
	__u32 endpoints; /* the same, at most ENDPOINTS_PER_TREE; user space gives slots back */
	char comm[COMM_LEN]; /* founder's, when it was founded: a name of last resort */
	__u32 uid; /* and whose that is: its real user id, in the initial user namespace */
	__u32 zero; /* explicit */
};
_Static_assert(sizeof(struct tree) == 72, "struct tree has a hole");

/*
 * What the iterator discovery_processes writes: one for each process that belongs to a tree, and
 * where its first thread has ended one more for each other thread.
 */
struct tree_process {
	__u64 start_ns; /* start_boottime of its leader */
	__u64 thread_start_ns; /* and of the thread */
	__u32 tgid; /* in the initial pid namespace, as tid */
	__u32 tid; /* a thread that lives; 0: the leader does not */
	__u32 exec_id; /* changes with every exec */
	__u32 tree;
};
_Static_assert(sizeof(struct tree_process) == 32, "struct tree_process has a hole");

#endif
