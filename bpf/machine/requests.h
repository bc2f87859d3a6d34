/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The request machine: what happens to the requests of one connection. No hook, no helper, no map;
 * the caller brings the facts and the clock.
 *
 * Events come from different contexts at the same time: data arrives in softirq, one thread reads,
 * another may send, the sweep settles. So the two words that decide are only ever exchanged or
 * compared and swapped: arrived_ns (which event takes the waiting request) and phase (which event
 * ends the one in progress). The event that wins does the work, and it is done once.
 */
#ifndef WORKLOAD_MACHINE_REQUESTS_H
#define WORKLOAD_MACHINE_REQUESTS_H

#include "machine/answers.h"
#include "machine/connection.h"
#include "machine/goodbye.h"
#include "machine/opening.h"
#include "machine/reading.h"
#include "machine/sending.h"

static inline void conn_ended(const struct conn *conn, __u64 end_ns, struct request *request)
{
	request->queue_ns = conn->queue_ns;
	/* The clocks of two CPUs may differ by a little. */
	request->service_ns = end_ns > conn->read_ns ? end_ns - conn->read_ns : 0;
}

/*
 * There are unread data bytes on the connection. Only the first since the last read is stamped.
 * @crosses: the client had not got all that was sent when it sent them.
 */
static inline void conn_readable(struct conn *conn, __u64 now, int crosses)
{
	conn->latest_ns = now;
	if (!conn->arrived_ns) {
		conn->crosses = crosses;
		__sync_val_compare_and_swap(&conn->arrived_ns, 0, now);
	} else if (!conn->next_ns) {
		conn->next_ns = now;
	}
}

/*
 * TCP has taken what was stamped last, and tells by the clock of its sends when: so that nothing
 * that comes behind a send looks older than that. What it tells of much later is something else.
 */
static inline void conn_arrival_at(struct conn *conn, __u64 now)
{
	__u64 stamped = conn->latest_ns;

	if (now <= stamped || now - stamped > ARRIVAL_TAKES_NS)
		return;
	conn->latest_ns = now;
	if (conn->next_ns == stamped)
		conn->next_ns = now;
	else
		__sync_val_compare_and_swap(&conn->arrived_ns, stamped, now);
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

/* Something was read: for how long will its client be silent? */
static inline void conn_noted(struct conn *conn, __u64 now)
{
	if (conn->protocol == PROTOCOL_OTHER)
		conn->read_tick = conn_tick(now);
}

/* A send was tried: does the server wait for room now? */
static inline void conn_tried(struct conn *conn, int full)
{
	if (conn->wanting != full)
		conn->wanting = full;
}

static inline void conn_begin(struct conn *conn, const struct reading *reading)
{
	__u32 bytes = reading->bytes - reading->skipped;

	conn->read_ns = reading->now;
	conn->paused = 0;
	conn->tunnel = reading->begins == BEGINS_TUNNEL;
	conn->upload = conn->tunnel || reading->begins == BEGINS_UPLOAD ||
		       reading->begins == BEGINS_SHORT;
	conn->head = HEAD_NONE;
	conn_tried(conn, 0);
	conn->crossed = conn->crosses;
	conn->taken = bytes < 0xffff ? bytes : 0xffff;
	conn->queue_ns = conn_waited_ns(conn, reading);
	conn_noted(conn, reading->now);
}

/* What was read is no request: the connection is as after the answer before. */
static inline __u32 conn_withdraw(struct conn *conn, __u64 now)
{
	conn->settled_ns = now;
	__sync_val_compare_and_swap(&conn->phase, PHASE_SERVICE, PHASE_IDLE);
	return REQUEST_UNANSWERED;
}

/* Nothing has answered what was read, and nothing will. */
static inline __u32 conn_one_way(struct conn *conn)
{
	if (conn->protocol != PROTOCOL_OTHER)
		return REQUEST_UNANSWERED;
	conn->protocol = PROTOCOL_ONE_WAY;
	return REQUEST_UNANSWERED | REQUEST_ONE_WAY;
}

/*
 * From now on no turn of the connection is measured, nor is the present one: only whether bytes
 * wait to be read is known.
 */
static inline __u32 conn_multiplexed(struct conn *conn)
{
	if (__sync_val_compare_and_swap(&conn->closed, CONN_OPEN, CONN_MULTIPLEXED) != CONN_OPEN)
		return 0;
	__sync_lock_test_and_set(&conn->phase, PHASE_IDLE);
	return REQUEST_MULTIPLEXED;
}

/* One more read of the request in progress. */
static inline __u32 conn_piece(struct conn *conn, const struct reading *reading)
{
	__u32 taken = conn->taken + reading->bytes;

	if (reading->begins == BEGINS_PREFACE)
		return conn_multiplexed(conn);
	if (reading->begins == BEGINS_UNANSWERED && conn->taken == MYSQL_HEADER_BYTES)
		return conn_withdraw(conn, reading->now);
	if (conn_begins_anew(conn, reading)) {
		conn_begin(conn, reading);
		conn->doubt = DOUBT_NONE;
		conn->piece_ns = reading->now;
		if (conn->protocol == PROTOCOL_HTTP)
			conn->protocol = PROTOCOL_HTTP_BODIES;
		return conn_one_way(conn) | REQUEST_BEGAN;
	}
	conn_noted(conn, reading->now);
	conn->taken = taken < 0xffff ? taken : 0xffff;
	if (conn->piece_ns)
		conn->piece_ns = reading->now;
	return 0;
}

/* It may yet turn out that a request came with it. */
static inline __u32 conn_rest(struct conn *conn, const struct reading *reading)
{
	__u64 queue_ns = reading_queue_ns(reading);

	conn->piece_ns = reading->now;
	conn->rest_queue_ns = queue_ns < REST_UNKNOWN ? queue_ns : REST_UNKNOWN;
	if (conn->protocol == PROTOCOL_HTTP)
		conn->protocol = PROTOCOL_HTTP_BODIES;
	return REQUEST_UNANSWERED;
}

static inline __u32 conn_read(struct conn *conn, const struct reading *reading,
			      struct request *ended)
{
	__u64 phase, seen, now = reading->now;
	__u32 start = conn->start_seq, events = REQUEST_BEGAN;

	/* Its first bytes may have been taken for a request's. */
	if (reading_has_preamble(reading)) {
		__sync_val_compare_and_swap(&conn->phase, PHASE_SERVICE, PHASE_IDLE);
		conn->read_ns = 0;
	}
	if (reading->begins == BEGINS_PREAMBLE)
		return REQUEST_PREAMBLE;
	seen = conn->phase;
	if (conn_goes_on(conn, reading))
		return conn_piece(conn, reading);
	if (reading->begins)
		conn_learn(conn, reading->begins);
	if (conn_is_rest(conn, reading->begins))
		return conn_rest(conn, reading);
	if (reading->begins == BEGINS_PREFACE || conn_is_multiplexed(conn))
		return conn_multiplexed(conn);
	conn->doubt = conn_doubts(conn, reading); /* before the phase, as the rest */
	conn->opens = !conn->read_ns && reading->sent_seq == start;
	if (seen == PHASE_SERVICE) {
		if (__sync_val_compare_and_swap(&conn->start_seq, start, reading->sent_seq) !=
		    start)
			return 0; /* another read was first */
	} else {
		/* Before the phase: events that find a request in service compare with it. */
		conn->start_seq = reading->sent_seq;
	}
	phase = __sync_lock_test_and_set(&conn->phase, PHASE_SERVICE);
	if (phase == PHASE_SERVICE && seen != PHASE_SERVICE)
		return 0; /* another read was first */
	if (phase != PHASE_IDLE) {
		/* Answered, its send yet to be told: it ended before these bytes came, if new. */
		if (phase == PHASE_SERVICE)
			phase = reading->arrived > conn->read_ns ? reading->arrived : now;
		conn_ended(conn, phase, ended);
		events |= REQUEST_ENDED;
	}
	conn_begin(conn, reading);
	conn->piece_ns = phase != PHASE_IDLE || conn->settled_ns ? now : 0;
	return events;
}

/*
 * The bytes that arrived were taken on a way that no hook sees (splice from the socket) or with the
 * rest of a body, and now an answer is sent: a request, whose phase becomes @becomes. @queue_ns:
 * how long it had waited when it was read.
 */
static inline __u32 conn_read_unseen(struct conn *conn, __u64 becomes, __u64 read_ns,
				     __u64 queue_ns, struct request *ended)
{
	__u64 phase = __sync_lock_test_and_set(&conn->phase, becomes);
	__u32 events = REQUEST_BEGAN;

	if (becomes != PHASE_SERVICE)
		events |= REQUEST_ANSWERED;
	if (phase > PHASE_SERVICE) {
		conn_ended(conn, phase, ended);
		events |= REQUEST_ENDED;
	}
	conn->read_ns = read_ns;
	conn->paused = 0;
	conn->head = HEAD_NONE;
	conn->queue_ns = queue_ns;
	return events;
}

static inline __u32 conn_read_with_rest(struct conn *conn, __u64 becomes, struct request *ended)
{
	__u32 queue_ns = conn->rest_queue_ns;

	return conn_read_unseen(conn, becomes, conn->piece_ns,
				queue_ns == REST_UNKNOWN ? QUEUE_UNKNOWN : queue_ns, ended);
}

/*
 * The stamp of the bytes that wait, or 0; with the first send of an answer, on which they have no
 * bearing, 0 too. A send asks for it and only then whether any bytes are unread: the other way
 * round, bytes that come in between would look as if they had been read.
 */
static inline __u64 conn_waiting(const struct conn *conn)
{
	return conn->phase != PHASE_SERVICE ? *(const volatile __u64 *)&conn->arrived_ns : 0;
}

/* What was sent is an interim answer, or a part of one. */
static inline __u32 conn_sent_interim(struct conn *conn, const struct sending *sending,
				      struct request *ended)
{
	__u32 events = 0;

	conn->start_seq = sending->sent_seq; /* no answer yet */
	if (conn_may_answer_rest(conn))
		events = conn_read_with_rest(conn, PHASE_SERVICE, ended);
	conn->interim = 1;
	conn->head = sending->begins - BEGINS_INTERIM;
	return events;
}

/* The answer has been sent, and is the last one. */
static inline __u32 conn_switched(struct conn *conn, __u64 now, struct request *ended)
{
	if (!conn_multiplexed(conn))
		return 0; /* it ends with the connection, which is being closed */
	conn_ended(conn, now, ended);
	return REQUEST_ENDED | REQUEST_MULTIPLEXED;
}

/* The answer has ended with its last send, at @phase. */
static inline __u32 conn_answer_ended(struct conn *conn, __u64 phase, struct request *ended)
{
	conn_ended(conn, phase, ended);
	if (__sync_val_compare_and_swap(&conn->phase, phase, PHASE_IDLE) != phase)
		return 0;
	conn->settled_ns = phase;
	return REQUEST_ENDED;
}

/* Bytes were handed to the kernel. */
static inline __u32 conn_sent(struct conn *conn, const struct sending *sending,
			      struct request *ended)
{
	__u64 phase = conn->phase, now = sending->now, gone = sending->gone;
	__u32 begins = sending->begins;

	conn->told_seq = sending->sent_seq;
	conn_tried(conn, sending->full);
	if (sending->left)
		return conn_withdraw(conn, now) | REQUEST_UNREQUESTED;
	if (phase != PHASE_SERVICE && gone &&
	    __sync_val_compare_and_swap(&conn->arrived_ns, gone, 0) == gone)
		return conn_read_unseen(conn, now, now, QUEUE_UNKNOWN, ended);
	if (begins >= BEGINS_INTERIM && (phase == PHASE_SERVICE || conn_may_answer_rest(conn)))
		return conn_sent_interim(conn, sending, ended);
	if (begins_answer(begins) && conn_may_answer_rest(conn))
		return conn_read_with_rest(conn, now, ended);
	if (sending->over && sending->over == phase)
		return conn_answer_ended(conn, phase, ended) | REQUEST_UNREQUESTED;
	if (phase == PHASE_IDLE)
		return REQUEST_UNREQUESTED | (sending->opened_ns ? conn_greet(conn, sending) : 0);
	if (phase == PHASE_SERVICE && sending->sent_seq == conn->start_seq)
		return 0; /* of the previous request, which the read has already ended */
	if (__sync_val_compare_and_swap(&conn->phase, phase, now) != phase)
		return 0; /* another send or the sweep was first, within nanoseconds */
	if (phase == PHASE_SERVICE && conn_switches(conn, begins))
		return REQUEST_ANSWERED | conn_switched(conn, now, ended);
	if (phase == PHASE_SERVICE)
		return REQUEST_ANSWERED;
	if (now >= phase + PAUSE_NS)
		conn->paused = 1;
	if (begins >= BEGINS_ANSWER)
		conn->interim = 1; /* so was what was sent first: from now on it is looked at */
	return 0;
}

/* A send is under way: it has given bytes to TCP, which the client has not got yet, and blocks. */
static inline int conn_blocks(const struct conn *conn, const struct stream *stream)
{
	return stream->sent_seq != conn->told_seq && stream->sent_seq != stream->acked_seq;
}

/* Whether it takes the endpoint and the reading thread to tell if what was read wants an answer. */
static inline int conn_asks_reader(const struct conn *conn)
{
	return conn->phase == PHASE_SERVICE &&
	       (conn->protocol == PROTOCOL_ONE_WAY ||
		(conn->protocol == PROTOCOL_OTHER && !conn->answered));
}

/* Whether what is in service may be a message, to which no answer comes. */
static inline int conn_has_message(const struct conn *conn, const struct stream *stream)
{
	return conn->protocol == PROTOCOL_ONE_WAY ||
	       (conn->protocol == PROTOCOL_OTHER && stream->quiet);
}

/* Whether it is one: the thread that has read it is not at it any more. */
static inline int conn_wants_no_answer(const struct conn *conn, const struct stream *stream)
{
	return stream->left && conn_has_message(conn, stream);
}

/* Whether it is one: the client has closed behind it, and did not wait. */
static inline int conn_ends_message(const struct conn *conn, const struct stream *stream)
{
	return conn_has_message(conn, stream) && conn_goodbye(conn, conn->latest_ns);
}

/*
 * The connection ends before an answer. A server that closes as soon as it has read a goodbye may
 * be faster than the client's FIN. After answers, that it closes so soon says what it has read;
 * what was the first request of all it may have refused, so there the next event decides.
 */
static inline __u32 conn_unanswered(struct conn *conn, __u64 now, const struct stream *stream)
{
	conn->arrived_ns = 0; /* the rest of its body */
	if (conn_wants_no_answer(conn, stream) || conn_ends_message(conn, stream))
		return conn_one_way(conn);
	if (conn->doubt == DOUBT_REST && conn->taken > UNANSWERED_BYTES)
		return REQUEST_UNANSWERED;
	if (conn_goodbye(conn, conn_first_ns(conn)))
		return REQUEST_GOODBYE;
	if (!stream->leaving || conn->fin_ns || now > conn_first_ns(conn) + GOODBYE_NS)
		return REQUEST_ABANDONED_SERVICE;
	if (conn->piece_ns)
		return REQUEST_GOODBYE;
	conn->closed = CONN_LEFT;
	return 0;
}

/* @crossed: the client has closed before it learned that the server had. */
static inline __u32 conn_left_by_both(struct conn *conn, __u64 now, int crossed)
{
	if (__sync_val_compare_and_swap(&conn->closed, CONN_LEFT, CONN_CLOSED) != CONN_LEFT)
		return 0;
	if (crossed)
		conn_fin(conn, now);
	return conn_goodbye(conn, conn_first_ns(conn)) ? REQUEST_GOODBYE
						       : REQUEST_ABANDONED_SERVICE;
}

/*
 * No more answers can be sent. If no bytes that arrived are left, they were taken on a way that no
 * hook sees. What had come before the answer was sent belongs to the answered request: a body that
 * the server did not want. What came at the very end of that answer did not: the end is no earlier
 * than the last transmission (left_ns()).
 */
static inline __u32 conn_closed(struct conn *conn, __u64 now, const struct stream *stream,
				struct request *ended)
{
	__u64 phase, arrived;
	__u32 events = 0;
	int under_way;

	if (__sync_val_compare_and_swap(&conn->closed, CONN_OPEN, CONN_CLOSED) != CONN_OPEN)
		return 0;
	phase = __sync_lock_test_and_set(&conn->phase, PHASE_IDLE);
	if (phase == PHASE_SERVICE && stream->sent_seq == conn->start_seq)
		return conn_unanswered(conn, now, stream);
	if (phase != PHASE_IDLE) {
		under_way = phase == PHASE_SERVICE || conn_blocks(conn, stream);
		conn_ended(conn, under_way ? now : phase, ended);
		events = REQUEST_ENDED;
	}
	arrived = __sync_lock_test_and_set(&conn->arrived_ns, 0);
	if (!arrived && stream->opened_ns)
		return conn_ungreeted(conn, now, stream);
	if (!arrived || conn->latest_ns < phase || conn->latest_ns < conn->settled_ns)
		return events;
	if (!stream->unread)
		return events | REQUEST_UNSEEN;
	if (stream->reset && conn->protocol == PROTOCOL_NEW)
		conn_fin(conn, now); /* a proxy that checks its server's health, with a preamble */
	return events | (conn_goodbye(conn, arrived) ? REQUEST_GOODBYE : REQUEST_ABANDONED_QUEUED);
}

/*
 * Whether the server is still handing over what it sends: it waits for room, or its send has given
 * bytes to TCP and has not returned. Bytes that were there at the last sweep already, and of which
 * no hook has told, were sent unseen.
 */
static inline int conn_sends(struct conn *conn, const struct stream *stream)
{
	__u32 swept = conn->swept_seq;

	conn->swept_seq = stream->sent_seq;
	return conn->wanting || (stream->sent_seq != conn->told_seq && stream->sent_seq != swept);
}

/* The sweep passes by: an answer that is old enough is complete, and ended with its last send. */
static inline __u32 conn_settle(struct conn *conn, __u64 now, struct request *ended)
{
	__u64 phase = conn->phase;

	if (phase <= PHASE_SERVICE || now < phase + SETTLE_NS)
		return 0;
	return conn_answer_ended(conn, phase, ended);
}

/* No more events come, or none that count. */
static inline int conn_is_over(const struct conn *conn)
{
	return conn->closed && conn->closed != CONN_MULTIPLEXED;
}

/* No client waits for an answer to what is most likely the rest of an answered request. */
static inline int conn_in_service(const struct conn *conn)
{
	return !conn->closed && conn->phase == PHASE_SERVICE && conn->doubt != DOUBT_REST;
}

/*
 * When the request in service was read. 0 for the instant in which that is not noted yet, and what
 * is there is of a request that the sweep has ended.
 */
static inline __u64 conn_service_since(const struct conn *conn)
{
	return conn->read_ns > conn->settled_ns ? conn->read_ns : 0;
}

/* An answer that the sweep may end, unless its thread is still at it. */
static inline int conn_answered(const struct conn *conn)
{
	return !conn->closed && conn->phase > PHASE_SERVICE;
}

/* Bytes that come while a request is in service belong to it (a body), until it is answered. */
static inline int conn_queued(const struct conn *conn)
{
	return !conn_is_over(conn) && conn->arrived_ns && conn->phase != PHASE_SERVICE;
}

#endif
