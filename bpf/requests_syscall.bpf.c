/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests, syscall backend: the same machine for kernels without the tracepoints of the socket
 * layer (5.15 to 6.2). Arrivals are told by tcp_probe, reads and sends by the return of system
 * calls, with the socket looked up behind the descriptor; the end of a connection by its state.
 *
 * A socket found through a descriptor is a bare address, which is read by the helper for that.
 */
#include "lib/kernel.h"
#include "requests/requests.h"
#include "requests/segments.h"
#include "requests/sweeps.h"
#include "lib/spares.h"
#include "machine/syscalls.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Unread data bytes. A FIN takes a sequence number too, and is no data. */
static inline int unread_bytes(struct sock *sk)
{
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	int unread = (int)(BPF_CORE_READ(tcp, rcv_nxt) - BPF_CORE_READ(tcp, copied_seq));

	if (BPF_CORE_READ(sk, __sk_common.skc_flags) & (1UL << SOCK_DONE))
		unread--;
	return unread > 0;
}

static inline __u32 sent_sequence(struct sock *sk)
{
	return BPF_CORE_READ((struct tcp_sock *)sk, write_seq);
}

static inline __u32 read_sequence(struct sock *sk)
{
	return BPF_CORE_READ((struct tcp_sock *)sk, copied_seq);
}

static inline __u64 round_trip(struct sock *sk)
{
	return (BPF_CORE_READ((struct tcp_sock *)sk, srtt_us) >> 3) * 1000ULL;
}

/* As in the socket backend, where it says why; in the same order. */
static inline __u64 left_ns(struct sock *sk)
{
	struct tcp_sock *tcp = (struct tcp_sock *)sk;

	if (BPF_CORE_READ(tcp, snd_nxt) != BPF_CORE_READ(tcp, write_seq))
		return bpf_ktime_get_ns();
	return BPF_CORE_READ(tcp, tcp_clock_cache);
}

/* As in the socket backend. */
static inline int send_was_cut(struct sock *sk)
{
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	__u32 lowat;

	if (!socket || !(BPF_CORE_READ(socket, flags) & (1UL << SOCK_NOSPACE)))
		return 0;
	lowat = BPF_CORE_READ(tcp, notsent_lowat);
	return BPF_CORE_READ(sk, sk_wmem_queued) >= BPF_CORE_READ(sk, sk_sndbuf) ||
	       (lowat && BPF_CORE_READ(tcp, write_seq) - BPF_CORE_READ(tcp, snd_nxt) >= lowat);
}

static inline void stream_read(struct sock *sk, struct stream *stream)
{
	struct tcp_sock *tcp = (struct tcp_sock *)sk;

	*stream = (struct stream){
		.sent_seq = sent_sequence(sk),
		.acked_seq = BPF_CORE_READ(tcp, snd_una),
		.unread = unread_bytes(sk),
	};
}

/* --- connections ---------------------------------------------------------------------------- */

static inline int is_mptcp(struct sock *sk)
{
	struct tcp_sock *tcp = (struct tcp_sock *)sk;

	return bpf_core_field_exists(tcp->is_mptcp) && BPF_CORE_READ(tcp, is_mptcp);
}

static inline int syn_had_data(struct sock *sk)
{
	struct tcp_sock *tcp = (struct tcp_sock *)sk;

	return BPF_CORE_READ_BITFIELD_PROBED(tcp, syn_data_acked);
}

static inline void connection_established(struct sock *sk, struct tracked *tracked)
{
	if (is_mptcp(sk)) {
		drop_of(tracked->tree, DROP_MULTIPATH);
		tracked->conn.closed = CONN_CLOSED;
		return;
	}
	if (conn_is_new(&tracked->conn))
		tracked->conn.start_seq = sent_sequence(sk);
	if (tracked->born_ns && syn_had_data(sk) && unread_bytes(sk))
		connection_readable(tracked, BPF_CORE_READ((struct tcp_sock *)sk, rcv_nxt),
				    tracked->born_ns, 0);
}

static inline void client_left(struct sock *sk, struct tracked *tracked)
{
	struct endpoint_shard *shard = tracked_current(tracked);

	conn_fin(&tracked->conn, bpf_ktime_get_ns());
	if (shard)
		accepted_decide(sk, tracked, shard);
}

/* Leaving the states in which answers can be sent ends a connection for us. */
static inline void connection_leaves(struct sock *sk, struct tracked *tracked, int newstate)
{
	struct socket *socket = sk->sk_socket;
	struct stream stream;

	stream_read(sk, &stream);
	stream.leaving = newstate == TCP_FIN_WAIT1 && !task_fails();
	stream.reset = newstate == TCP_CLOSE && sk->sk_err;
	connection_closed(tracked, socket ? socket->file : NULL, &stream);
}

SOFTIRQ_PROG("tp_btf/inet_sock_set_state", requests_tcp_state, struct sock *sk, int oldstate,
	     int newstate)
{
	struct tracked *tracked = newstate == TCP_LISTEN ? NULL : tracked_at(sk);

	if (!tracked)
		return 0;
	if (oldstate == TCP_LISTEN) {
		/* The child's first event. The other one is the end of the listener. */
		if (newstate == TCP_SYN_RECV) {
			tracked_find_port(tracked, sk);
			tracked->born_ns = bpf_ktime_get_ns();
		}
		return 0;
	}
	if (oldstate == TCP_FIN_WAIT1)
		connection_left(tracked, newstate);
	if (newstate == TCP_CLOSE_WAIT)
		client_left(sk, tracked);
	else if (newstate == TCP_ESTABLISHED)
		connection_established(sk, tracked);
	else if (!conn_is_over(&tracked->conn))
		connection_leaves(sk, tracked, newstate);
	return 0;
}

/* --- arrival -------------------------------------------------------------------------------- */

SOFTIRQ_PROG("tp_btf/tcp_probe", requests_arrival, struct sock *sk, struct sk_buff *skb)
{
	struct tracked *tracked = tracked_at(sk);
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	struct receiver receiver;

	if (!tracked || conn_is_over(&tracked->conn))
		return 0;
	receiver.next = BPF_CORE_READ(tcp, rcv_nxt);
	receiver.window_end = BPF_CORE_READ(tcp, rcv_wup) + BPF_CORE_READ(tcp, rcv_wnd);
	receiver.sent_seq = sent_sequence(sk);
	segment_stamp(tracked, &receiver, skb);
	return 0;
}

/* --- system calls --------------------------------------------------------------------------- */

/* Whether bytes are unread or on their way in. */
static inline int bytes_wait(const struct tracked *tracked, struct sock *sk)
{
	return segment_comes(tracked, BPF_CORE_READ((struct tcp_sock *)sk, rcv_nxt)) ||
	       unread_bytes(sk);
}

/*
 * The tracked connection behind a file. Most files are none, so the cheap question comes first:
 * what would be its socket is looked up before it is known that the file is one.
 */
static inline struct tracked *file_connection(struct file *file, struct sock **sk)
{
	struct tracked *tracked;
	struct socket *socket;

	if (!file)
		return NULL;
	socket = BPF_CORE_READ(file, private_data);
	if (!socket)
		return NULL;
	*sk = BPF_CORE_READ(socket, sk);
	tracked = tracked_at(*sk);
	if (!tracked || !file_is_socket(file))
		return NULL;
	return tracked;
}

static inline void descriptor_read(__u32 copy, struct task_struct *task, __u32 fd, long bytes)
{
	struct file *file = descriptor_file(task, fd);
	struct sock *sk;
	struct tracked *tracked = file_connection(file, &sk);
	struct endpoint_shard *shard;
	struct thread *thread;
	struct reading reading = {};

	if (!tracked || !event_is_new(copy, &tracked->read_seq, read_sequence(sk)))
		return;
	thread = thread_of(task);
	shard = reader_shard(tracked, thread);
	if (!shard) {
		reader_assign(tracked);
		shard = tracked_shard(tracked);
	}
	if (!shard)
		return;
	if (!thread)
		thread = thread_of(task); /* the process may have become a service just now */
	__sync_fetch_and_add(&shard->received_bytes, bytes);
	if (tracked->accepted != ACCEPTED_COUNTED)
		accepted_count_read(file, tracked, shard, 0);
	if (tracked->conn.closed) {
		connection_read_unmeasured(tracked, thread, bytes_wait(tracked, sk));
		return;
	}
	reading.arrived = conn_take(&tracked->conn);
	if (conn_is_unread(&tracked->conn))
		reading.arrived = first_arrival(tracked, reading.arrived, syn_had_data(sk));
	if (tracked->conn.protocol == PROTOCOL_NEW)
		reading_first(tracked, read_sequence(sk) - (__u32)bytes, &reading);
	conn_left(&tracked->conn, bytes_wait(tracked, sk));
	reading.sent_seq = sent_sequence(sk);
	reading.round_ns = round_trip(sk);
	reading.bytes = bytes;
	if (connection_read(tracked, shard, &reading))
		connection_bind(tracked, thread, task, file, 0);
}

static inline void descriptor_sent(__u32 copy, struct task_struct *task, __u32 fd, long bytes)
{
	struct file *file = descriptor_file(task, fd);
	struct sock *sk;
	struct tracked *tracked = file_connection(file, &sk);
	struct endpoint_shard *shard;
	struct sending sending = { .bytes = bytes };

	if (!tracked)
		return;
	sending.full = send_was_cut(sk);
	if (bytes < 0) {
		conn_tried(&tracked->conn, sending.full);
		return;
	}
	if (!event_is_new(copy, &tracked->sent_seq, sent_sequence(sk)))
		return;
	shard = tracked_shard(tracked);
	if (!shard)
		return;
	__sync_fetch_and_add(&shard->sent_bytes, bytes);
	if (!tracked->accepted)
		accepted_count(file, tracked, shard, 0, 0);
	sending.gone = conn_waiting(&tracked->conn);
	if (sending.gone && bytes_wait(tracked, sk))
		sending.gone = 0;
	sending.now = left_ns(sk);
	sending.sent_seq = sent_sequence(sk);
	connection_sent(tracked, &sending);
	if (sender_is_new(tracked, task))
		connection_bind(tracked, thread_of(task), task, file, 1);
}

static inline void descriptor_accepted(struct task_struct *task, __u32 fd)
{
	struct sock *sk;
	struct tracked *tracked = file_connection(descriptor_file(task, fd), &sk);
	struct endpoint_shard *shard = tracked ? tracked_current(tracked) : NULL;
	__u64 now = bpf_ktime_get_ns();

	if (shard && tracked->born_ns && now > tracked->born_ns &&
	    !__sync_lock_test_and_set(&tracked->waited, 1))
		hist_add(&shard->accept_wait, now - tracked->born_ns);
}

/* A look at bytes that stay where they are is no read. */
static inline int call_peeks(__s64 number, const __u64 args[4])
{
	if (number == SYS_RECVFROM || number == SYS_RECVMMSG)
		return args[3] & (MSG_PEEK | MSG_ERRQUEUE);
	return number == SYS_RECVMSG && args[2] & (MSG_PEEK | MSG_ERRQUEUE);
}

/* Whether a call of @role that has returned @ret did something, or found no room to send. */
static inline int call_matters(__u32 role, long ret)
{
	if (role & ROLE_ACCEPT)
		return ret >= 0;
	return ret > 0 || (ret == -EAGAIN && role & (ROLE_SEND | ROLE_SPLICE));
}

SPARED_PROG("tp_btf/sys_exit", requests_sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task;
	__s64 number = regs_syscall(regs);
	__u32 role = syscall_role(number);
	__u64 args[4];
	long bytes;

	if (!role || !call_matters(role, ret))
		return 0;
	task = bpf_get_current_task_btf();
	if (task_compat(task))
		return 0;
	regs_args(regs, args);
	bytes = role & ROLE_MESSAGES && ret > 0 ? 0 : ret;
	if (role & ROLE_ACCEPT)
		descriptor_accepted(task, ret);
	if (role & ROLE_READ && ret > 0 && !call_peeks(number, args))
		descriptor_read(copy, task, args[0], bytes);
	if (role & (ROLE_SEND | ROLE_SPLICE))
		descriptor_sent(copy, task, role & ROLE_SPLICE ? args[2] : args[0], bytes);
	return 0;
}

/* --- the sweep ------------------------------------------------------------------------------ */

VERIFIED_ALONE int sweep_stock(__u32 place)
{
	struct stock stock;
	struct stream stream;

	if (!stock_find(place, &stock))
		return 0;
	accepted_decide(stock.at, stock.tracked, stock.shard);
	stream_read(stock.at, &stream);
	connection_take_stock(stock.tracked, stock.shard, stock.gauges, &stream);
	return 0;
}
