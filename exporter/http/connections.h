/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is connected, and for how long without a complete request: libmicrohttpd's timeout counts
 * inactivity only, so that a client sending a byte now and then would keep its place for ever, and
 * at its limit it turns new clients away. Here such clients lose their place instead.
 *
 * Connections are ordered by their last progress (connected, request complete, answer sent).
 */
#ifndef WORKLOAD_HTTP_CONNECTIONS_H
#define WORKLOAD_HTTP_CONNECTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct http_connection {
	TAILQ_ENTRY(http_connection) link;
	int fd; /* not owned */
	uint64_t progress_ms; /* CLOCK_MONOTONIC */
	int closing; /* has been shut down and waits to be closed by its owner */
};

struct http_connections {
	TAILQ_HEAD(http_connection_list, http_connection) list; /* oldest progress first */
	size_t len; /* those that are not closing */
	size_t max; /* with one more, the oldest is shut down */
	uint64_t deadline_ms; /* without progress for so long: shut down */
};

void http_connections_init(struct http_connections *connections, size_t max, uint64_t deadline_ms);

/*
 * Adds @fd; the record is owned by @connections until removed. NULL without memory. The oldest
 * connection is shut down if there are too many now; its owner then sees the end of its stream.
 */
struct http_connection *http_connections_add(struct http_connections *connections, int fd,
					     uint64_t now_ms);
void http_connections_remove(struct http_connections *connections,
			     struct http_connection *connection);
void http_connections_progress(struct http_connections *connections,
			       struct http_connection *connection, uint64_t now_ms);

/* Shuts down those whose deadline has passed. Returns the ms until the next deadline, -1 if none.
 */
int http_connections_expire(struct http_connections *connections, uint64_t now_ms);

/* As http_connections_expire returns, without shutting anything down; 0 if one has passed. */
int http_connections_timeout_ms(const struct http_connections *connections, uint64_t now_ms);

#endif
