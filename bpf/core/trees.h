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
#ifndef WORKLOAD_CORE_TREES_H
#define WORKLOAD_CORE_TREES_H

#include "core/maps.h"

static inline struct tree *tree_at(__u32 index)
{
	return index ? bpf_map_lookup_elem(&trees, &index) : NULL;
}

static inline int tree_runs_tasks(__u32 index)
{
	struct tree *tree = tree_at(index);

	return tree && tree->flags & TREE_TASKS;
}

static inline struct user_share *share_of(__u32 index)
{
	return bpf_map_lookup_elem(&user_shares, &index);
}

/* Whether @user may take one more entry of table @kind, which has room for @max. */
static inline int share_left(__u32 user, __u32 kind, __u32 max)
{
	struct user_share *mine = share_of(user_share_index(user)), *all = share_of(SHARE_ALL);

	return !mine || !all || !share_refused(user, mine->taken[kind], all->taken[kind], max);
}

/* It has; user space gives it back (exporter/kernel/trees.h). */
static inline void share_take(__u32 user, __u32 kind)
{
	struct user_share *mine = share_of(user_share_index(user)), *all = share_of(SHARE_ALL);

	if (!mine || !all)
		return;
	__sync_fetch_and_add(&mine->taken[kind], 1);
	__sync_fetch_and_add(&all->taken[kind], 1);
}

/*
 * Enters @key, of @tree, into @table with a free slot. SLOT_OTHER, and counted as @reason, if there
 * is none; *fresh tells whether the slot is new or another CPU has just entered the same key.
 */
static __always_inline __u32 slot_take(void *free, void *table, const void *key, __u32 tree,
				       __u32 reason, int *fresh)
{
	__u32 *present, slot;

	*fresh = 0;
	if (bpf_map_pop_elem(free, &slot)) {
		drop_of(tree, reason);
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
	drop_of(tree, reason);
	return SLOT_OTHER;
}

#define STORAGES_MAX 8 /* maps of all programs that are looked for in a task's storage */

/*
 * Whether @task is in the map, which a look-up that found nothing does not tell before Linux 6.2:
 * it is refused while what runs on this CPU was interrupted with storage of tasks in its hands.
 * Here it is read, not looked up.
 */
static inline int storage_is_ours(struct task_struct *task)
{
	struct bpf_local_storage *storage = task->bpf_storage;
	struct hlist_node *node = BPF_CORE_READ(storage, list.first);

	for (int i = 0; node && i < STORAGES_MAX; i++) {
		struct bpf_local_storage_elem *elem =
			(void *)node - bpf_core_field_offset(struct bpf_local_storage_elem, snode);

		if (BPF_CORE_READ(elem, sdata.smap) == (void *)&tasks)
			return 1;
		node = BPF_CORE_READ(node, next);
	}
	return 0;
}

/* NULL for most: they have no storage at all, which one word tells. */
static inline struct thread *thread_of(struct task_struct *task)
{
	struct thread *thread;

	if (!PLAIN(struct task_struct, task)->bpf_storage)
		return NULL;
	thread = bpf_task_storage_get(&tasks, task, 0, 0);
	if (!thread && storage_refuses && storage_is_ours(task))
		drop(DROP_THREAD_BUSY);
	return thread;
}

/* Not on the stack, of which all that call each other share 512 bytes. */
static const struct thread_stored thread_fresh = {
	.thread = { .where = (__u64)SLOT_OTHER << 8 | STATE_NONE, .stale = 1 },
};

/*
 * Of two CPUs that make it at the same instant the kernel refuses one (EAGAIN of
 * bpf_local_storage_alloc() in kernel/bpf/bpf_local_storage.c), which finds it when it asks again.
 */
static inline struct thread *thread_storage(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&tasks, task, (void *)&thread_fresh,
						     BPF_LOCAL_STORAGE_GET_F_CREATE);

	return thread
		       ?: bpf_task_storage_get(&tasks, task, (void *)&thread_fresh,
					       BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/*
 * Storage of @task, which belongs to @tree or, with 0, is to found one; made if it has none.
 * Process context or an iterator only: making it allocates, which must not happen under a run
 * queue's lock. NULL beyond the quota, which is counted, and where the allocator's cache is empty.
 */
static inline struct thread *thread_make(struct task_struct *task, __u32 tree)
{
	struct thread *thread = thread_of(task);

	if (thread)
		return thread;
	if (!quota_take(QUOTA_THREADS, !tree)) {
		drop_of(tree, DROP_THREAD_QUOTA);
		return NULL;
	}
	thread = thread_storage(task);
	if (!thread || __sync_lock_test_and_set(&thread->held, 1))
		quota_give(QUOTA_THREADS); /* or the other CPU has made it */
	return thread;
}

/* Whether @task has state. */
static inline int thread_is_held(struct task_struct *task)
{
	struct thread *thread;

	if (!PLAIN(struct task_struct, task)->bpf_storage)
		return 0;
	thread = bpf_task_storage_get(&tasks, task, 0, 0);
	return thread ? thread->held : storage_refuses && storage_is_ours(task);
}

/* @task is freed, and its storage with it. */
static inline void thread_free(struct task_struct *task)
{
	struct thread *thread;

	if (!PLAIN(struct task_struct, task)->bpf_storage)
		return;
	thread = bpf_task_storage_get(&tasks, task, 0, 0);
	if (thread ? __sync_lock_test_and_set(&thread->held, 0)
		   : storage_refuses && storage_is_ours(task))
		quota_give(QUOTA_THREADS);
}

/*
 * A member of @index has no storage: user space shall walk the tasks, as often as it takes. Whether
 * that may help: those beyond the quota are looked for once there is room.
 */
static inline int tree_refuse(__u32 index)
{
	struct tree *tree = tree_at(index);

	if (!tree || !quota_has_room(QUOTA_THREADS, 0))
		return 0;
	__sync_fetch_and_or(&tree->flags, TREE_REFUSED);
	return 1;
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

/* The user that started it: a program that has other rights than its user is the user's as well. */
static inline __u32 user_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, real_cred, uid.val); /* copied as in cgroup_of() */
}

/*
 * Copied, where it is rarely asked: for each pointer that is loaded through a trusted one the
 * verifier searches all of the kernel's types, on every path (Linux 6.18: 0.8 ms).
 */
static inline __u64 cgroup_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

#define HIERARCHIES_MAX 32U

/*
 * The cgroup of a set in the hierarchy of version 1 that arranges services. The kernel lists a
 * set's cgroups, one for each hierarchy, before it gives the set to a task, and changes the list
 * only when a hierarchy is mounted or gone.
 */
VERIFIED_ALONE __u64 set_cgroup_v1(__u64 address)
{
	const struct css_set *set = (const struct css_set *)address;
	const struct list_head *end = &set->cgrp_links, *node = BPF_CORE_READ(set, cgrp_links.next);
	const struct cgrp_cset_link *link;
	const struct cgroup *cgroup;

	for (__u32 i = 0; i < HIERARCHIES_MAX && node && node != end; i++) {
		link = (const void *)node - bpf_core_field_offset(struct cgrp_cset_link, cgrp_link);
		cgroup = BPF_CORE_READ(link, cgrp);
		if (BPF_CORE_READ(cgroup, root, hierarchy_id) == (int)hierarchy)
			return BPF_CORE_READ(cgroup, kn, id);
		node = BPF_CORE_READ(node, next);
	}
	return 0;
}

static inline __u64 cgroup_v1_of(struct task_struct *task)
{
	return hierarchy ? set_cgroup_v1((__u64)BPF_CORE_READ(task, cgroups)) : 0;
}

/*
 * Whether @task is in the cgroups that the founder was in. Init systems arrange services by version
 * 2, by a hierarchy of version 1, or alike in both.
 */
static inline int tree_has_place_of(const struct tree *tree, struct task_struct *task)
{
	return tree->cgroup == cgroup_of(task) && tree->cgroup_v1 == cgroup_v1_of(task);
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
	return BPF_CORE_READ(task, signal, live.counter) != 0; /* copied as in cgroup_of() */
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
	tree->cgroup_v1 = cgroup_v1_of(leader);
	tree->uid = user_of(leader);
	bpf_probe_read_kernel_str(tree->comm, sizeof(tree->comm), leader->comm);
}

static inline int tree_is_headed_by(const struct tree *tree, const struct task_struct *leader)
{
	return tree->tgid == (__u32)leader->tgid && tree->start_ns == leader->start_boottime;
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
	if (tree && tree_is_headed_by(tree, leader_task))
		return before;
	if (!share_left(user_of(leader_task), SHARE_TREES, TREES_MAX) ||
	    bpf_map_pop_elem(&free_trees, &index)) {
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
	share_take(tree->uid, SHARE_TREES);
	process_join(leader_task, leader, index);
	/* Last: without a process, a tree in use is one that has ended. */
	__sync_fetch_and_or(&tree->flags, TREE_USED | TREE_WALK);
	doorbell_ring();
	return index;
}

/* The same for the process of @task; also 0, and counted, if the state of its leader is refused. */
static inline __u32 tree_found(struct task_struct *task)
{
	struct task_struct *leader_task = task->group_leader;
	struct thread *leader = thread_make(leader_task, 0);

	if (leader)
		return tree_found_by(leader_task, leader);
	if (quota_has_room(QUOTA_THREADS, 1))
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
