/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* At which endpoints the server speaks first, and since when a client waits for that. */
#ifndef WORKLOAD_REQUESTS_OPENINGS_H
#define WORKLOAD_REQUESTS_OPENINGS_H

#include "core/endpoints.h"

/*
 * When the connection was made on which the server speaks first now; 0 where the client does so: a
 * server that sends there is tired of waiting (HTTP 408).
 */
static inline __u64 opening_greeted(const struct tracked *tracked)
{
	const struct endpoint_info *info = tracked_info(tracked);

	return info && !(info->learned & LEARNED_CLIENT_FIRST) ? tracked->born_ns : 0;
}

/* Whether the first answer of a connection tells that clients speak first at its endpoint. */
static inline int opening_is_client_s(const struct conn *conn)
{
	return conn->opens || conn->protocol == PROTOCOL_TLS || conn_is_http(conn);
}

/* Since when the client of a connection waits for the server to speak; 0: it does not. */
VERIFIED_ALONE __u64 opening_waits(struct tracked *tracked)
{
	const struct endpoint_info *info;

	if (!tracked || !tracked->born_ns || !conn_is_new(&tracked->conn))
		return 0;
	info = tracked_info(tracked);
	return info && (info->learned & LEARNED_FIRST) == LEARNED_SERVER_FIRST ? tracked->born_ns
									       : 0;
}

#endif
