/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What both request backends do with an event once they have its facts: tell the machine, and add
 * up what comes of it at the right endpoint.
 */
#ifndef WORKLOAD_LIB_REQUESTS_H
#define WORKLOAD_LIB_REQUESTS_H

#include "lib/endpoints.h"
#include "lib/maps.h"
#include "lib/task.h"
#include "lib/trees.h"

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
	if (events & REQUEST_UNSEEN)
		drop(DROP_UNPAIRED);
}

/* --- how the server drives its sockets ------------------------------------------------------ */

/* Whether the current task drives its socket by io_uring: asked while it reads or sends. */
static inline int io_uring_task(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->flags & PF_IO_WORKER || task_syscall(task) == SYS_IO_URING_ENTER;
}

static inline __u32 io_model(struct file *file)
{
	if (bpf_core_field_exists(file->f_ep) && BPF_CORE_READ(file, f_ep))
		return IO_EPOLL;
	return BPF_CORE_READ(file, f_flags) & O_NONBLOCK ? IO_NONBLOCKING : IO_BLOCKING;
}

/*
 * Counts the connection once, as soon as it is known how the server drives it. Without a file it is
 * still in the accept queue, or orphaned there.
 */
static inline void accepted_count(struct file *file, struct tracked *tracked,
				  struct endpoint_shard *shard, int io_uring)
{
	__u32 model;

	if (!file || __sync_lock_test_and_set(&tracked->accepted, 1))
		return;
	model = io_uring ? IO_URING : io_model(file); /* its sockets may be of any kind */
	if (model < IO_MODELS)
		__sync_fetch_and_add(&shard->accepted[model], 1);
}

/* --- events --------------------------------------------------------------------------------- */

/* A server that listens without bind(2) is told its port only after it listens. */
static inline void tracked_find_port(struct tracked *tracked, const struct sock *sk)
{
	if (tracked->port)
		return;
	tracked->port = sk->__sk_common.skc_num;
	tracked_assign(tracked, tracked->tree);
}

/*
 * The tree of the reading process; one that serves a socket it was handed is a service too, and may
 * hold the listener as well. The kernel's own threads (nfsd) are in none.
 */
static inline __u32 reader_tree(struct thread *thread, struct task_struct *task)
{
	__u32 tree = thread && task->pid == task->tgid ? thread->tree : tree_of(task);

	if (tree || task->flags & PF_KTHREAD)
		return tree;
	tree = tree_found(task);
	if (tree)
		listeners_ask_walk();
	return tree;
}

/* Where the reading thread's requests are measured. */
static inline struct endpoint_shard *reader_shard(struct tracked *tracked, struct thread *thread,
						  struct task_struct *task)
{
	struct endpoint_shard *shard = tracked_current(tracked);
	__u32 tree;

	/* What a process becomes reaches its other threads with the next walk: so late is this. */
	if (shard && thread && thread->tree && thread->tree == tracked->tree)
		return shard;
	tree = reader_tree(thread, task);
	if (shard && tree == tracked->tree)
		return shard;
	if (!shard && tree)
		listeners_ask_walk();
	/* Handed over by another service, or by one that is gone. */
	tracked_assign(tracked, tree);
	return tracked_shard(tracked);
}

static inline void connection_read(struct tracked *tracked, struct endpoint_shard *shard,
				   struct thread *thread, __u64 arrived, __u32 sent_seq)
{
	struct request ended = {};
	__u32 events;

	if (tracked->adopted)
		tracked->adopted = 0;
	events = conn_read(&tracked->conn, bpf_ktime_get_ns(), arrived, sent_seq, &ended);
	if (thread) {
		thread->request = (__u64)&tracked->conn;
		thread->request_ns = tracked->conn.read_ns;
	}
	events_record(shard, events, &ended);
}

static inline void connection_sent(struct tracked *tracked, struct endpoint_shard *shard, __u64 now,
				   int unread, __u32 sent_seq)
{
	struct request ended = {};
	__u32 events;

	if (tracked->conn.closed || tracked->adopted)
		return;
	events = conn_sent(&tracked->conn, now, unread, sent_seq, &ended);
	events_record(shard, events, &ended);
}

static inline void connection_closed(struct tracked *tracked, struct file *file, int unread,
				     __u32 sent_seq)
{
	struct request ended = {};
	struct endpoint_shard *shard;
	__u32 events;

	events = conn_closed(&tracked->conn, bpf_ktime_get_ns(), unread, sent_seq, &ended);
	shard = tracked_shard(tracked);
	if (!shard)
		return;
	if (!tracked->accepted)
		accepted_count(file, tracked, shard, 0);
	events_record(shard, events, &ended);
}

/* --- the sweep ------------------------------------------------------------------------------ */

/*
 * The workload of a listener was retired: a walk finds who holds it. Asked for once, as nobody may:
 * then it is the kernel's own (nfsd), or on its way from one process to another, which asks when it
 * reads.
 */
static inline void listener_seek(struct tracked *tracked)
{
	if (tracked->sought)
		return;
	tracked->sought = 1;
	listeners_ask_walk();
}

static inline void sweep_listener(struct sock *sk, struct tracked *tracked,
				  struct endpoint_gauges *gauges)
{
	listener_count_drops(sk, tracked);
	gauges->listeners++;
	gauges->accept_queue += sk->sk_ack_backlog;
	gauges->accept_queue_limit += sk->sk_max_ack_backlog;
}

/* Settles what was answered a while ago and takes stock of an open connection. */
static inline void sweep_connection(struct tracked *tracked, struct endpoint_shard *shard,
				    struct endpoint_gauges *gauges, int unread)
{
	__u64 arrived = tracked->conn.arrived_ns;
	struct request ended = {};
	__u32 events;

	if (tracked->conn.closed)
		return;
	events = conn_settle(&tracked->conn, bpf_ktime_get_ns(), &ended);
	events_record(shard, events, &ended);
	gauges->connections++;
	if (conn_in_service(&tracked->conn))
		gauges->in_service++;
	if (!unread || !arrived || !conn_queued(&tracked->conn))
		return;
	gauges->queued++;
	if (!gauges->oldest_ns || arrived < gauges->oldest_ns)
		gauges->oldest_ns = arrived;
}

#endif
