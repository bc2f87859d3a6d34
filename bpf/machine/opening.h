/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections on which the server speaks first (SMTP, MySQL, FTP, SSH): the client sends nothing
 * until it is greeted, so that no arrival of bytes tells how long it waits. Its wait begins with
 * the connection. From the first send to the first read conn->queue_ns is what it has come to.
 *
 * No hook, no helper, no map; the caller brings the facts.
 */
#ifndef WORKLOAD_MACHINE_OPENING_H
#define WORKLOAD_MACHINE_OPENING_H

#include "machine/goodbye.h"
#include "machine/reading.h"

/*
 * Whether nothing but a preamble has been read, and nothing was sent. Of a connection whose turns
 * are not measured neither is known.
 */
static inline int conn_is_new(const struct conn *conn)
{
	return !conn->read_ns && !conn->told_seq && !conn->closed;
}

/* Whether nothing at all has been read. */
static inline int conn_is_unread(const struct conn *conn)
{
	return !conn->read_ns && !conn->preamble.version;
}

/* Whether the server has spoken, and the first request is still to come. */
static inline int conn_is_greeted(const struct conn *conn)
{
	return conn->greeted && !conn->read_ns;
}

/* A client has left that waited to be greeted, unless it only checked that a server listens. */
static inline __u32 conn_gave_up(const struct conn *conn, __u64 opened_ns)
{
	return conn_goodbye(conn, opened_ns) ? 0 : REQUEST_ABANDONED_QUEUED;
}

/* The first send of a connection on which the server speaks first. */
static inline __u32 conn_greet(struct conn *conn, const struct sending *sending)
{
	__u64 opened = sending->opened_ns;

	conn->greeted = 1;
	if (conn->fin_ns && !conn->arrived_ns)
		return conn_gave_up(conn, opened);
	conn->queue_ns = sending->now > opened ? sending->now - opened : 0;
	return REQUEST_GREETED;
}

/* It is closed before anything was sent. */
static inline __u32 conn_ungreeted(struct conn *conn, __u64 now, const struct stream *stream)
{
	if (stream->reset)
		conn_fin(conn, now);
	return conn_gave_up(conn, stream->opened_ns);
}

/* Whether a client is there that waits to be greeted; @opened_ns as in struct stream. */
static inline int conn_awaits(const struct conn *conn, __u64 opened_ns)
{
	return opened_ns && !conn_goodbye(conn, opened_ns);
}

/*
 * How long the client has waited for what is read now, and before that for the greeting. What came
 * before the greeting (SSH, a client in a hurry) did not wait twice.
 */
static inline __u64 conn_waited_ns(const struct conn *conn, const struct reading *reading)
{
	__u64 waited = reading_queue_ns(reading), greeted;

	if (!reading->opened_ns || waited == QUEUE_UNKNOWN)
		return waited;
	greeted = reading->opened_ns + conn->queue_ns;
	if (reading_arrived(reading) < greeted)
		waited = reading->now > greeted ? reading->now - greeted : 0;
	return conn->queue_ns + waited;
}

#endif
