/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Trees and their members.
 *
 * The life of a tree: a process that listens founds it (tree_found: a slot, one process, marked for
 * a walk). Its other threads are joined by the walk, its children at birth, both by writing `tree`
 * into the storage of the process's leader; each thread is *counted* when its next event, or the
 * walk, moves it into a pool of the tree (thread_count), and a process when it joins
 * (process_count). Both counts go down as they went up, at the last switch of a thread and at the
 * exit of a process. When both are 0 the tree has ended: user space folds its numbers and frees the
 * slot. A founder that dies at once may still be counted in and out after that, so the counts
 * themselves are never reset, and a slot that is not in use has no pools.
 */
#ifndef WORKLOAD_LIB_TREES_H
#define WORKLOAD_LIB_TREES_H

#include "lib/maps.h"

static inline struct tree *tree_at(__u32 index)
{
	return index ? bpf_map_lookup_elem(&trees, &index) : NULL;
}

/*
 * Enters @key into @table with a free slot. SLOT_OTHER, and counted as @reason, if there is none;
 * *fresh tells whether the slot is new or another CPU has just entered the same key.
 */
static __always_inline __u32 slot_take(void *free, void *table, const void *key, __u32 reason,
				       int *fresh)
{
	__u32 *present, slot;

	*fresh = 0;
	if (bpf_map_pop_elem(free, &slot)) {
		drop(reason);
		return SLOT_OTHER;
	}
	if (!bpf_map_update_elem(table, key, &slot, BPF_NOEXIST)) {
		*fresh = 1;
		return slot;
	}
	bpf_map_push_elem(free, &slot, 0);
	present = bpf_map_lookup_elem(table, key);
	if (present)
		return *present;
	drop(reason);
	return SLOT_OTHER;
}

/* NULL for most: they have no storage at all, which one word tells. */
static inline struct thread *thread_of(struct task_struct *task)
{
	if (!task->bpf_storage)
		return NULL;
	return bpf_task_storage_get(&tasks, task, 0, 0);
}

/*
 * Storage of @task, made if it has none. Process context or an iterator only: making it allocates,
 * which must not happen under a run queue's lock. NULL where the allocator's cache is empty.
 */
static inline struct thread *thread_make(struct task_struct *task)
{
	struct thread fresh = { .where = thread_where(SLOT_OTHER, STATE_NONE), .stale = 1 };

	return bpf_task_storage_get(&tasks, task, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* A member of @index has no storage: user space shall walk the tasks, as often as it takes. */
static inline void tree_refuse(__u32 index)
{
	struct tree *tree = tree_at(index);

	if (tree)
		__sync_fetch_and_or(&tree->flags, TREE_REFUSED);
}

/*
 * A listener is not tracked, or by an endpoint that is gone: user space shall walk the descriptors.
 * The request is kept in the unused slot 0.
 */
static inline void listeners_ask_walk(void)
{
	__u32 none = 0;
	struct tree *tree = bpf_map_lookup_elem(&trees, &none);

	if (tree)
		__sync_fetch_and_or(&tree->flags, TREE_WALK);
}

/* The tree of a process is that of its leader: one word for all its threads. */
static inline __u32 tree_of(struct task_struct *task)
{
	struct thread *leader = thread_of(task->group_leader);

	return leader ? leader->tree : 0;
}

static inline __u64 cgroup_of(struct task_struct *task)
{
	return task->cgroups->dfl_cgrp->kn->id;
}

/* Counts the process of @leader in @tree, and no longer where it was counted before. */
static inline void process_count(struct thread *leader, __u32 tree)
{
	__u32 before = __sync_lock_test_and_set(&leader->process, tree);
	struct tree *old = tree_at(before), *new = tree_at(tree);

	if (old)
		__sync_fetch_and_add(&old->processes, -1);
	if (new)
		__sync_fetch_and_add(&new->processes, 1);
	if (old && !old->processes && !old->threads)
		doorbell_ring();
}

static inline int process_lives(struct task_struct *task)
{
	return task->signal->live.counter != 0;
}

/*
 * The process of @leader_task belongs to @tree from now on; its threads are moved as they are met.
 * A walk may meet it when discovery_exit() has been there already: `live` falls before that, so one
 * of the two counts it out.
 */
static inline void process_join(struct task_struct *leader_task, struct thread *leader, __u32 tree)
{
	leader->tree = tree;
	leader->stale = 1;
	process_count(leader, tree);
	if (!process_lives(leader_task))
		process_count(leader, 0);
}

static inline void tree_init(struct tree *tree, struct task_struct *leader)
{
	tree->tgid = leader->tgid;
	tree->start_ns = leader->start_boottime;
	tree->cgroup = cgroup_of(leader);
	bpf_probe_read_kernel_str(tree->comm, sizeof(tree->comm), leader->comm);
}

/*
 * Makes the process of @leader_task a tree of its own, unless it is one already; 0 if there is no
 * room. Threads that it has already are walked by user space.
 */
static inline __u32 tree_found_by(struct task_struct *leader_task, struct thread *leader)
{
	__u32 before = leader->tree, index;
	struct tree *tree;

	tree = tree_at(before);
	if (tree && tree->tgid == (__u32)leader_task->tgid &&
	    tree->start_ns == leader_task->start_boottime)
		return before;
	if (bpf_map_pop_elem(&free_trees, &index)) {
		drop(DROP_TREES_FULL);
		return 0;
	}
	tree = tree_at(index);
	if (!tree)
		return 0;
	tree_init(tree, leader_task);
	if (__sync_val_compare_and_swap(&leader->tree, before, index) != before) {
		/* Another thread of the process was faster. */
		bpf_map_push_elem(&free_trees, &index, 0);
		return leader->tree;
	}
	process_join(leader_task, leader, index);
	/* Last: without a process, a tree in use is one that has ended. */
	__sync_fetch_and_or(&tree->flags, TREE_USED | TREE_WALK);
	doorbell_ring();
	return index;
}

/* The same for the process of @task; also 0, and counted, if the state of its leader is refused. */
static inline __u32 tree_found(struct task_struct *task)
{
	struct thread *leader = thread_make(task->group_leader);

	if (leader)
		return tree_found_by(task->group_leader, leader);
	drop(DROP_THREAD_STORAGE);
	return 0;
}

/* The caller has moved @thread's `where`: count it where it is now. */
static inline void thread_count(struct thread *thread, __u32 tree)
{
	__u32 before = __sync_lock_test_and_set(&thread->counted, tree);
	struct tree *old, *new;

	if (before == tree)
		return;
	old = tree_at(before);
	new = tree_at(tree);
	if (new)
		__sync_fetch_and_add(&new->threads, 1);
	if (old && __sync_fetch_and_add(&old->threads, -1) == 1 && !old->processes)
		doorbell_ring();
}

#endif
