/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests, socket backend: what happens on the connections of tracked listeners, told by the
 * tracepoints of the socket layer (Linux 6.3 and later).
 */
#define KERNEL_HAS_CASTS
#include "lib/kernel.h"
#include "requests/bytes.h"
#include "requests/requests.h"
#include "requests/segments.h"
#include "requests/sweeps.h"
#include "lib/spares.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* tracked_at() for a socket that may be any: most have no storage, and need no look-up. */
static inline struct tracked *tracked_of(struct sock *sk)
{
	__u64 key = (__u64)sk, storage = (__u64)PLAIN(struct sock, sk)->sk_bpf_storage;
	struct tracked *tracked;

	if (!storage)
		return NULL;
	tracked = bpf_map_lookup_elem(&sockets, &key);
	return tracked && tracked->storage == storage ? tracked : NULL;
}

/*
 * A tracked socket is one of TCP: its listener was. So the cast, which costs nothing, cannot be
 * wrong; the helper asks again, for 10 ns.
 */
static inline const struct tcp_sock *tcp_of(struct sock *sk)
{
	if (casts)
		return bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
	return bpf_skc_to_tcp_sock(sk);
}

/* Unread data bytes. A FIN takes a sequence number too, and is no data. */
static inline int unread_bytes(const struct sock *sk, const struct tcp_sock *tcp)
{
	int unread = (int)(tcp->rcv_nxt - tcp->copied_seq);

	if (sk->__sk_common.skc_flags & (1UL << SOCK_DONE))
		unread--;
	return unread > 0;
}

/* Whether bytes are unread or on their way in. */
static inline int bytes_wait(const struct tracked *tracked, const struct sock *sk,
			     const struct tcp_sock *tcp)
{
	return segment_comes(tracked, tcp->rcv_nxt) || unread_bytes(sk, tcp);
}

/*
 * When the last byte that was sent has left, or a moment later: to transmit it TCP has read the
 * clock (tcp_mstamp_refresh() in tcp_write_xmit()), and once more for every segment that has come
 * since. Now, if it waits still: for a window, for company (Nagle, cork), for its turn. What was
 * transmitted is asked first: so a send in between cannot make it look complete. *sent_seq becomes
 * the end of what was sent.
 */
static inline __u64 left_ns(const struct tcp_sock *tcp, __u32 *sent_seq)
{
	__u32 left_seq = tcp->snd_nxt;

	*sent_seq = tcp->write_seq;
	return left_seq == *sent_seq ? tcp->tcp_clock_cache : bpf_ktime_get_ns();
}

/*
 * Whether the send that ends now found no room for all of it: it has set SOCK_NOSPACE
 * (tcp_sendmsg_locked()), as a poll may have before that, and there is no room
 * (sk_stream_memory_free()).
 */
static inline int send_was_cut(struct sock *sk, const struct tcp_sock *tcp)
{
	struct socket *socket = PLAIN(struct sock, sk)->sk_socket;
	__u32 lowat = tcp->notsent_lowat;

	if (!socket || !(socket->flags & (1UL << SOCK_NOSPACE)))
		return 0;
	return sk->sk_wmem_queued >= sk->sk_sndbuf ||
	       (lowat && tcp->write_seq - tcp->snd_nxt >= lowat);
}

static inline void stream_read(struct sock *sk, const struct tcp_sock *tcp, struct stream *stream)
{
	*stream = (struct stream){
		.sent_seq = tcp->write_seq,
		.acked_seq = tcp->snd_una,
		.unread = unread_bytes(sk, tcp),
	};
}

/* The file of a socket, for a read: it is known where the thread has read from there before. */
static inline struct file *reader_file(struct sock *sk, const struct tracked *tracked,
				       const struct thread *thread)
{
	struct socket *socket;

	if (thread && thread->request == (__u64)&tracked->conn &&
	    tracked->conn.thread == (__u64)thread)
		return (struct file *)thread->client;
	socket = PLAIN(struct sock, sk)->sk_socket;
	return socket ? socket->file : NULL;
}

/*
 * Arrival has two hooks, and the programs there are copies of each other (lib/spares.h). tcp_probe
 * tells of a segment as it comes, and so of bytes below the mark of a socket (SO_RCVLOWAT) as well;
 * but not of what comes while the connection is made, or after the server has shut its side: TCP
 * takes that elsewhere (tcp_rcv_state_process()). sk_data_ready tells of those too, but of bytes
 * below the mark only once it is reached (tcp_data_ready()).
 */
SEC("tp_btf/tcp_probe")
int BPF_PROG(requests_arrival, struct sock *sk, struct sk_buff *skb)
{
	struct tracked *tracked = tracked_of(sk);
	const struct tcp_sock *tcp = tracked ? tcp_of(sk) : NULL;
	struct receiver receiver;

	if (!tcp)
		return 0;
	receiver.next = tcp->rcv_nxt;
	receiver.window_end = tcp->rcv_wup + tcp->rcv_wnd;
	receiver.sent_seq = tcp->write_seq;
	segment_stamp(tracked, &receiver, skb);
	return 0;
}

/*
 * TCP has read the clock when it took the segment (tcp_rcv_established()), and its acknowledgement
 * before its bytes. What has left is told by the same clock: see left_ns().
 */
PROG_COPIES("tp_btf/sk_data_ready", requests_arrival_softirq, requests_arrival_spare,
	    requests_arrival_spare2, struct sock *sk)
{
	struct tracked *tracked = tracked_of(sk);
	const struct tcp_sock *tcp;

	if (!tracked || sk->__sk_common.skc_state == TCP_LISTEN)
		return 0;
	tcp = tcp_of(sk);
	if (!tcp || !unread_bytes(sk, tcp))
		return 0;
	if (event_is_new(1, &tracked->arrived_seq, tcp->rcv_nxt))
		connection_readable(tracked, tcp->rcv_nxt, tcp->tcp_clock_cache,
				    tcp->snd_una != tcp->write_seq);
	else
		conn_arrival_at(&tracked->conn, tcp->tcp_clock_cache);
	return 0;
}

SPARED_PROG("tp_btf/sock_recv_length", requests_read, struct sock *sk, int ret, int flags)
{
	struct task_struct *task;
	struct tracked *tracked;
	struct endpoint_shard *shard;
	struct thread *thread;
	const struct tcp_sock *tcp;
	struct reading reading = {};

	if (ret <= 0 || flags & (MSG_PEEK | MSG_ERRQUEUE))
		return 0;
	tracked = tracked_of(sk);
	if (!tracked)
		return 0;
	tcp = tcp_of(sk);
	if (!tcp || !event_is_new(copy, &tracked->read_seq, tcp->copied_seq))
		return 0;
	task = bpf_get_current_task_btf();
	thread = thread_of(task);
	shard = reader_shard(tracked, thread);
	if (!shard) {
		/* What was read before is counted where it was. */
		bytes_count_to(tracked, tracked_current(tracked), tcp, tcp->copied_seq - ret);
		reader_assign(tracked);
		shard = tracked_shard(tracked);
		if (!shard)
			return 0;
	}
	if (!thread)
		thread = thread_of(task); /* the process may have become a service just now */
	if (tracked->accepted != ACCEPTED_COUNTED)
		accepted_count_read(sock_file(sk), tracked, shard, io_uring_moves(sk));
	if (conn_is_over(&tracked->conn) ||
	    bytes_are_many(tcp->copied_seq, tracked->bytes.read_seq))
		bytes_count(tracked, shard, sk, tcp);
	if (tracked->bytes.counts == BYTES_AS_TOLD)
		__sync_fetch_and_add(&shard->received_bytes, ret);
	if (tracked->conn.closed) {
		connection_read_unmeasured(tracked, thread, bytes_wait(tracked, sk, tcp));
		return 0;
	}
	reading.arrived = conn_take(&tracked->conn);
	if (tracked->conn.protocol == PROTOCOL_NEW)
		reading_first(tracked, tcp->copied_seq - ret, &reading);
	if (conn_is_unread(&tracked->conn))
		reading.arrived = first_arrival(tracked, reading.arrived,
						BPF_CORE_READ_BITFIELD(tcp, syn_data_acked));
	conn_left(&tracked->conn, bytes_wait(tracked, sk, tcp));
	reading.sent_seq = tcp->write_seq;
	reading.round_ns = (tcp->srtt_us >> 3) * 1000ULL;
	reading.bytes = ret;
	reading.socket = (__u64)sk;
	if (connection_read(tracked, shard, &reading))
		connection_bind(tracked, thread, task, reader_file(sk, tracked, thread), 0);
	return 0;
}

/* What most sends need not do: the first one of a connection, and one that makes bytes many. */
static inline void rarely_sent(struct tracked *tracked, struct sock *sk, const struct tcp_sock *tcp)
{
	struct endpoint_shard *shard = tracked_shard(tracked);

	if (!shard)
		return;
	if (!tracked->accepted)
		accepted_count(sock_file(sk), tracked, shard, io_uring_moves(sk), 0);
	bytes_count(tracked, shard, sk, tcp);
}

SPARED_PROG("tp_btf/sock_send_length", requests_sent, struct sock *sk, int ret, int flags)
{
	struct tracked *tracked;
	const struct tcp_sock *tcp;
	struct task_struct *task;
	struct sending sending = { .bytes = ret, .socket = (__u64)sk };

	if (ret <= 0 && ret != -EAGAIN)
		return 0;
	tracked = tracked_of(sk);
	if (!tracked)
		return 0;
	tcp = tcp_of(sk);
	if (!tcp)
		return 0;
	sending.full = send_was_cut(sk, tcp);
	if (ret <= 0) {
		conn_tried(&tracked->conn, sending.full);
		return 0;
	}
	if (!event_is_new(copy, &tracked->sent_seq, tcp->write_seq))
		return 0;
	sending.now = left_ns(tcp, &sending.sent_seq);
	if (!tracked->accepted || bytes_are_many(sending.sent_seq, tracked->bytes.sent_seq))
		rarely_sent(tracked, sk, tcp);
	sending.gone = conn_waiting(&tracked->conn);
	if (sending.gone && bytes_wait(tracked, sk, tcp))
		sending.gone = 0;
	connection_sent(tracked, &sending);
	task = bpf_get_current_task_btf();
	if (sender_is_new(tracked, task))
		connection_bind(tracked, thread_of(task), task, sock_file(sk), 1);
	return 0;
}

static inline void connection_established(struct sock *sk, const struct tcp_sock *tcp,
					  struct tracked *tracked)
{
	tracked_find_port(tracked, sk);
	if (conn_is_new(&tracked->conn))
		tracked->conn.start_seq = tcp->write_seq;
	/* Multipath TCP: data passes through another socket, unseen by the hooks above. */
	if (bpf_core_field_exists(tcp->is_mptcp) && tcp->is_mptcp) {
		drop_of(tracked->tree, DROP_MULTIPATH);
		tracked->conn.closed = CONN_CLOSED;
		tracked->bytes.counts = BYTES_AS_TOLD;
		return;
	}
	if (tracked->born_ns && BPF_CORE_READ_BITFIELD(tcp, syn_data_acked) &&
	    unread_bytes(sk, tcp))
		connection_readable(tracked, tcp->rcv_nxt, tracked->born_ns, 0);
}

static inline void client_left(struct tracked *tracked, struct sock *sk)
{
	struct endpoint_shard *shard = tracked_current(tracked);

	if (shard)
		accepted_decide(sk, tracked, shard);
}

/* Leaving the states in which answers can be sent ends a connection for us. */
SOFTIRQ_PROG("tp_btf/inet_sock_set_state", requests_state, struct sock *sk, int oldstate,
	     int newstate)
{
	struct tracked *tracked;
	struct stream stream;
	const struct tcp_sock *tcp;

	tracked = newstate == TCP_LISTEN ? NULL : tracked_of(sk);
	if (!tracked)
		return 0;
	if (oldstate == TCP_LISTEN) {
		/* The child's first event. The other one is the end of the listener. */
		if (newstate == TCP_SYN_RECV)
			tracked->born_ns = bpf_ktime_get_ns();
		return 0;
	}
	if (newstate == TCP_CLOSE_WAIT)
		conn_fin(&tracked->conn, bpf_ktime_get_ns());
	else if (oldstate == TCP_FIN_WAIT1)
		connection_left(tracked, newstate);
	tcp = tcp_of(sk);
	if (!tcp)
		return 0;
	bytes_find_begin(&tracked->bytes, tcp);
	bytes_count(tracked, tracked_current(tracked), sk, tcp);
	if (newstate == TCP_CLOSE)
		tracked->bytes.counts = BYTES_AS_TOLD; /* it may be connected anew */
	if (newstate == TCP_CLOSE_WAIT) {
		client_left(tracked, sk);
		return 0;
	}
	if (conn_is_over(&tracked->conn))
		return 0;
	if (newstate == TCP_ESTABLISHED) {
		connection_established(sk, tcp, tracked);
		return 0;
	}
	stream_read(sk, tcp, &stream);
	stream.leaving = newstate == TCP_FIN_WAIT1 && !task_fails();
	stream.reset = newstate == TCP_CLOSE && sk->sk_err;
	connection_closed(tracked, sock_file(sk), &stream);
	bytes_all_sent(&tracked->bytes);
	return 0;
}

/* --- the sweep ------------------------------------------------------------------------------ */

/* Linux 6.3 has the cast: a bare address is read by it. */
VERIFIED_ALONE int sweep_stock(__u32 place)
{
	struct stock stock;
	struct stream stream;
	const struct tcp_sock *tcp;
	struct sock *sk;

	if (!stock_find(place, &stock))
		return 0;
	sk = bpf_rdonly_cast(stock.at, bpf_core_type_id_kernel(struct sock));
	tcp = bpf_rdonly_cast(stock.at, bpf_core_type_id_kernel(struct tcp_sock));
	bytes_count(stock.tracked, stock.shard, sk, tcp);
	accepted_decide(sk, stock.tracked, stock.shard);
	stream_read(sk, tcp, &stream);
	connection_take_stock(stock.tracked, stock.shard, stock.gauges, &stream);
	return 0;
}
