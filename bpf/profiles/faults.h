/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Page faults: on which stacks memory is touched that is not there. The kernel counts a fault once
 * it has been served (the kernel's mm/memory.c): in the process, which may hold locks of its memory
 * meanwhile, and with interrupts on.
 */
#ifndef WORKLOAD_PROFILES_FAULTS_H
#define WORKLOAD_PROFILES_FAULTS_H

#include "lib/kernel.h"
#include "lib/task.h"
#include "core/trees.h"
#include "machine/waits.h"
#include "profiles/samples.h"

#define FAULTS_COST 4 /* of a sample, in those of waits: the stack was not used just before */

static inline int faults_are_looked_at(const struct thread *thread, __u32 state)
{
	__u32 tree = thread->tree;
	struct look *look = tree ? bpf_map_lookup_elem(&looked_at, &tree) : NULL;

	return look && state_is_looked_at(look, state);
}

/* Where it was user space that touched the memory, no call is noted in its registers. */
static inline __u64 fault_leaf(struct task_struct *task)
{
	return kernel_worker(task) ? 0 : frame_of_syscall((__s32)task_syscall(task));
}

/* One of @each faults. */
static inline int fault_sample(__u32 state, __u32 each)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread;
	int shift;

	if (task->flags & (PF_KTHREAD | PF_EXITING))
		return 0;
	thread = thread_of(task);
	if (!thread || !faults_are_looked_at(thread, state))
		return 0;
	shift = sample_draw(thread_faults_of(thread), ROW_FAULTS, FAULTS_COST, bpf_ktime_get_ns());
	if (shift >= 0)
		sample_count(thread, ROW_FAULTS, state, fault_leaf(task), (__u64)each << shift);
	return 0;
}

#endif
