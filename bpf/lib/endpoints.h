/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Slots of endpoints, and which one a socket is measured in. */
#ifndef WORKLOAD_LIB_ENDPOINTS_H
#define WORKLOAD_LIB_ENDPOINTS_H

#include "lib/trees.h"

static inline __u32 endpoint_take(const struct endpoint_key *key, struct tree *tree)
{
	struct endpoint_info *info;
	__u32 slot;
	int fresh;

	slot = slot_take(&free_endpoints, &endpoint_slots, key, DROP_ENDPOINTS_FULL, &fresh);
	info = bpf_map_lookup_elem(&endpoint_info, &slot);
	if (!fresh || !info)
		return slot;
	__sync_fetch_and_add(&tree->endpoints, 1);
	info->tree = key->tree;
	info->port = key->port;
	__sync_lock_test_and_set(&info->used, 1);
	return slot;
}

/* The slot of (tree, port): its own, the tree's `other` (port 0), or SLOT_OTHER. */
static inline __u32 endpoint_slot(__u32 index, __u32 port)
{
	struct endpoint_key key = { .tree = index, .port = port };
	struct tree *tree = tree_at(index);
	__u32 *slot;

	if (!tree)
		return SLOT_OTHER;
	slot = bpf_map_lookup_elem(&endpoint_slots, &key);
	if (slot)
		return *slot;
	if (tree->endpoints < ENDPOINTS_PER_TREE)
		return endpoint_take(&key, tree);
	drop(DROP_ENDPOINTS_FULL);
	key.port = 0;
	slot = bpf_map_lookup_elem(&endpoint_slots, &key);
	return slot ? *slot : endpoint_take(&key, tree);
}

/* Measures @tracked at the endpoint of @tree from now on. */
static inline void tracked_assign(struct tracked *tracked, __u32 tree)
{
	__u32 slot = endpoint_slot(tree, tracked->port);
	struct endpoint_info *info = bpf_map_lookup_elem(&endpoint_info, &slot);

	tracked->slot = slot;
	tracked->tree = tree;
	tracked->generation = info ? info->generation : 0;
	tracked->sought = 0;
}

static inline struct endpoint_shard *endpoint_shard_at(__u32 slot, __u32 shard)
{
	__u32 index = slot * shards + shard;

	return bpf_map_lookup_elem(&endpoints, &index);
}

/* This CPU's copy of the socket's endpoint; NULL if the endpoint is gone. */
static inline struct endpoint_shard *tracked_current(const struct tracked *tracked)
{
	struct endpoint_shard *shard = endpoint_shard_at(tracked->slot,
							 bpf_get_smp_processor_id() & (shards - 1));

	return shard && shard->generation == tracked->generation ? shard : NULL;
}

/* The same for an event that is to be measured: what cannot be is counted. */
static inline struct endpoint_shard *tracked_shard(const struct tracked *tracked)
{
	struct endpoint_shard *shard = tracked_current(tracked);

	if (!shard)
		drop(DROP_STALE);
	return shard;
}

static inline int is_tcp(const struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_TCP;
}

/* The TCP socket that @file is; NULL if it is none. */
static inline struct sock *file_tcp_sock(struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);
	struct sock *sk;

	if (!socket)
		return NULL;
	sk = socket->sk;
	return sk && is_tcp(sk) ? sk : NULL;
}

/* Drop events of a listener since they were last counted. */
static inline void listener_count_drops(const struct sock *sk, struct tracked *tracked)
{
	__u32 now = sk->sk_drops.counter, since = now - tracked->drops;
	struct endpoint_shard *shard;

	if (!since)
		return;
	shard = endpoint_shard_at(tracked->slot, 0);
	if (!shard || shard->generation != tracked->generation)
		return;
	tracked->drops = now;
	__sync_fetch_and_add(&shard->overflows, since);
}

#endif
