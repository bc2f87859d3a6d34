/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a socket comes to its state, and loses it: listeners, and their connections. */
#ifndef WORKLOAD_DISCOVERY_SOCKETS_H
#define WORKLOAD_DISCOVERY_SOCKETS_H

#include "core/endpoints.h"
#include "core/overflows.h"
#include "discovery/listening.h"

static const struct tracked tracked_empty; /* too large for the stack */

/* From now on the connections that @sk makes are known to be of @listener. False: no memory. */
static inline int socket_mark(struct sock *sk, __u64 listener)
{
	struct socket_mark *mark = bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!mark)
		return 0;
	mark->listener = listener;
	return 1;
}

/* Gives @sk, which has a mark, the state @fresh. NULL, and counted, if it cannot have any. */
static inline struct tracked *socket_make(struct sock *sk, const struct tracked *fresh, __u32 tree)
{
	__u64 key = (__u64)sk;
	struct tracked *tracked = bpf_map_lookup_elem(&sockets, &key);
	__u32 place;

	if (tracked)
		tracked_clear(key, tracked, tracked->storage);
	place = place_take(key);
	tracked = NULL;
	if (place && !bpf_map_update_elem(&sockets, &key, fresh, 0))
		tracked = bpf_map_lookup_elem(&sockets, &key);
	if (!tracked) {
		place_give(place);
		drop_of(tree, DROP_SOCKET_STORAGE);
		return NULL;
	}
	tracked->place = place;
	tracked->storage = (__u64)BPF_CORE_READ(sk, sk_bpf_storage);
	return tracked;
}

/* The state of a socket that listens; NULL, and counted, if it cannot have any. */
static inline struct tracked *listener_make(struct sock *sk, __u32 tree)
{
	struct tracked *tracked = tracked_at(sk);

	if (!tracked && !quota_take(QUOTA_SOCKETS, 1)) {
		drop_of(tree, DROP_LISTENER_QUOTA);
		return NULL;
	}
	if (!socket_mark(sk, (__u64)sk))
		drop_of(tree, DROP_SOCKET_STORAGE);
	else if (tracked)
		return tracked;
	else
		tracked = socket_make(sk, &tracked_empty, tree);
	if (!tracked) {
		bpf_sk_storage_delete(&marks, sk);
		quota_give(QUOTA_SOCKETS);
	}
	return tracked;
}

static inline struct tracked *listener_track(struct sock *sk, __u32 tree)
{
	struct tracked *tracked = listener_make(sk, tree);

	if (!tracked)
		return NULL;
	if (tracked->held != HELD_BY_LISTENER) {
		tracked->held = HELD_BY_LISTENER;
		tracked->drops = sk->sk_drops.counter;
		namespace_enter(sk);
	}
	tracked->port = sk->__sk_common.skc_num;
	tracked->tree = tree;
	/* Without bind(2) it has no port yet (tracked_find_port), and no endpoint. */
	if (tracked->port)
		tracked_assign(tracked, tree);
	return tracked;
}

static inline int connection_has_room(__u32 tree)
{
	if (quota_take(QUOTA_SOCKETS, 0))
		return 1;
	drop_of(tree, DROP_CONNECTION_QUOTA);
	return 0;
}

/* Gives a connection for which there is room, and which has a mark, its state; or takes the mark
 * away, so that nothing is asked again. */
static inline void connection_make(struct sock *sk, struct tracked *fresh)
{
	fresh->held = HELD_BY_CONNECTION;
	if (socket_make(sk, fresh, fresh->tree))
		return;
	quota_give(QUOTA_SOCKETS);
	bpf_sk_storage_delete(&marks, sk);
}

/* The same of one that has no mark; @fresh is measured at the endpoint of @tree. */
static inline void connection_adopt(struct sock *sk, struct tracked *fresh, __u32 tree)
{
	if (!connection_has_room(tree))
		return;
	if (!socket_mark(sk, 0)) {
		quota_give(QUOTA_SOCKETS);
		drop_of(tree, DROP_SOCKET_STORAGE);
		return;
	}
	fresh->port = sk->__sk_common.skc_num;
	tracked_assign(fresh, tree);
	connection_make(sk, fresh);
}

/*
 * The tree of a connection whose listener has no state: if it is one of Multipath TCP that a walk
 * has met, the connection gets its own. A client that speaks plain TCP is served by plain TCP.
 */
static inline __u32 connection_seek(struct sock *sk)
{
	struct listening_key key = listening_at(sk);
	struct listening *found = bpf_map_lookup_elem(&listening, &key);

	return found && found->multipath && listening_owner(found) ? found->tree : 0;
}

/*
 * The first event of a connection, or the second one where no program has seen the first: the
 * kernel has copied the mark of its listener to it, whose endpoint it has. @again: what has no mark
 * was asked before.
 */
static inline void connection_born(__u32 again, struct sock *sk)
{
	struct socket_mark *mark = bpf_sk_storage_get(&marks, sk, 0, 0);
	struct tracked fresh = {}, *listener;
	__u32 tree;

	if (!mark) {
		tree = listens_multipath && !again ? connection_seek(sk) : 0;
		if (tree)
			connection_adopt(sk, &fresh, tree);
		return;
	}
	if (tracked_at(sk))
		return;
	listener = bpf_map_lookup_elem(&sockets, &mark->listener);
	if (!listener || listener->held != HELD_BY_LISTENER) {
		bpf_sk_storage_delete(&marks, sk);
		drop(DROP_STALE);
		return;
	}
	fresh.slot = listener->slot;
	fresh.generation = listener->generation;
	fresh.tree = listener->tree;
	fresh.port = listener->port;
	if (connection_has_room(fresh.tree))
		connection_make(sk, &fresh);
	else
		bpf_sk_storage_delete(&marks, sk);
}

/* @sk, of which @tracked is the state, listens no longer or is no connection any more. */
static inline void socket_forget(struct sock *sk, struct tracked *tracked)
{
	if (tracked->held == HELD_BY_LISTENER) {
		listener_count_overflows(sk, tracked);
		namespace_leave(sk);
	}
	tracked_forget((__u64)sk, tracked, tracked->storage);
}

#endif
