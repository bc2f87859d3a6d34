/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which pool a thread is in, by its name and its role. */
#ifndef WORKLOAD_THREADS_POOLS_H
#define WORKLOAD_THREADS_POOLS_H

#include "core/pools.h"
#include "core/trees.h"
#include "machine/names.h"

struct name {
	char bytes[COMM_LEN];
};

VERIFIED_ALONE int name_pattern(const struct name *comm, struct name *pattern)
{
	if (!comm || !pattern)
		return 0;
	name_normalise(comm->bytes, pattern->bytes);
	return 0;
}

static __attribute__((noinline)) __u32 pool_take(const struct pool_key *key, struct tree *tree)
{
	struct pool_info *info;
	__u32 slot;
	int fresh;

	if (!key || !tree)
		return SLOT_OTHER;
	slot = slot_take(&free_pools, &pool_slots, key, key->tree, DROP_POOLS_FULL, &fresh);
	info = bpf_map_lookup_elem(&pool_info, &slot);
	if (!fresh || !info)
		return slot;
	if (!pool_is_other(key->name))
		__sync_fetch_and_add(&tree->pools, 1);
	share_take(tree->uid, SHARE_POOLS);
	info->tree = key->tree;
	info->role = key->role;
	__builtin_memcpy(info->name, key->name, COMM_LEN);
	__sync_lock_test_and_set(&info->used, 1);
	return slot;
}

/* Whether @tree may have one pool more. */
static inline int pools_left(const struct tree *tree)
{
	return tree->pools < POOLS_PER_TREE && share_left(tree->uid, SHARE_POOLS, pools_max);
}

/* The pool of a thread of @index: that of its role and name, the tree's `other`, or slot 0. */
static __attribute__((noinline)) __u32 pool_find(__u32 index, __u32 role, struct task_struct *task)
{
	struct pool_key key = { .tree = index, .role = role };
	struct tree *tree = tree_at(index);
	struct name comm = {}, pattern = {};
	__u32 *slot;

	if (!tree || !(tree->flags & TREE_USED) || !task)
		return SLOT_OTHER;
	bpf_probe_read_kernel(&comm, sizeof(comm), task->comm);
	name_pattern(&comm, &pattern);
	__builtin_memcpy(key.name, pattern.bytes, COMM_LEN);
	slot = bpf_map_lookup_elem(&pool_slots, &key);
	if (slot)
		return *slot;
	if (pools_left(tree))
		return pool_take(&key, tree);
	drop_of(index, DROP_POOLS_FULL);
	__builtin_memset(key.name, 0, COMM_LEN);
	__builtin_memcpy(key.name, POOL_OTHER_NAME, sizeof(POOL_OTHER_NAME));
	slot = bpf_map_lookup_elem(&pool_slots, &key);
	return slot ? *slot : pool_take(&key, tree);
}

#endif
