/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of endpoints, and which of them a socket is measured in. Sizes marked "sized by the
 * loader" depend on the machine.
 */
#ifndef WORKLOAD_CORE_ENDPOINTS_H
#define WORKLOAD_CORE_ENDPOINTS_H

#include "core/trees.h"
#include "abi/requests.h"
#include "machine/bytes.h"
#include "machine/requests.h"

#define ACCEPTED_UNSEEN 0U
#define ACCEPTED_COUNTED 1U
#define ACCEPTED_UNSURE 2U /* it does not block, and is not in epoll (yet) */

/* Which kind of socket has state. */
#define HELD_BY_LISTENER 1U
#define HELD_BY_CONNECTION 2U

/*
 * State of a tracked socket: a listener, or a connection of one.
 *
 * Every event reads the first part, and few write it. Since Linux 6.1 it is a cache line, and so is
 * the next one: with the head of struct htab_elem, 56 bytes with the key, and that of the
 * allocator, 8 bytes, it fills one of the allocator's 256. An arrival is on one CPU and its read on
 * another, so only the line of arrivals, the third, moves between the two: what each event writes
 * is there, or in the second with what reads and sends write.
 */
struct tracked {
	__u32 slot; /* endpoint */
	__u32 generation; /* of that slot when it was looked up */
	__u32 tree; /* to which the endpoint belongs */
	__u32 port;
	__u32 accepted; /* counted by io_model: ACCEPTED_ */
	__u8 adopted; /* found open at start, nothing known of its present request */
	__u8 blocks; /* reads from it block: no event loop does so */
	__u8 sought; /* listener: a walk was asked to find its holder */
	__u32 held; /* of QUOTA_SOCKETS: HELD_ */
	__u32 drops; /* listener: sk_drops already counted */
	__u32 place; /* in `socket_places` */
	union {
		struct bytes bytes; /* socket backend */
		__u32 waited; /* its accept wait is counted; syscall backend */
	};
	__u64 born_ns; /* it was made, for the ACK that ended the handshake or for a SYN with data
			*/
	__u64 storage; /* its sk_bpf_storage: tells it from what is at its address later */
	struct conn conn;
	__u32 first_seq; /* after what came with the first unread byte */
	__u32 arrived_seq; /* of the last event of each kind: see event_is_new(), segment_comes() */
	__u32 read_seq;
	__u32 sent_seq;
};
_Static_assert(offsetof(struct tracked, conn) == 64, "struct tracked is not in cache lines");
_Static_assert(sizeof(struct tracked) == 3 * 64, "struct tracked is not three cache lines");

/* On each tracked socket. The kernel clones a listener's to each connection that it makes. */
struct socket_mark {
	__u64 listener; /* address of its struct sock; 0: not known */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct socket_mark);
} marks SEC(".maps");

/*
 * By the address of their struct sock, from the first event of a connection until TCP is done with
 * it. They are not storage on the socket, as that can be gone through by an iterator of the kernel
 * only, and some kernels refuse every iterator that is given values of a map.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SOCKETS_MAX);
	__type(key, __u64);
	__type(value, struct tracked);
} sockets SEC(".maps");

/* The addresses of all of them, without large gaps, for sweeps. 0: a free place; with PLACE_LOST: a
 * sweep has found no state. Place 0 has how many places were ever taken. */
#define PLACE_LOST 1ULL
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SOCKETS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} socket_places SEC(".maps");

/* Of those that were taken before. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, SOCKETS_MAX);
	__uint(value_size, sizeof(__u32));
} free_places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, ENDPOINTS_MAX);
	__uint(value_size, sizeof(__u32));
} free_endpoints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ENDPOINTS_MAX);
	__type(key, struct endpoint_key);
	__type(value, __u32);
} endpoint_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ENDPOINTS_MAX);
	__type(key, __u32);
	__type(value, struct endpoint_info);
} endpoint_info SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ENDPOINTS_MAX); /* times shards: sized by the loader */
	__type(key, __u32);
	__type(value, struct endpoint_shard);
} endpoints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ENDPOINTS_MAX);
	__type(key, __u32);
	__type(value, struct endpoint_gauges);
} endpoint_gauges SEC(".maps");

static inline struct endpoint_shard *endpoint_shard_at(__u32 slot, __u32 shard)
{
	__u32 index = slot * shards + shard;

	return bpf_map_lookup_elem(&endpoints, &index);
}

VERIFIED_ALONE int shards_give(__u32 slot, __u32 tree)
{
	struct endpoint_shard *shard;

	for (__u32 i = 0; i < SHARDS_MAX && i < shards; i++) {
		shard = endpoint_shard_at(slot, i);
		if (shard)
			shard->tree = tree;
	}
	return 0;
}

static inline __u32 endpoint_take(const struct endpoint_key *key, struct tree *tree)
{
	struct endpoint_info *info;
	__u32 slot;
	int fresh;

	slot = slot_take(&free_endpoints, &endpoint_slots, key, key->tree, DROP_ENDPOINTS_FULL,
			 &fresh);
	info = bpf_map_lookup_elem(&endpoint_info, &slot);
	if (!fresh || !info)
		return slot;
	if (key->port)
		__sync_fetch_and_add(&tree->endpoints, 1);
	share_take(tree->uid, SHARE_ENDPOINTS);
	shards_give(slot, key->tree);
	info->tree = key->tree;
	info->port = key->port;
	info->sought = 1;
	__sync_lock_test_and_set(&info->used, ENDPOINT_USED);
	return slot;
}

/* The slot of @key, which is in use, so that user space does not give it back; NULL: none. */
static inline __u32 *endpoint_seek(const struct endpoint_key *key)
{
	__u32 *slot = bpf_map_lookup_elem(&endpoint_slots, key);
	struct endpoint_info *info = slot ? bpf_map_lookup_elem(&endpoint_info, slot) : NULL;

	if (info)
		info->sought = 1;
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
	slot = endpoint_seek(&key);
	if (slot)
		return *slot;
	if (tree->endpoints < ENDPOINTS_PER_TREE &&
	    share_left(tree->uid, SHARE_ENDPOINTS, endpoints_max))
		return endpoint_take(&key, tree);
	drop_of(index, DROP_ENDPOINTS_FULL);
	key.port = 0;
	slot = endpoint_seek(&key);
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

/* This CPU's copy of the socket's endpoint; NULL if the endpoint is gone. */
static inline struct endpoint_shard *tracked_current(const struct tracked *tracked)
{
	struct endpoint_shard *shard = endpoint_shard_at(tracked->slot,
							 bpf_get_smp_processor_id() & (shards - 1));

	return shard && shard->generation == tracked->generation ? shard : NULL;
}

/* What is known of the socket's endpoint; NULL if the endpoint is gone. */
static inline struct endpoint_info *tracked_info(const struct tracked *tracked)
{
	__u32 slot = tracked->slot;
	struct endpoint_info *info = bpf_map_lookup_elem(&endpoint_info, &slot);

	return info && info->used != ENDPOINT_CLOSED && info->generation == tracked->generation
		       ? info
		       : NULL;
}

/* The state of @sk; NULL: it has none. What is left of a socket that was there before is none. */
static inline struct tracked *tracked_at(const struct sock *sk)
{
	__u64 key = (__u64)sk;
	struct tracked *tracked = bpf_map_lookup_elem(&sockets, &key);

	if (!tracked || tracked->storage != (__u64)BPF_CORE_READ(sk, sk_bpf_storage))
		return NULL;
	return tracked;
}

/* A place for @address; 0: there is none. */
static inline __u32 place_take(__u64 address)
{
	__u32 place = 0;
	__u64 *cell = bpf_map_lookup_elem(&socket_places, &place);

	if (cell && bpf_map_pop_elem(&free_places, &place)) {
		if (*cell + 1 >= SOCKETS_MAX)
			return 0;
		place = (__u32)__sync_fetch_and_add(cell, 1) + 1;
	}
	cell = bpf_map_lookup_elem(&socket_places, &place);
	if (!cell)
		return 0;
	*cell = address;
	return place;
}

static inline void place_give(__u32 place)
{
	__u64 *cell = bpf_map_lookup_elem(&socket_places, &place);

	if (cell && place && __sync_lock_test_and_set(cell, 0))
		bpf_map_push_elem(&free_places, &place, 0);
}

/*
 * The socket at @address, of which @tracked is the state, shall have it no longer. Elements of the
 * table are used again at once: @storage, which it had, tells that it is still the same. 1: it was.
 * A table that is busy just now (-EBUSY) keeps it, for the next sweep.
 */
static inline int tracked_forget(__u64 address, struct tracked *tracked, __u64 storage)
{
	__u32 place;

	if (!storage || __sync_val_compare_and_swap(&tracked->storage, storage, 0) != storage)
		return 0;
	place = tracked->place;
	if (bpf_map_delete_elem(&sockets, &address)) {
		tracked->storage = storage;
		return 0;
	}
	place_give(place);
	quota_give(QUOTA_SOCKETS);
	return 1;
}

/* The same of a socket that is gone: no program has seen its end. */
static inline void tracked_clear(__u64 address, struct tracked *tracked, __u64 storage)
{
	__u32 tree = tracked_info(tracked) ? tracked->tree : SLOT_OTHER;

	if (tracked_forget(address, tracked, storage))
		drop_of(tree, DROP_END_UNSEEN);
}

/* @what: LEARNED_ */
static inline void endpoint_learn(const struct tracked *tracked, __u32 what)
{
	struct endpoint_info *info = tracked_info(tracked);

	if (info && (info->learned & what) != what)
		__sync_fetch_and_or(&info->learned, what);
}

/*
 * The sweep passes by: what is measured in an `other`, for want of room, gets an endpoint of its
 * own where there is some by now. What it has counted stays where it is.
 */
static inline void tracked_seek(struct tracked *tracked)
{
	struct endpoint_key key = { .tree = tracked->tree, .port = tracked->port };
	struct endpoint_info *info = tracked_info(tracked);
	struct tree *tree;
	__u32 slot;

	/* An `other` has no port; nor has a listener that waits for its own. */
	if (!info || info->port || !tracked->port)
		return;
	tree = tree_at(tracked->tree);
	if (!tree || !(tree->flags & TREE_USED))
		return;
	if (bpf_map_lookup_elem(&endpoint_slots, &key) ||
	    (tree->endpoints < ENDPOINTS_PER_TREE &&
	     share_left(tree->uid, SHARE_ENDPOINTS, endpoints_max) &&
	     !bpf_map_peek_elem(&free_endpoints, &slot)))
		tracked_assign(tracked, tracked->tree);
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

/* The socket of any kind that @file is; NULL if it is none. */
static inline struct sock *file_sock(struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);

	return socket ? socket->sk : NULL;
}

/* The TCP socket that @file is; NULL if it is none. */
static inline struct sock *file_tcp_sock(struct file *file)
{
	struct sock *sk = file_sock(file);

	return sk && is_tcp(sk) ? sk : NULL;
}

#endif
