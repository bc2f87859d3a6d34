/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a read is: the beginning of a request, one more part of it, the rest of one that is answered
 * already, or a sign that requests share the connection. No hook, no helper, no map; the caller
 * brings the facts.
 */
#ifndef WORKLOAD_MACHINE_READING_H
#define WORKLOAD_MACHINE_READING_H

#include "machine/connection.h"
#include "machine/hello.h"
#include "machine/protocol.h"

static inline int conn_is_http(const struct conn *conn)
{
	return conn->protocol >= PROTOCOL_HTTP;
}

/*
 * Whether bytes that arrived at @arrived may be the rest of the request before: the client had not
 * got the answer to that one when it sent them, or they were here before it was sent.
 */
static inline int conn_may_rest(const struct conn *conn, __u64 arrived)
{
	__u64 phase = conn->phase, sent = phase > PHASE_SERVICE ? phase : conn->settled_ns;

	return conn->crosses || (arrived && arrived < sent);
}

/* Whether it is one more read of the request in progress: nothing has been sent since that began.
 */
static inline int conn_goes_on(const struct conn *conn, const struct reading *reading)
{
	return conn->phase == PHASE_SERVICE && reading->sent_seq == conn->start_seq;
}

/* Whether what is read next is a client's first message in TLS, behind the header of its record. */
static inline int conn_asks_hello(const struct conn *conn)
{
	return conn->protocol == PROTOCOL_TLS && conn->opens && conn->phase == PHASE_SERVICE &&
	       conn->taken == TLS_HEADER_BYTES;
}

/* Whether it takes the first bytes of a read to tell what it is: where it need not be a turn. */
static inline int conn_asks_bytes(const struct conn *conn, const struct reading *reading)
{
	if (!conn_is_http(conn))
		return conn->protocol == PROTOCOL_NEW || conn->protocol == PROTOCOL_MYSQL ||
		       conn_asks_hello(conn);
	if (conn_goes_on(conn, reading))
		return conn->doubt != DOUBT_NONE;
	return conn->protocol == PROTOCOL_HTTP_BODIES || conn_may_rest(conn, reading->arrived);
}

/*
 * Whether it takes more of a read of @bytes, the first eight of which are @word, to tell where the
 * client's own begin: only what is read first may be a preamble.
 */
static inline int conn_asks_preamble(const struct conn *conn, __u64 word, __u32 bytes)
{
	if (conn->protocol != PROTOCOL_NEW || conn->phase > PHASE_SERVICE || conn->settled_ns ||
	    conn->piece_ns)
		return 0;
	return conn->preamble.version || preamble_begins(word, bytes);
}

/* What a read begins with in which only bytes of a preamble are, or what may be some. */
static inline __u32 conn_begins_preamble(const struct conn *conn)
{
	return !conn->preamble.version || preamble_is_sure(&conn->preamble) ? BEGINS_PREAMBLE
									    : BEGINS_MAYBE;
}

/* What a read of @bytes begins with, if it is asked for; @line, @end: see http_begins(). */
static inline __u32 conn_begins(const struct conn *conn, const union line *line, __u32 end,
				__u32 bytes)
{
	if (conn->protocol == PROTOCOL_MYSQL)
		return mysql_begins(line->word, conn->phase == PHASE_SERVICE &&
							conn->taken == MYSQL_HEADER_BYTES);
	return conn_is_http(conn) ? http_begins(line, end, bytes)
				  : protocol_begins(line, end, bytes);
}

static inline __u32 protocol_of(__u32 begins)
{
	switch (begins) {
	case BEGINS_REQUEST:
	case BEGINS_UPLOAD:
	case BEGINS_TUNNEL:
		return PROTOCOL_HTTP;
	case BEGINS_LOGIN:
		return PROTOCOL_MYSQL;
	case BEGINS_TLS:
		return PROTOCOL_TLS;
	default:
		return PROTOCOL_OTHER;
	}
}

static inline void conn_learn(struct conn *conn, __u32 begins)
{
	if (conn->protocol == PROTOCOL_NEW && begins != BEGINS_MAYBE)
		conn->protocol = protocol_of(begins);
	if (conn->protocol == PROTOCOL_HTTP && (begins == BEGINS_UPLOAD || begins == BEGINS_TUNNEL))
		conn->protocol = PROTOCOL_HTTP_BODIES;
}

/* Whether bytes of a preamble have been read, and nothing of a request before. */
static inline int reading_has_preamble(const struct reading *reading)
{
	return reading->begins == BEGINS_PREAMBLE || reading->skipped;
}

/* When the request arrived that is read, behind a preamble or not; 0: not seen. */
static inline __u64 reading_arrived(const struct reading *reading)
{
	int later = reading->skipped && (__s32)(reading->skipped - reading->first_bytes) >= 0;

	return later && reading->next ? reading->next : reading->arrived;
}

/* How long what is read now has waited. */
static inline __u64 reading_queue_ns(const struct reading *reading)
{
	__u64 arrived = reading_arrived(reading);

	if (!arrived)
		return QUEUE_UNKNOWN;
	return reading->now > arrived ? reading->now - arrived : 0;
}

/* Whether what is read after the request before may be none: DOUBT_. */
static inline __u8 conn_doubts(const struct conn *conn, const struct reading *reading)
{
	if (conn_is_http(conn))
		return begins_http(reading->begins) ? DOUBT_NONE : DOUBT_UNKNOWN;
	/* What was short was no request with a body, but the end of a handshake. */
	if (conn->protocol == PROTOCOL_TLS && conn->taken > UNANSWERED_BYTES &&
	    conn_may_rest(conn, reading->arrived))
		return DOUBT_REST;
	return DOUBT_NONE;
}

static inline __u32 conn_tick(__u64 ns)
{
	return ns >> TICK_SHIFT;
}

/* Whether a client of no known protocol goes on after a silence in which it had no answer. */
static inline int conn_was_silent(const struct conn *conn, const struct reading *reading)
{
	__u64 arrived = reading->arrived ? reading->arrived : reading->now;

	return (__s32)(conn_tick(arrived) - conn->read_tick) >= (__s32)SILENCE_TICKS;
}

/*
 * Whether what was read of the request in progress was none, and wanted no answer: with HTTP/1 the
 * next request has come after it, in other protocols the client goes on of its own accord.
 */
static inline int conn_begins_anew(const struct conn *conn, const struct reading *reading)
{
	if (conn->protocol == PROTOCOL_OTHER)
		return conn_was_silent(conn, reading);
	if (conn->protocol == PROTOCOL_ONE_WAY)
		return reading->arrived > conn->read_ns;
	if (!conn->piece_ns)
		return 0;
	if (conn_is_http(conn))
		return conn->doubt && begins_http(reading->begins) &&
		       reading->arrived > conn->piece_ns;
	return conn->protocol == PROTOCOL_TLS &&
	       (conn->taken <= UNANSWERED_BYTES || conn->doubt == DOUBT_REST) &&
	       reading->arrived > conn->piece_ns + UNANSWERED_NS + 2 * reading->round_ns;
}

/* A command without an answer, or the rest of a body whose request is answered already. */
static inline int conn_is_rest(const struct conn *conn, __u32 begins)
{
	return begins == BEGINS_UNANSWERED || (conn_is_http(conn) && begins == BEGINS_OTHER);
}

/* A request begins, so the one before has been answered: did it cross an answer, or did it wait? */
static inline void conn_mixes(struct conn *conn)
{
	if (conn->crossed)
		conn->mixed += MIXED_WEIGHT;
	else if (conn->mixed)
		conn->mixed--;
}

/* HTTP/1 is exempt: a client that sends the rest of a body has been answered early. */
static inline int conn_is_multiplexed(struct conn *conn)
{
	if (conn_is_http(conn))
		return 0;
	conn_mixes(conn);
	return conn->mixed >= MIXED_MANY;
}

#endif
