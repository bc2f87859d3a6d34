/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What both request backends do when user space takes stock of all sockets. */
#ifndef WORKLOAD_REQUESTS_SWEEPS_H
#define WORKLOAD_REQUESTS_SWEEPS_H

#include "core/overflows.h"
#include "lib/walks.h"
#include "requests/requests.h"

/*
 * The workload of a listener was retired: a walk finds its holder. Asked for once, as no process
 * may hold it: then it is the kernel's own (nfsd), or on its way from one process to another, which
 * asks when it reads.
 */
static inline void listener_seek(struct tracked *tracked)
{
	if (tracked->sought)
		return;
	tracked->sought = 1;
	listeners_ask_walk();
}

static inline void listener_take_stock(struct sock *sk, struct tracked *tracked,
				       struct endpoint_gauges *gauges)
{
	listener_count_overflows(sk, tracked);
	gauges->sockets++;
	gauges->accept_queue += sk->sk_ack_backlog;
	gauges->accept_queue_limit += sk->sk_max_ack_backlog;
}

static inline void sweep_listener(struct sock *sk)
{
	struct tracked *tracked = bpf_sk_storage_get(&sockets, sk, 0, 0);
	struct endpoint_gauges *gauges;
	__u32 slot;

	if (!tracked || sk->__sk_common.skc_state != TCP_LISTEN)
		return;
	tracked_find_port(tracked, sk);
	tracked_seek(tracked);
	slot = tracked_current(tracked) ? tracked->slot : SLOT_OTHER;
	gauges = bpf_map_lookup_elem(&endpoint_gauges, &slot);
	if (!gauges)
		return;
	if (tracked_current(tracked))
		listener_take_stock(sk, tracked, gauges);
	else
		listener_seek(tracked);
}

/* The sweep, first part: listening sockets. */
SEC("iter/bpf_sk_storage_map")
int requests_sweep_listeners(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;

	if (!sk || !ctx->value)
		return 0;
	walk_pause(ctx->meta);
	sweep_listener(sk);
	return 0;
}

/* Counts the sockets that have state: of some the end was not seen. One walk at a time. */
SEC("iter/bpf_sk_storage_map")
int requests_recount(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct tracked *tracked = ctx->value;
	struct sock *sk = ctx->sk;

	if (!sk || !tracked)
		return 0;
	walk_pause(ctx->meta);
	/* A connection whose first event was not seen has its listener's still: it took nothing. */
	if (tracked->held == HELD_BY_CONNECTION ||
	    (tracked->held == HELD_BY_LISTENER && sk->__sk_common.skc_state == TCP_LISTEN))
		quota_meet(QUOTA_SOCKETS);
	return 0;
}

/* The earlier of two times, each 0 if there is none. */
static inline __u64 earlier(__u64 a, __u64 b)
{
	return !a || (b && b < a) ? b : a;
}

/*
 * Settles what was answered a while ago, unless the server is not done with it, and takes stock of
 * an open connection.
 */
static inline void sweep_connection(struct tracked *tracked, struct endpoint_shard *shard,
				    struct endpoint_gauges *gauges, struct stream *stream)
{
	__u64 arrived = tracked->conn.arrived_ns, opened, now = bpf_ktime_get_ns();
	struct request ended = {};
	__u32 held;
	int sends;

	if (conn_is_over(&tracked->conn))
		return;
	gauges->connections++;
	held = connection_held(tracked, now);
	sends = conn_sends(&tracked->conn, stream);
	if (!held && !sends)
		events_record(shard, conn_settle(&tracked->conn, now, &ended), &ended);
	stream_ask_reader(tracked, stream);
	if ((conn_in_service(&tracked->conn) && !conn_wants_no_answer(&tracked->conn, stream)) ||
	    held == HELD || (sends && conn_answered(&tracked->conn))) {
		gauges->in_service++;
		gauges->oldest_read_ns = earlier(gauges->oldest_read_ns,
						 conn_service_since(&tracked->conn));
	}
	opened = opening_waits(tracked);
	if (conn_awaits(&tracked->conn, opened))
		arrived = opened;
	else if (!stream->unread || !arrived || !conn_queued(&tracked->conn))
		return;
	gauges->queued++;
	gauges->oldest_ns = earlier(gauges->oldest_ns, arrived);
}

#endif
