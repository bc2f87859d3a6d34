/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What both request backends do when user space takes stock of all sockets. */
#ifndef WORKLOAD_REQUESTS_SWEEPS_H
#define WORKLOAD_REQUESTS_SWEEPS_H

#include "core/overflows.h"
#include "requests/requests.h"

#define SWEEP_STEP 512U /* places: half a millisecond without a scheduling point */

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

static inline void listener_take_stock(const struct sock *at, struct tracked *tracked,
				       struct endpoint_gauges *gauges)
{
	listener_count_overflows(at, tracked);
	gauges->sockets++;
	gauges->accept_queue += BPF_CORE_READ(at, sk_ack_backlog);
	gauges->accept_queue_limit += BPF_CORE_READ(at, sk_max_ack_backlog);
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
static inline void connection_take_stock(struct tracked *tracked, struct endpoint_shard *shard,
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

/* --- the walk ------------------------------------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sweep);
} sweeps SEC(".maps");

/* The state of the socket at @place, and its address; NULL if there is none. */
static inline struct tracked *tracked_at_place(__u32 place, __u64 *address)
{
	__u64 *cell = bpf_map_lookup_elem(&socket_places, &place);
	struct tracked *tracked;

	if (!cell || !*cell)
		return NULL;
	*address = *cell & ~PLACE_LOST;
	tracked = bpf_map_lookup_elem(&sockets, address);
	return tracked && tracked->place == place ? tracked : NULL;
}

/* What is at @place has no state: that may be made just now. If it was so at the sweep before, the
 * place is free. */
static inline void place_review(__u32 place)
{
	__u64 *cell = bpf_map_lookup_elem(&socket_places, &place), address;

	if (!cell || !*cell)
		return;
	address = *cell;
	if (!(address & PLACE_LOST)) {
		__sync_val_compare_and_swap(cell, address, address | PLACE_LOST);
		return;
	}
	if (__sync_val_compare_and_swap(cell, address, 0) != address)
		return;
	bpf_map_push_elem(&free_places, &place, 0);
	quota_give(QUOTA_SOCKETS);
	drop(DROP_END_UNSEEN);
}

/* What is at @place has a state, which was being made at the sweep before. */
static inline void place_keep(__u32 place)
{
	__u64 *cell = bpf_map_lookup_elem(&socket_places, &place), lost;

	if (!cell)
		return;
	lost = *cell;
	if (lost & PLACE_LOST)
		__sync_val_compare_and_swap(cell, lost, lost & ~PLACE_LOST);
}

static inline struct endpoint_gauges *tracked_gauges(const struct tracked *tracked)
{
	__u32 slot = tracked->slot;

	return bpf_map_lookup_elem(&endpoint_gauges, &slot);
}

static inline void sweep_listener(struct sock *at, struct tracked *tracked)
{
	struct endpoint_gauges *gauges;

	tracked_find_port(tracked, at);
	tracked_seek(tracked);
	gauges = tracked_gauges(tracked);
	if (!tracked_current(tracked))
		listener_seek(tracked);
	else if (gauges && BPF_CORE_READ(at, __sk_common.skc_state) == TCP_LISTEN)
		listener_take_stock(at, tracked, gauges);
}

/*
 * The socket at @place, if there is one, is measured where it is to be. 1: it is a connection. One
 * that is gone may have left its state, if that has not become another one's meanwhile.
 */
VERIFIED_ALONE int sweep_socket(__u32 place)
{
	__u64 address = 0, storage;
	struct tracked *tracked = tracked_at_place(place, &address);
	struct sock *at = (struct sock *)address;

	if (!tracked) {
		place_review(place);
		return 0;
	}
	place_keep(place);
	storage = tracked->storage;
	if (!storage)
		return 0; /* it is being made, or ends */
	if (storage != (__u64)BPF_CORE_READ(at, sk_bpf_storage)) {
		if ((__u64)bpf_map_lookup_elem(&sockets, &address) == (__u64)tracked)
			tracked_clear(address, tracked, storage);
		return 0;
	}
	if (tracked->held == HELD_BY_LISTENER) {
		sweep_listener(at, tracked);
		return 0;
	}
	tracked_seek(tracked);
	return 1;
}

/* A connection that is open, and where it is measured. */
struct stock {
	struct sock *at; /* its address */
	struct tracked *tracked;
	struct endpoint_shard *shard;
	struct endpoint_gauges *gauges;
};

/* That at @place. False: there is none. */
static inline int stock_find(__u32 place, struct stock *stock)
{
	__u64 address = 0;
	struct tracked *tracked = tracked_at_place(place, &address);
	struct sock *at = (struct sock *)address;
	__u8 state;

	if (!tracked || tracked->storage != (__u64)BPF_CORE_READ(at, sk_bpf_storage))
		return 0;
	stock->at = at;
	stock->tracked = tracked;
	stock->shard = tracked_current(tracked);
	stock->gauges = tracked_gauges(tracked);
	if (!stock->shard || !stock->gauges)
		return 0;
	stock->gauges->sockets++;
	state = BPF_CORE_READ(at, __sk_common.skc_state);
	return state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT;
}

/* Takes stock of the connection at @place, if it is open. Each backend has its own. */
int sweep_stock(__u32 place);

/*
 * A step for each map that the kernel has, as an iterator over maps is none over what is in them.
 * User space comes again until it is through.
 */
SEC("iter/bpf_map")
int requests_sweep(struct bpf_iter__bpf_map *ctx)
{
	__u32 none = 0, first;
	struct sweep *sweep = bpf_map_lookup_elem(&sweeps, &none);
	__u64 *places = bpf_map_lookup_elem(&socket_places, &none);
	__u8 pause = 0;

	if (!ctx->map || !sweep || !places)
		return 0;
	first = (__u32)sweep->next;
	if (!first)
		return 0;
	/* Beyond the last one there is nothing. */
	for (__u32 i = 0; i < SWEEP_STEP; i++)
		if (sweep_socket(first + i))
			sweep_stock(first + i);
	sweep->next = first + SWEEP_STEP <= *places ? first + SWEEP_STEP : 0;
	bpf_seq_write(ctx->meta->seq, &pause, sizeof(pause));
	return 0;
}

#endif
