/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The end of a client, and whether it waited for anything. No hook, no helper, no map. */
#ifndef WORKLOAD_MACHINE_GOODBYE_H
#define WORKLOAD_MACHINE_GOODBYE_H

#include "machine/connection.h"

/*
 * Bytes and the end of the client (FIN) within this time are a goodbye: no client waits for the
 * answer to a request for so short a time only. A client needs microseconds between the two, or a
 * few milliseconds if it loses its CPU in between.
 */
#define GOODBYE_NS 10000000ULL

/* The client will send no more. */
static inline void conn_fin(struct conn *conn, __u64 now)
{
	if (!conn->fin_ns)
		conn->fin_ns = now;
}

/*
 * When the request in service began to arrive, as far as it was seen. The wait of the first one
 * began before that, if the server has spoken first: of it the last arrival is known.
 */
static inline __u64 conn_first_ns(const struct conn *conn)
{
	if (conn->greeted && !conn->piece_ns)
		return conn->latest_ns;
	return conn->queue_ns == QUEUE_UNKNOWN ? conn->read_ns : conn->read_ns - conn->queue_ns;
}

/* Whether the client's end came with bytes that have been there since @first. */
static inline int conn_goodbye(const struct conn *conn, __u64 first)
{
	return conn->fin_ns && (__s64)(conn->fin_ns - first) <= (__s64)GOODBYE_NS;
}

#endif
