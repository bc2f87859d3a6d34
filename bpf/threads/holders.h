/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pools that released the locks for which threads have waited. A lock of user space is released
 * by futex(2) in the thread that had it, which wakes the one that waits: as the kernel does not
 * know the holder of a lock, this is the one that held it last.
 *
 * The thread that wakes is current at sched_waking. The other one is awake at sched_wakeup, which
 * may be told on another CPU (kernel/sched/core.c), and need not have left its own before.
 */
#ifndef WORKLOAD_THREADS_HOLDERS_H
#define WORKLOAD_THREADS_HOLDERS_H

#include "core/maps.h"
#include "core/pools.h"
#include "core/trees.h"
#include "lib/task.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, POOLS_MAX);
	__type(key, __u32);
	__type(value, struct pool_holders);
} pool_holders SEC(".maps");

/* Whether @task, which is the current one, may be releasing a lock. */
static inline int task_releases(struct task_struct *task)
{
	return !(task->flags & PF_KTHREAD) &&
	       regs_syscall((struct pt_regs *)bpf_task_pt_regs(task)) == SYS_FUTEX &&
	       !task_compat(task);
}

/*
 * The pool of @task, which wakes a thread of @tree out of a wait for a lock; SLOT_OTHER: it is of
 * another tree. It is that also for time-outs, signals and kernel threads, which release nothing.
 */
static inline __u32 releaser_pool(struct task_struct *task, __u32 tree)
{
	struct thread *thread = thread_of(task);

	return thread && thread->tree == tree ? where_pool(thread->where) : SLOT_OTHER;
}

/* That of the pool called @name, which takes one that is free; NULL: all are taken. One that is
 * being named on another CPU is passed over: user space adds both up. */
static inline struct lock_holder *holder_find(struct pool_holders *holders, const __u64 name[2])
{
	for (int i = 0; i < LOCK_HOLDERS; i++) {
		struct lock_holder *holder = &holders->holders[i];
		__u64 state = *(volatile __u64 *)&holder->state;

		if (state == HOLDER_NAMED && holder->name[0] == name[0] &&
		    holder->name[1] == name[1])
			return holder;
		if (state == HOLDER_FREE &&
		    __sync_val_compare_and_swap(&holder->state, HOLDER_FREE, HOLDER_TAKEN) ==
			    HOLDER_FREE) {
			holder->name[0] = name[0];
			holder->name[1] = name[1];
			__sync_lock_test_and_set(&holder->state, HOLDER_NAMED);
			return holder;
		}
	}
	return NULL;
}

/* False: it has none of its own, or is another tree's by now. */
static inline int releaser_name(const struct thread *thread, __u64 name[2])
{
	__u32 pool = thread->releaser;
	struct pool_info *info = bpf_map_lookup_elem(&pool_info, &pool);

	if (pool == SLOT_OTHER || !info || !info->used || info->tree != thread->tree ||
	    pool_is_other(info->name))
		return 0;
	__builtin_memcpy(name, info->name, 2 * sizeof(*name));
	return 1;
}

/* @thread was at @where up to @now: if that was a wait for a lock, its time is its releaser's. */
VERIFIED_ALONE int lock_released(const struct thread *thread, __u64 where, __u64 now)
{
	struct pool_holders *holders;
	struct lock_holder *holder = NULL;
	__u64 name[2] = {};
	__u32 slot;

	if (!thread || where_state(where) != STATE_LOCK || !thread->since_ns ||
	    now <= thread->since_ns)
		return 0;
	slot = where_pool(where);
	holders = bpf_map_lookup_elem(&pool_holders, &slot);
	if (!holders)
		return 0;
	if (releaser_name(thread, name))
		holder = holder_find(holders, name);
	if (holder)
		__sync_fetch_and_add(&holder->ns, now - thread->since_ns);
	else
		__sync_fetch_and_add(&holders->other_ns, now - thread->since_ns);
	return 0;
}

#endif
