/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What both request backends do with an event once they have its facts: tell the machine, and add
 * up what comes of it at the right endpoint.
 */
#ifndef WORKLOAD_REQUESTS_REQUESTS_H
#define WORKLOAD_REQUESTS_REQUESTS_H

#include "core/endpoints.h"
#include "requests/openings.h"
#include "requests/reads.h"
#include "requests/sends.h"
#include "core/maps.h"
#include "lib/histogram.h"
#include "lib/task.h"
#include "core/trees.h"
#include "machine/binding.h"

static inline void request_record(struct endpoint_shard *shard, const struct request *request)
{
	if (request->queue_ns == QUEUE_UNKNOWN) {
		drop_of(shard->tree, DROP_UNPAIRED);
		return;
	}
	hist_add(&shard->queue, request->queue_ns);
	hist_add(&shard->service, request->service_ns);
	bucket_add(shard->duration, request->queue_ns + request->service_ns);
}

static inline void events_add(struct endpoint_shard *shard, __u32 events,
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
	if (events & REQUEST_GOODBYE)
		__sync_fetch_and_add(&shard->goodbyes, 1);
	if (events & REQUEST_UNANSWERED)
		__sync_fetch_and_add(&shard->unanswered_reads, 1);
	if (events & REQUEST_MULTIPLEXED)
		__sync_fetch_and_add(&shard->multiplexed, 1);
	if (events & REQUEST_ONE_WAY)
		__sync_fetch_and_add(&shard->one_way, 1);
	if (events & REQUEST_UNSEEN)
		drop_of(shard->tree, DROP_UNPAIRED);
}

/* Whether there is anything to add: most that happens only changes a connection's state. */
static inline int events_count(__u32 events)
{
	return (events &
		~(REQUEST_BEGAN | REQUEST_ANSWERED | REQUEST_PREAMBLE | REQUEST_GREETED)) != 0;
}

static inline void events_record(struct endpoint_shard *shard, __u32 events,
				 const struct request *ended)
{
	if (events_count(events))
		events_add(shard, events, ended);
}

/* --- how the server drives its sockets ------------------------------------------------------ */

/*
 * Whether it is io_uring that moves bytes of @sk now, for the current task: in its own call or
 * thread, or at the end of a call that is about something else.
 */
static inline int io_uring_moves(const struct sock *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 socket = (__u64)sk;

	if (task->flags & PF_IO_WORKER)
		return 1;
	if (task->flags & PF_KTHREAD || task_compat(task))
		return 0;
	return task_syscall(task) == SYS_IO_URING_ENTER || !call_is_about(&socket);
}

static inline struct file *sock_file(struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_socket, file); /* NULL as well if there is no socket */
}

static inline __u32 io_model(struct file *file)
{
	if (bpf_core_field_exists(file->f_ep) && BPF_CORE_READ(file, f_ep))
		return IO_EPOLL;
	return BPF_CORE_READ(file, f_flags) & O_NONBLOCK ? IO_NONBLOCKING : IO_BLOCKING;
}

/*
 * Counts the connection once, as soon as it is known how the server drives it. Without a file it is
 * still in the accept queue, or orphaned there. One that does not block may yet be given to epoll:
 * servers try at once, and wait only where there is nothing. So that is believed @lately: when the
 * server has answered and waits for more, or will wait no more.
 */
static inline void accepted_count(struct file *file, struct tracked *tracked,
				  struct endpoint_shard *shard, int io_uring, int lately)
{
	__u32 model;

	if (!file)
		return;
	model = io_uring ? IO_URING : io_model(file); /* its sockets may be of any kind */
	if (model == IO_NONBLOCKING && !lately) {
		__sync_val_compare_and_swap(&tracked->accepted, ACCEPTED_UNSEEN, ACCEPTED_UNSURE);
		return;
	}
	if (__sync_lock_test_and_set(&tracked->accepted, ACCEPTED_COUNTED) == ACCEPTED_COUNTED)
		return;
	tracked->blocks = model == IO_BLOCKING;
	if (model < IO_MODELS)
		__sync_fetch_and_add(&shard->accepted[model], 1);
}

/* A read; its request is told to the machine later. */
static inline void accepted_count_read(struct file *file, struct tracked *tracked,
				       struct endpoint_shard *shard, int io_uring)
{
	accepted_count(file, tracked, shard, io_uring,
		       tracked->accepted == ACCEPTED_UNSURE && !conn_in_service(&tracked->conn));
}

/* The sweep passes, or the client says goodbye. */
static inline void accepted_decide(struct sock *sk, struct tracked *tracked,
				   struct endpoint_shard *shard)
{
	if (tracked->accepted == ACCEPTED_UNSURE && !conn_in_service(&tracked->conn))
		accepted_count(sock_file(sk), tracked, shard, 0, 1);
}

/* --- events --------------------------------------------------------------------------------- */

/* A server that listens without bind(2) is told its port only after it listens. */
static inline void tracked_find_port(struct tracked *tracked, const struct sock *sk)
{
	if (tracked->port)
		return;
	tracked->port = BPF_CORE_READ(sk, __sk_common.skc_num);
	tracked_assign(tracked, tracked->tree);
}

/*
 * The tree of the reading process; one that serves a socket it was handed is a service too, and may
 * hold the listener as well. The kernel's own threads (nfsd) are in none.
 */
static inline __u32 reader_tree(struct task_struct *task)
{
	__u32 tree = tree_of(task);

	if (tree || task->flags & PF_KTHREAD)
		return tree;
	tree = tree_found(task);
	if (tree)
		listeners_ask_walk();
	return tree;
}

/* Measures @tracked where the current process is measured, which reads from it. */
VERIFIED_ALONE int reader_assign(struct tracked *tracked)
{
	struct endpoint_shard *shard;
	__u32 tree;

	if (!tracked)
		return 0;
	shard = tracked_current(tracked);
	tree = reader_tree(bpf_get_current_task_btf());
	if (shard && tree == tracked->tree)
		return 0;
	if (!shard && tree)
		listeners_ask_walk();
	/* Handed over by another service, or by one that is gone. */
	tracked_assign(tracked, tree);
	return 0;
}

/*
 * Where the requests of a thread are measured, if it is where they were before; else NULL, and
 * reader_assign() finds out.
 */
static inline struct endpoint_shard *reader_shard(const struct tracked *tracked,
						  const struct thread *thread)
{
	struct endpoint_shard *shard = tracked_current(tracked);

	/* What a process becomes reaches its other threads with the next walk: so late is this. */
	return shard && thread && thread->tree && thread->tree == tracked->tree ? shard : NULL;
}

/* Bytes have come that are unread, up to @end. */
static inline void connection_readable(struct tracked *tracked, __u32 end, __u64 now, int crosses)
{
	if (!tracked->conn.arrived_ns)
		tracked->first_seq = end;
	conn_readable(&tracked->conn, now, crosses);
}

/*
 * When what a connection's first read takes has arrived, @arrived if a hook has stamped it. What
 * none has told of came with the segment that made the connection. With Fast Open (@with_syn) that
 * was the SYN, and more may have passed since.
 */
static inline __u64 first_arrival(const struct tracked *tracked, __u64 arrived, int with_syn)
{
	__u64 born = tracked->born_ns;

	return !born || (arrived && !with_syn) ? arrived : born;
}

/* What is known of a connection's first bytes, which are read from @begin on. */
static inline void reading_first(const struct tracked *tracked, __u32 begin,
				 struct reading *reading)
{
	reading->next = tracked->conn.next_ns;
	reading->first_bytes = tracked->first_seq - begin;
	reading->opened_ns = conn_is_greeted(&tracked->conn) ? tracked->born_ns : 0;
}

/*
 * Of what was read the caller knows when it arrived, how many bytes they are, and what TCP knows.
 * Returns whether it is of a request that is not answered yet.
 */
VERIFIED_ALONE int connection_read(struct tracked *tracked, struct endpoint_shard *shard,
				   struct reading *reading)
{
	struct request ended = {};
	__u32 events;

	if (!tracked || !shard || !reading)
		return 0;
	if (tracked->adopted)
		tracked->adopted = 0;
	if (conn_asks_bytes(&tracked->conn, reading))
		reading_look(tracked, reading);
	reading->now = bpf_ktime_get_ns();
	events = conn_read(&tracked->conn, reading, &ended);
	if (reading->begins == BEGINS_PREFACE) /* its sends are not looked at */
		endpoint_learn(tracked, LEARNED_CLIENT_FIRST | LEARNED_ANSWERS);
	events_record(shard, events, &ended);
	return events != REQUEST_UNANSWERED && events != REQUEST_MULTIPLEXED &&
	       events != REQUEST_PREAMBLE;
}

/* The first answer of a connection. */
static inline void connection_answers(struct tracked *tracked)
{
	tracked->conn.answered = 1;
	endpoint_learn(tracked,
		       LEARNED_ANSWERS |
			       (opening_is_client_s(&tracked->conn) ? LEARNED_CLIENT_FIRST : 0));
}

/* What is at conn->thread; 0: no thread, or it cannot be read. */
static inline int connection_thread(const struct conn *conn, struct thread *thread)
{
	return conn->thread &&
	       !bpf_probe_read_kernel(thread, THREAD_HEAD_BYTES, (const void *)conn->thread);
}

/* Whether the thread that has begun to answer is still at it: HELD_. */
static inline __u32 connection_held(const struct tracked *tracked, __u64 now)
{
	const struct conn *conn = &tracked->conn;
	struct thread thread; /* its head is enough */

	if (!conn_answered(conn) || tree_runs_tasks(tracked->tree) ||
	    !connection_thread(conn, &thread))
		return HELD_NOT;
	return binding_held(conn, (__u64)conn, &thread, now);
}

/* Whether the current task has read the request in service, and has waited for work since. */
static inline int sender_left(const struct tracked *tracked)
{
	struct thread *thread = thread_of(bpf_get_current_task_btf());

	return thread && (__u64)thread == tracked->conn.thread &&
	       thread->left_ns > tracked->conn.read_ns;
}

/*
 * Whether no thread is at the answer any more after which the current task sends now. A send that
 * blocks is told when it returns, and may have begun long before: of those it has to be known that
 * the thread has not slept in this one.
 */
static inline int sender_resumes(const struct tracked *tracked, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_of(task);

	if (tracked->blocks &&
	    (!thread || !thread->syscall || thread->syscall == task_syscall(task)))
		return 0;
	return !connection_held(tracked, now);
}

/* The same of what was sent: when it left. */
VERIFIED_ALONE int connection_sent(struct tracked *tracked, struct sending *sending)
{
	struct endpoint_shard *shard;
	struct request ended = {};
	__u64 phase;
	__u32 events;

	if (!tracked || !sending || tracked->conn.closed || tracked->adopted)
		return 0;
	if (conn_asks_sent_bytes(&tracked->conn, sending))
		sending_look(tracked, sending);
	if (conn_asks_left(&tracked->conn))
		sending->left = sender_left(tracked);
	phase = tracked->conn.phase;
	if (conn_asks_over(&tracked->conn, phase, sending->now) &&
	    sender_resumes(tracked, sending->now))
		sending->over = phase;
	if (conn_is_new(&tracked->conn))
		sending->opened_ns = opening_greeted(tracked);
	events = conn_sent(&tracked->conn, sending, &ended);
	if (events & REQUEST_ANSWERED && !tracked->conn.answered)
		connection_answers(tracked);
	if (events & REQUEST_GREETED)
		endpoint_learn(tracked, LEARNED_SERVER_FIRST);
	shard = events_count(events) ? tracked_shard(tracked) : NULL;
	if (shard)
		events_add(shard, events, &ended);
	return 0;
}

/* The current task is at the request, and serves; @thread: its state, if it has one. */
static inline void connection_bind(struct tracked *tracked, struct thread *thread,
				   struct task_struct *task, struct file *file, __u32 by_send)
{
	binding_make(thread, (__u64)thread, task->pid, &tracked->conn, (__u64)&tracked->conn,
		     (__u64)file, by_send);
	if (thread)
		thread->blocks = tracked->blocks;
}

/* A read from a connection whose turns are not measured, or not any more. */
static inline void connection_read_unmeasured(struct tracked *tracked, struct thread *thread,
					      int unread)
{
	if (!conn_is_over(&tracked->conn)) {
		conn_take(&tracked->conn);
		conn_left(&tracked->conn, unread);
	}
	if (thread)
		thread_serves(thread);
}

/* Whether the sender is another thread than the last one that read the request or sent. */
static inline int sender_is_new(const struct tracked *tracked, const struct task_struct *task)
{
	return tracked->conn.tid != (__u32)task->pid;
}

/* What else it takes to tell whether what is in service wants an answer. */
static inline void stream_ask_reader(const struct tracked *tracked, struct stream *stream)
{
	const struct conn *conn = &tracked->conn;
	const struct endpoint_info *info;
	struct thread thread; /* its head is enough */

	if (!conn_asks_reader(conn))
		return;
	info = tracked_info(tracked);
	stream->quiet = info && !(info->learned & LEARNED_ANSWERS);
	stream->left = connection_thread(conn, &thread) && binding_left(conn, (__u64)conn, &thread);
}

static inline void connection_closed(struct tracked *tracked, struct file *file,
				     struct stream *stream)
{
	struct request ended = {};
	struct endpoint_shard *shard;
	__u32 events;

	stream_ask_reader(tracked, stream);
	stream->opened_ns = opening_waits(tracked);
	events = conn_closed(&tracked->conn, bpf_ktime_get_ns(), stream, &ended);
	shard = tracked_shard(tracked);
	if (!shard)
		return;
	if (tracked->accepted != ACCEPTED_COUNTED)
		accepted_count(file, tracked, shard, 0, 1);
	events_record(shard, events, &ended);
}

/*
 * A connection that the server has closed without an answer changes its state again: to CLOSING if
 * the client had sent its FIN before it got the server's.
 */
static inline void connection_left(struct tracked *tracked, int newstate)
{
	__u32 events = conn_left_by_both(&tracked->conn, bpf_ktime_get_ns(),
					 newstate == TCP_CLOSING);
	struct endpoint_shard *shard = events ? tracked_shard(tracked) : NULL;
	struct request none = {};

	if (shard)
		events_record(shard, events, &none);
}

#endif
