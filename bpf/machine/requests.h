/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The request machine: what happens to the requests of one connection. No hook, no helper, no map;
 * the caller brings the facts and the clock.
 *
 * Events come from different contexts at the same time: data arrives in softirq, one thread reads,
 * another may send, the sweep settles. So the two words that decide are only ever exchanged or
 * compared and swapped: arrived_ns (who takes the waiting request) and phase (who ends the one in
 * progress). Whoever wins does the work, and it is done once.
 */
#ifndef WORKLOAD_MACHINE_REQUESTS_H
#define WORKLOAD_MACHINE_REQUESTS_H

#include "abi/kernel_types.h"

/* Values of phase; any other one is the time of the last send of an answered request. */
#define PHASE_IDLE 0ULL
#define PHASE_SERVICE 1ULL

#define QUEUE_UNKNOWN (~0ULL) /* the request's arrival was not seen */
#define SETTLE_NS 1000000000ULL /* an answer is complete when it is this old */

/* Reads and sends write the first part, arrivals the second: a cache line for each CPU's. */
struct conn {
	__u64 phase;
	__u64 read_ns; /* first read of the request in progress: with the phase, which one it is */
	__u64 queue_ns; /* how long it had waited, or QUEUE_UNKNOWN */
	__u64 settled_ns; /* last send of the request that the sweep ended last; 0 if none */
	__u32 start_seq; /* what had been sent before it (tcp_sock.write_seq) */
	__u32 closed;
	__u64 pad[3];

	__u64 arrived_ns; /* first unread byte of the waiting request; 0 if none waits */
	__u64 next_ns; /* first arrival after that one; 0 if there was none */
	__u64 latest_ns; /* last arrival of bytes */
};
#define CONN_HEAD_BYTES offsetof(struct conn, pad) /* what conn_serves() looks at, and more */
_Static_assert(offsetof(struct conn, arrived_ns) == 64, "struct conn is not in cache lines");

/* A request that has ended. */
struct request {
	__u64 queue_ns; /* QUEUE_UNKNOWN: not to be recorded, but counted as lost */
	__u64 service_ns;
};

/* What an event did; a read can end one request and begin the next. */
#define REQUEST_ENDED 1U
#define REQUEST_BEGAN 2U
#define REQUEST_ABANDONED_QUEUED 4U
#define REQUEST_ABANDONED_SERVICE 8U
#define REQUEST_ANSWERED 16U /* first send of an answer */
#define REQUEST_UNREQUESTED 32U /* a send that answers nothing */
#define REQUEST_UNSEEN 64U /* read on a way that no hook sees, and never answered */

static inline void conn_ended(const struct conn *conn, __u64 end_ns, struct request *request)
{
	request->queue_ns = conn->queue_ns;
	/* The clocks of two CPUs may differ by a little. */
	request->service_ns = end_ns > conn->read_ns ? end_ns - conn->read_ns : 0;
}

/* There are unread data bytes on the connection. Only the first since the last read is stamped. */
static inline void conn_readable(struct conn *conn, __u64 now)
{
	conn->latest_ns = now;
	if (!conn->arrived_ns)
		__sync_val_compare_and_swap(&conn->arrived_ns, 0, now);
	else if (!conn->next_ns)
		conn->next_ns = now;
}

/*
 * A thread has taken bytes, in three steps whose order loses no arrival: first the stamp of what
 * waited is taken (0: not seen), then the caller looks whether bytes are left and says so, then
 * the machine is told of the read. What is left came with the next arrival; of more than three that
 * wait, only the first two and the last are known.
 */
static inline __u64 conn_take(struct conn *conn)
{
	return conn->arrived_ns ? __sync_lock_test_and_set(&conn->arrived_ns, 0) : 0;
}

static inline void conn_left(struct conn *conn, int unread)
{
	__u64 latest = conn->latest_ns, next = conn->next_ns ? conn->next_ns : latest;

	conn->next_ns = unread && latest > next ? latest : 0;
	if (unread)
		__sync_val_compare_and_swap(&conn->arrived_ns, 0, next);
}

/*
 * @sent_seq: tcp_sock.write_seq, which tells an answer even when the hook that follows its send has
 * not run yet (two threads).
 */
static inline __u32 conn_read(struct conn *conn, __u64 now, __u64 arrived, __u32 sent_seq,
			      struct request *ended)
{
	__u64 phase, seen = conn->phase;
	__u32 start = conn->start_seq, events = REQUEST_BEGAN;

	if (seen == PHASE_SERVICE) {
		if (sent_seq == start)
			return 0; /* one more piece of the same request */
		if (__sync_val_compare_and_swap(&conn->start_seq, start, sent_seq) != start)
			return 0; /* another read was first */
	} else {
		/* Before the phase: whoever finds a request in service compares with it. */
		conn->start_seq = sent_seq;
	}
	phase = __sync_lock_test_and_set(&conn->phase, PHASE_SERVICE);
	if (phase == PHASE_SERVICE && seen != PHASE_SERVICE)
		return 0; /* another read was first */
	if (phase != PHASE_IDLE) {
		/* Answered, its send yet to be told: it ended before these bytes came, if new. */
		if (phase == PHASE_SERVICE)
			phase = arrived > conn->read_ns ? arrived : now;
		conn_ended(conn, phase, ended);
		events |= REQUEST_ENDED;
	}
	conn->read_ns = now;
	conn->queue_ns = !arrived ? QUEUE_UNKNOWN : now > arrived ? now - arrived : 0;
	return events;
}

/*
 * The bytes that arrived were taken on a way that no hook sees (splice from the socket), and now an
 * answer is sent: a request, but nobody knows how long it waited.
 */
static inline __u32 conn_read_unseen(struct conn *conn, __u64 now, struct request *ended)
{
	__u64 phase = __sync_lock_test_and_set(&conn->phase, now);
	__u32 events = REQUEST_BEGAN | REQUEST_ANSWERED;

	if (phase > PHASE_SERVICE) {
		conn_ended(conn, phase, ended);
		events |= REQUEST_ENDED;
	}
	conn->read_ns = now;
	conn->queue_ns = QUEUE_UNKNOWN;
	return events;
}

/*
 * Bytes were handed to the kernel; @unread: some that arrived are still there; @sent_seq is
 * write_seq after it.
 */
static inline __u32 conn_sent(struct conn *conn, __u64 now, int unread, __u32 sent_seq,
			      struct request *ended)
{
	__u64 phase = conn->phase;

	if (phase != PHASE_SERVICE && !unread && conn->arrived_ns &&
	    __sync_lock_test_and_set(&conn->arrived_ns, 0))
		return conn_read_unseen(conn, now, ended);
	if (phase == PHASE_IDLE)
		return REQUEST_UNREQUESTED;
	if (phase == PHASE_SERVICE && sent_seq == conn->start_seq)
		return 0; /* of the previous request, which the read has already ended */
	if (__sync_val_compare_and_swap(&conn->phase, phase, now) != phase)
		return 0; /* another send or the sweep was first, within nanoseconds */
	return phase == PHASE_SERVICE ? REQUEST_ANSWERED : 0;
}

/*
 * No more answers can be sent. @unread: some of the bytes that arrived are still there; if none
 * are, somebody has taken them on a way that no hook sees. What had come before the answer was sent
 * belongs to the answered request: a body that the server did not want. What came at the very end
 * of that answer did not: the end is no earlier than the last transmission (left_ns()).
 */
static inline __u32 conn_closed(struct conn *conn, __u64 now, int unread, __u32 sent_seq,
				struct request *ended)
{
	__u32 events = 0;
	__u64 phase;

	if (__sync_lock_test_and_set(&conn->closed, 1))
		return 0;
	phase = __sync_lock_test_and_set(&conn->phase, PHASE_IDLE);
	if (phase == PHASE_SERVICE && sent_seq == conn->start_seq) {
		conn->arrived_ns = 0; /* the rest of its body */
		return REQUEST_ABANDONED_SERVICE;
	}
	if (phase != PHASE_IDLE) {
		conn_ended(conn, phase == PHASE_SERVICE ? now : phase, ended);
		events = REQUEST_ENDED;
	}
	if (__sync_lock_test_and_set(&conn->arrived_ns, 0) && conn->latest_ns >= phase &&
	    conn->latest_ns >= conn->settled_ns)
		events |= unread ? REQUEST_ABANDONED_QUEUED : REQUEST_UNSEEN;
	return events;
}

/* The sweep passes by: an answer that is old enough is complete, and ended with its last send. */
static inline __u32 conn_settle(struct conn *conn, __u64 now, struct request *ended)
{
	__u64 phase = conn->phase;

	if (phase <= PHASE_SERVICE || now < phase + SETTLE_NS)
		return 0;
	conn_ended(conn, phase, ended);
	if (__sync_val_compare_and_swap(&conn->phase, phase, PHASE_IDLE) != phase)
		return 0;
	conn->settled_ns = phase;
	return REQUEST_ENDED;
}

static inline int conn_in_service(const struct conn *conn)
{
	return !conn->closed && conn->phase == PHASE_SERVICE;
}

/* Whether the request that was first read at @read_ns is in service. */
static inline int conn_serves(const struct conn *conn, __u64 read_ns)
{
	return conn_in_service(conn) && conn->read_ns == read_ns;
}

/* Bytes that come while a request is in service belong to it (a body), until it is answered. */
static inline int conn_queued(const struct conn *conn)
{
	return !conn->closed && conn->arrived_ns && conn->phase != PHASE_SERVICE;
}

#endif
