/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests, socket backend: what happens on the connections of tracked listeners, told by the
 * tracepoints of the socket layer (Linux 6.3 and later). The state of a connection is storage on
 * its socket, which the kernel has cloned from the listener's.
 */
#include "lib/kernel.h"
#include "lib/requests.h"
#include "lib/spares.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* NULL for most, as thread_of(). */
static inline struct tracked *tracked_of(struct sock *sk)
{
	if (!sk->sk_bpf_storage)
		return NULL;
	return bpf_sk_storage_get(&sockets, sk, 0, 0);
}

/* Unread data bytes. A FIN takes a sequence number too, and is no data. */
static inline int unread_bytes(const struct sock *sk, const struct tcp_sock *tcp)
{
	int unread = (int)(tcp->rcv_nxt - tcp->copied_seq);

	if (sk->__sk_common.skc_flags & (1UL << SOCK_DONE))
		unread--;
	return unread > 0;
}

/*
 * When the last byte that was sent has left, or a moment later: to transmit it TCP has read the
 * clock (tcp_mstamp_refresh() in tcp_write_xmit()), and once more for every segment that has come
 * since. Now, if it waits still: for a window, for company (Nagle, cork), for its turn. What was
 * transmitted is asked first: so a send in between cannot make it look complete.
 */
static inline __u64 left_ns(const struct tcp_sock *tcp)
{
	return tcp->snd_nxt == tcp->write_seq ? tcp->tcp_clock_cache : bpf_ktime_get_ns();
}

static inline struct file *sock_file(struct sock *sk)
{
	struct socket *socket = sk->sk_socket;

	return socket ? socket->file : NULL;
}

SPARED_PROG("tp_btf/sk_data_ready", requests_readable, struct sock *sk)
{
	struct tracked *tracked = tracked_of(sk);
	struct tcp_sock *tcp;

	if (!tracked || sk->__sk_common.skc_state == TCP_LISTEN)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp || !unread_bytes(sk, tcp))
		return 0;
	/* TCP has read the clock when it took the segment (tcp_rcv_established()). */
	if (event_is_new(copy, &tracked->arrived_seq, tcp->rcv_nxt))
		conn_readable(&tracked->conn, tcp->tcp_clock_cache);
	return 0;
}

SPARED_PROG("tp_btf/sock_recv_length", requests_read, struct sock *sk, int ret, int flags)
{
	struct task_struct *task;
	struct tracked *tracked;
	struct endpoint_shard *shard;
	struct thread *thread;
	struct tcp_sock *tcp;
	__u64 arrived;

	if (ret <= 0 || flags & (MSG_PEEK | MSG_ERRQUEUE))
		return 0;
	tracked = tracked_of(sk);
	if (!tracked)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp || !event_is_new(copy, &tracked->read_seq, tcp->copied_seq))
		return 0;
	task = bpf_get_current_task_btf();
	thread = thread_of(task);
	shard = reader_shard(tracked, thread, task);
	if (!shard)
		return 0;
	if (!thread)
		thread = thread_of(task); /* the process may have become a service just now */
	__sync_fetch_and_add(&shard->received_bytes, ret);
	if (!tracked->accepted)
		accepted_count(sock_file(sk), tracked, shard, io_uring_task());
	if (tracked->conn.closed)
		return 0;
	arrived = conn_take(&tracked->conn);
	conn_left(&tracked->conn, unread_bytes(sk, tcp));
	connection_read(tracked, shard, thread, arrived, tcp->write_seq);
	return 0;
}

SPARED_PROG("tp_btf/sock_send_length", requests_sent, struct sock *sk, int ret, int flags)
{
	struct tracked *tracked;
	struct endpoint_shard *shard;
	struct tcp_sock *tcp;

	if (ret <= 0)
		return 0;
	tracked = tracked_of(sk);
	if (!tracked)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp || !event_is_new(copy, &tracked->sent_seq, tcp->write_seq))
		return 0;
	shard = tracked_shard(tracked);
	if (!shard)
		return 0;
	__sync_fetch_and_add(&shard->sent_bytes, ret);
	if (!tracked->accepted)
		accepted_count(sock_file(sk), tracked, shard, io_uring_task());
	connection_sent(tracked, shard, left_ns(tcp), unread_bytes(sk, tcp), tcp->write_seq);
	return 0;
}

/* Leaving the states in which answers can be sent ends a connection for us. */
SPARED_PROG("tp_btf/inet_sock_set_state", requests_state, struct sock *sk, int oldstate,
	    int newstate)
{
	struct tracked *tracked;
	struct tcp_sock *tcp;

	if (newstate == TCP_LISTEN || oldstate == TCP_LISTEN || newstate == TCP_CLOSE_WAIT)
		return 0;
	tracked = tracked_of(sk);
	if (!tracked || tracked->conn.closed)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 0;
	if (newstate == TCP_ESTABLISHED) {
		tracked_find_port(tracked, sk);
		/* Multipath TCP: data passes through another socket, unseen by the hooks above. */
		if (bpf_core_field_exists(tcp->is_mptcp) && tcp->is_mptcp)
			tracked->conn.closed = 1;
		return 0;
	}
	connection_closed(tracked, sock_file(sk), unread_bytes(sk, tcp), tcp->write_seq);
	return 0;
}

/* The sweep over all tracked sockets, in every network namespace. One at a time. */
SEC("iter/bpf_sk_storage_map")
int requests_sweep(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct tracked *tracked = ctx->value;
	struct endpoint_gauges *gauges;
	struct endpoint_shard *shard;
	struct sock *sk = ctx->sk;
	struct tcp_sock *tcp;
	unsigned char state;
	__u32 slot;

	if (!sk || !tracked)
		return 0;
	state = sk->__sk_common.skc_state;
	if (state == TCP_LISTEN)
		tracked_find_port(tracked, sk);
	shard = tracked_current(tracked);
	slot = shard ? tracked->slot : SLOT_OTHER;
	gauges = bpf_map_lookup_elem(&endpoint_gauges, &slot);
	if (!gauges)
		return 0;
	gauges->sockets++;
	if (!shard) {
		if (state == TCP_LISTEN)
			listener_seek(tracked);
		return 0;
	}
	if (state == TCP_LISTEN)
		sweep_listener(sk, tracked, gauges);
	if (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp)
		sweep_connection(tracked, shard, gauges, unread_bytes(sk, tcp));
	return 0;
}
