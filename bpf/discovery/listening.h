/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Listeners that walks have met, by where their connections can be recognised: those that are open
 * when the exporter starts, and those by plain TCP of a listener of Multipath TCP.
 */
#ifndef WORKLOAD_DISCOVERY_LISTENING_H
#define WORKLOAD_DISCOVERY_LISTENING_H

#include "lib/kernel.h"
#include "core/maps.h"
#include "core/trees.h"

struct listening_key {
	__u64 net;
	__u32 port;
	__u32 zero;
};

struct listening {
	__u32 tree;
	__u32 multipath; /* its connections have no state from their listener */
	__u64 start_ns; /* of the tree's founder */
	__u64 walk; /* that has met it last */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ENDPOINTS_MAX);
	__type(key, struct listening_key);
	__type(value, struct listening);
} listening SEC(".maps");

__u32 listens_multipath; /* whether any of them is one of Multipath TCP */
__u32 connections_walked; /* whether those that were open at the start have been looked for */

static inline struct listening_key listening_at(const struct sock *sk)
{
	return (struct listening_key){ .net = (__u64)sk->__sk_common.skc_net.net,
				       .port = sk->__sk_common.skc_num };
}

/* The tree that listens there; NULL if it has ended. */
static inline struct tree *listening_owner(const struct listening *found)
{
	struct tree *tree = tree_at(found->tree);

	return tree && tree->flags & TREE_USED && tree->start_ns == found->start_ns ? tree : NULL;
}

/* Where the connections of a listener belong that are open already. */
static inline void listening_note(const struct sock *sk, __u32 index, __u32 multipath, __u64 walk)
{
	struct listening_key key = listening_at(sk);
	struct listening value = { .tree = index, .multipath = multipath, .walk = walk };
	struct tree *tree = tree_at(index);

	if (tree)
		value.start_ns = tree->start_ns;
	if (bpf_map_update_elem(&listening, &key, &value, 0))
		drop(DROP_LISTENING_FULL);
}

static long listening_forget(struct bpf_map *map, const struct listening_key *key,
			     const struct listening *found, const __u64 *walk)
{
	if (!found->multipath || (*walk && found->walk != *walk))
		bpf_map_delete_elem(map, key);
	return 0;
}

/*
 * Once the connections have been walked no listener is looked up but one of Multipath TCP, and that
 * as long as walks of listeners meet it: @walk has come to its end, or is 0 for another walk. All
 * others give their places back.
 */
static inline void listening_clean(__u64 walk)
{
	if (connections_walked)
		bpf_for_each_map_elem(&listening, listening_forget, &walk, 0);
}

#endif
