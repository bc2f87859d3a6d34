/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a send is: an answer, a part of one, an interim one, the last one of HTTP, or none. No hook,
 * no helper, no map; the caller brings the facts.
 */
#ifndef WORKLOAD_MACHINE_SENDING_H
#define WORKLOAD_MACHINE_SENDING_H

#include "machine/connection.h"
#include "machine/protocol.h"

/* Whether a send may answer what was read with the rest of a body, after the last send. */
static inline int conn_may_answer_rest(const struct conn *conn)
{
	__u64 phase = conn->phase;

	return conn->protocol == PROTOCOL_HTTP_BODIES && phase != PHASE_SERVICE &&
	       conn->piece_ns > (phase ? phase : conn->settled_ns);
}

/* Whether a send at @now goes on with an answer, after its first pause. */
static inline int conn_pauses(const struct conn *conn, __u64 now)
{
	return conn->phase > PHASE_SERVICE && !conn->paused && now >= conn->phase + PAUSE_NS;
}

/*
 * Whether it takes the threads to tell if a send at @now still belongs to the answer of @phase: one
 * that is so old has ended, unless a thread is at it, or the server waits for room to go on. The
 * sweep asks the same, so that nothing depends on when it passes.
 */
static inline int conn_asks_over(const struct conn *conn, __u64 phase, __u64 now)
{
	return phase > PHASE_SERVICE && now >= phase + SETTLE_NS && !conn->wanting;
}

/*
 * Whether what is sent first since a request was read is looked at, as it may be an interim
 * answer. A look costs as much as the rest of the request: so long ones are left out, but for the
 * first of a connection, for requests with bodies, and where there have been some.
 */
static inline int conn_may_interim(const struct conn *conn, const struct sending *sending)
{
	return sending->sent_seq - conn->start_seq == sending->bytes &&
	       (sending->bytes <= INTERIM_BYTES || !conn->piece_ns || conn->upload ||
		conn->interim);
}

/* Whether it takes the bytes of @sending to tell what it is. */
static inline int conn_asks_sent_bytes(const struct conn *conn, const struct sending *sending)
{
	if (conn->protocol < PROTOCOL_HTTP)
		return 0;
	if (conn->phase == PHASE_SERVICE)
		return conn_may_interim(conn, sending);
	return conn_may_answer_rest(conn) || (!conn->interim && conn_pauses(conn, sending->now));
}

/* Whether it takes the sending thread to tell: one that waited since the read does not answer. */
static inline int conn_asks_left(const struct conn *conn)
{
	return conn->protocol == PROTOCOL_ONE_WAY && conn->phase == PHASE_SERVICE;
}

/*
 * Whether another protocol follows an answer that begins so. RFC 9110, sections 15.2.2 (101
 * Switching Protocols) and 9.3.6 (any 2xx to CONNECT).
 */
static inline int conn_switches(const struct conn *conn, __u32 begins)
{
	return begins == BEGINS_SWITCH || (conn->tunnel && begins == BEGINS_SUCCESS);
}

#endif
