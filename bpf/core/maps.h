/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables that all objects share, and losses. The loader makes a table with the first object
 * that has it, and lends it to the others by name.
 */
#ifndef WORKLOAD_CORE_MAPS_H
#define WORKLOAD_CORE_MAPS_H

#include "lib/kernel.h"
#include "abi/discovery.h"
#include "abi/drops.h"
#include "abi/limits.h"
#include "abi/quotas.h"
#include "abi/shares.h"
#include "lib/knobs.h"
#include "machine/threads.h"
#include "machine/waits.h"

/* The wait is behind the thread, of which some have copies. */
struct thread_stored {
	struct thread thread;
	struct thread_wait wait;
	struct pace faults; /* of pages, for profiles */
};

static inline struct thread_wait *thread_wait_of(struct thread *thread)
{
	return &((struct thread_stored *)thread)->wait;
}

static inline struct pace *thread_faults_of(struct thread *thread)
{
	return &((struct thread_stored *)thread)->faults;
}

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_stored);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TREES_MAX);
	__type(key, __u32);
	__type(value, struct tree);
} trees SEC(".maps");

/* What each user has of the tables, and all together. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, USER_SHARES);
	__type(key, __u32);
	__type(value, struct user_share);
} user_shares SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, QUOTAS);
	__type(key, __u32);
	__type(value, struct quota);
} quotas SEC(".maps");

/* Free slots: filled by user space, lowest on top; slot 0 (`other`) is never among them. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, TREES_MAX);
	__uint(value_size, sizeof(__u32));
} free_trees SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TREES_MAX *DROP_REASONS); /* index: tree * DROP_REASONS + reason */
	__type(key, __u32);
	__type(value, __u64);
} drops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

/* A loss of @tree; SLOT_OTHER where it is not known whose it is. */
VERIFIED_ALONE int drop_of_add(__u32 tree, __u32 reason, __u64 count)
{
	__u32 index = tree * DROP_REASONS + reason;
	__u64 *cell = bpf_map_lookup_elem(&drops, &index);

	if (cell)
		__sync_fetch_and_add(cell, count);
	return 0;
}

static inline void drop_of(__u32 tree, __u32 reason)
{
	drop_of_add(tree, reason, 1);
}

static inline void drop(__u32 reason)
{
	drop_of(SLOT_OTHER, reason);
}

static inline int quota_has_room(__u32 kind, int begins)
{
	struct quota *quota = bpf_map_lookup_elem(&quotas, &kind);

	return !quota || quota_left(quota, begins);
}

/* One more of @kind is to have state: whether it may. What is taken is given back when it ends. */
static inline int quota_take(__u32 kind, int begins)
{
	struct quota *quota = bpf_map_lookup_elem(&quotas, &kind);

	if (!quota || !quota_left(quota, begins))
		return 0;
	__sync_fetch_and_add(&quota->taken, 1);
	return 1;
}

static inline void quota_give(__u32 kind)
{
	struct quota *quota = bpf_map_lookup_elem(&quotas, &kind);

	if (quota)
		__sync_fetch_and_add(&quota->given, 1);
}

/* A walk has met one of @kind that has state. */
static inline void quota_meet(__u32 kind)
{
	struct quota *quota = bpf_map_lookup_elem(&quotas, &kind);

	if (quota)
		quota->met++;
}

/* A walk could not meet all of @kind: as if it had met those that are known. */
static inline void quota_leave(__u32 kind)
{
	struct quota *quota = bpf_map_lookup_elem(&quotas, &kind);

	if (quota)
		quota->met = quota_held(quota);
}

/* Wakes user space, which looks at all trees. */
static inline void doorbell_ring(void)
{
	__u64 bell = 0;

	if (bpf_ringbuf_output(&doorbell, &bell, sizeof(bell), 0))
		drop(DROP_DOORBELL);
}

#endif
