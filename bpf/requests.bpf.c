/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests, socket backend: what happens on the connections of tracked listeners, told by the
 * tracepoints of the socket layer (Linux 6.3 and later).
 */
#include "lib/kernel.h"
#include "lib/endpoints.h"
#include "lib/maps.h"
#include "lib/task.h"
#include "lib/trees.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static inline struct tracked *tracked_of(struct sock *sk)
{
	return bpf_sk_storage_get(&sockets, sk, 0, 0);
}

/* Unread data bytes. A FIN takes a sequence number too, and is no data. */
static inline int unread_bytes(const struct sock *sk, const struct tcp_sock *tcp)
{
	int unread = (int)(tcp->rcv_nxt - tcp->copied_seq);

	if (sk->sk_shutdown & RCV_SHUTDOWN)
		unread--;
	return unread > 0;
}

static inline void request_record(struct endpoint_shard *shard, const struct request *request)
{
	if (request->queue_ns == QUEUE_UNKNOWN) {
		drop(DROP_UNPAIRED);
		return;
	}
	hist_add(&shard->queue, request->queue_ns);
	hist_add(&shard->service, request->service_ns);
	hist_add(&shard->duration, request->queue_ns + request->service_ns);
}

static inline void events_record(struct endpoint_shard *shard, __u32 events,
				 const struct request *ended)
{
	if (events & REQUEST_ENDED)
		request_record(shard, ended);
	if (events & REQUEST_ABANDONED_QUEUED)
		__sync_fetch_and_add(&shard->abandoned[STAGE_QUEUED], 1);
	if (events & REQUEST_ABANDONED_SERVICE)
		__sync_fetch_and_add(&shard->abandoned[STAGE_SERVICE], 1);
	if (events & REQUEST_UNREQUESTED)
		__sync_fetch_and_add(&shard->unrequested_sends, 1);
}

/* io_uring first: its sockets may be of any kind. */
static inline __u32 io_model(const struct file *file)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (task->flags & PF_IO_WORKER || task_syscall(task) == SYS_IO_URING_ENTER)
		return IO_URING;
	if (bpf_core_field_exists(file->f_ep) && file->f_ep)
		return IO_EPOLL;
	return file->f_flags & O_NONBLOCK ? IO_NONBLOCKING : IO_BLOCKING;
}

/* Counts the connection once, as soon as it is known how the server drives it. */
static inline void accepted_count(struct sock *sk, struct tracked *tracked,
				  struct endpoint_shard *shard)
{
	struct socket *socket;
	struct file *file;
	__u32 model;

	if (tracked->accepted)
		return;
	socket = sk->sk_socket;
	if (!socket)
		return; /* still in the accept queue, or orphaned there */
	file = socket->file;
	if (!file || __sync_lock_test_and_set(&tracked->accepted, 1))
		return;
	model = io_model(file);
	if (model < IO_MODELS)
		__sync_fetch_and_add(&shard->accepted[model], 1);
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(requests_readable, struct sock *sk)
{
	struct tracked *tracked = tracked_of(sk);
	struct tcp_sock *tcp;

	if (!tracked || tracked->conn.closed)
		return 0;
	if (sk->__sk_common.skc_state == TCP_LISTEN)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp || !unread_bytes(sk, tcp))
		return 0;
	conn_readable(&tracked->conn, bpf_ktime_get_ns());
	return 0;
}

/* The tree of the reading thread; a process that serves a socket it was handed is a service too. */
static inline __u32 reader_tree(struct thread *thread, struct task_struct *task)
{
	__u32 tree = thread ? thread->tree : tree_of(task);

	return tree ? tree : tree_found(task);
}

static inline void connection_read(struct sock *sk, struct tracked *tracked,
				   struct endpoint_shard *shard, struct thread *thread)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct request ended = {};
	__u64 arrived;
	__u32 events;

	if (!tcp)
		return;
	tracked->adopted = 0;
	arrived = conn_take(&tracked->conn);
	if (unread_bytes(sk, tcp))
		conn_left(&tracked->conn);
	events = conn_read(&tracked->conn, bpf_ktime_get_ns(), arrived, tcp->write_seq, &ended);
	events_record(shard, events, &ended);
	if (thread)
		thread->in_request = 1;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(requests_read, struct sock *sk, int ret, int flags)
{
	struct task_struct *task;
	struct tracked *tracked;
	struct endpoint_shard *shard;
	struct thread *thread;
	__u32 tree;

	if (ret <= 0 || flags & MSG_PEEK)
		return 0;
	tracked = tracked_of(sk);
	if (!tracked)
		return 0;
	task = bpf_get_current_task_btf();
	thread = thread_of(task);
	tree = reader_tree(thread, task);
	shard = tracked_current(tracked);
	if (tree != tracked->tree || !shard) {
		/* Handed over by another service, or by one that is gone. */
		tracked_assign(tracked, tree);
		shard = tracked_shard(tracked);
		if (!shard)
			return 0;
	}
	__sync_fetch_and_add(&shard->received_bytes, ret);
	accepted_count(sk, tracked, shard);
	if (!tracked->conn.closed)
		connection_read(sk, tracked, shard, thread);
	return 0;
}

static inline void connection_sent(struct sock *sk, struct tracked *tracked,
				   struct endpoint_shard *shard)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct request ended = {};
	__u32 events;

	if (!tcp)
		return;
	events = conn_sent(&tracked->conn, bpf_ktime_get_ns(), unread_bytes(sk, tcp),
			   tcp->write_seq, &ended);
	events_record(shard, events, &ended);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(requests_sent, struct sock *sk, int ret, int flags)
{
	struct tracked *tracked;
	struct endpoint_shard *shard;
	struct thread *thread;

	if (ret <= 0)
		return 0;
	tracked = tracked_of(sk);
	if (!tracked)
		return 0;
	shard = tracked_shard(tracked);
	if (!shard)
		return 0;
	__sync_fetch_and_add(&shard->sent_bytes, ret);
	accepted_count(sk, tracked, shard);
	thread = thread_of(bpf_get_current_task_btf());
	if (thread)
		thread->in_request = 0;
	if (!tracked->conn.closed && !tracked->adopted)
		connection_sent(sk, tracked, shard);
	return 0;
}

static inline void connection_closed(struct sock *sk, struct tracked *tracked)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct request ended = {};
	struct endpoint_shard *shard;
	__u32 events;

	if (!tcp)
		return;
	events = conn_closed(&tracked->conn, bpf_ktime_get_ns(), tcp->write_seq, &ended);
	shard = tracked_shard(tracked);
	if (!shard)
		return;
	accepted_count(sk, tracked, shard);
	events_record(shard, events, &ended);
}

/* Leaving the states in which answers can be sent ends a connection for us. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(requests_state, struct sock *sk, int oldstate, int newstate)
{
	struct tracked *tracked;

	if (newstate == TCP_LISTEN || oldstate == TCP_LISTEN || newstate == TCP_CLOSE_WAIT)
		return 0;
	tracked = tracked_of(sk);
	if (!tracked || tracked->conn.closed)
		return 0;
	if (newstate == TCP_ESTABLISHED) {
		struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

		/* Multipath TCP: data passes through another socket, unseen by the hooks above. */
		if (tcp && bpf_core_field_exists(tcp->is_mptcp) && tcp->is_mptcp)
			tracked->conn.closed = 1;
		return 0;
	}
	connection_closed(sk, tracked);
	return 0;
}

static inline void gauge_listener(struct sock *sk, struct tracked *tracked,
				  struct endpoint_gauges *gauges)
{
	listener_count_drops(sk, tracked);
	gauges->listeners++;
	gauges->accept_queue += sk->sk_ack_backlog;
	gauges->accept_queue_limit += sk->sk_max_ack_backlog;
}

static inline void gauge_connection(const struct tracked *tracked, struct endpoint_gauges *gauges)
{
	__u64 arrived = tracked->conn.arrived_ns;

	if (tracked->conn.closed)
		return;
	gauges->connections++;
	if (conn_in_service(&tracked->conn))
		gauges->in_service++;
	if (!conn_queued(&tracked->conn) || !arrived)
		return;
	gauges->queued++;
	if (!gauges->oldest_ns || arrived < gauges->oldest_ns)
		gauges->oldest_ns = arrived;
}

/* The sweep: settles what was answered a while ago and takes stock. One at a time. */
SEC("iter/bpf_sk_storage_map")
int requests_sweep(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct tracked *tracked = ctx->value;
	struct endpoint_gauges *gauges;
	struct endpoint_shard *shard;
	struct request ended = {};
	struct sock *sk = ctx->sk;
	unsigned char state;
	__u32 slot;

	if (!sk || !tracked)
		return 0;
	shard = tracked_current(tracked);
	slot = shard ? tracked->slot : SLOT_OTHER;
	gauges = bpf_map_lookup_elem(&endpoint_gauges, &slot);
	if (!gauges)
		return 0;
	gauges->sockets++;
	if (!shard)
		return 0; /* its workload was retired: counted when something happens on it */
	state = sk->__sk_common.skc_state;
	if (state == TCP_LISTEN) {
		gauge_listener(sk, tracked, gauges);
		return 0;
	}
	if (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT)
		return 0;
	events_record(shard, conn_settle(&tracked->conn, bpf_ktime_get_ns(), &ended), &ended);
	gauge_connection(tracked, gauges);
	return 0;
}
