/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server: libmicrohttpd without threads, driven by the caller's loop. It accepts itself,
 * from any number of sockets, because libmicrohttpd would stop accepting at its limit.
 *
 * The caller's loop watches the server's descriptors, and the caller makes a run when one is due
 * (http_server_due_ns()). A run accepts, reads, calls back and writes without blocking. Without
 * connections there is no date: at rest the server costs nothing.
 *
 * The caller brings the pages (routes.h). Requests with a body are refused (413). No call raises
 * SIGPIPE.
 *
 * One thread. All functions but start expect a started server.
 */
#ifndef WORKLOAD_HTTP_SERVER_H
#define WORKLOAD_HTTP_SERVER_H

#include "base/loop.h"
#include "http/handler.h"
#include "model/snapshot.h"

#define HTTP_LISTENERS_MAX 16
#define HTTP_MAX_REQUESTS 40

struct http_server_options {
	int listeners[HTTP_LISTENERS_MAX]; /* listening, non-blocking */
	size_t listeners_len;
	struct loop *loop; /* borrowed while the server lives, as all below */
	struct guard *guard;
	struct helper *checker; /* the guard's; NULL if it has none */
	struct http_routes routes; /* whose functions are called within run */
	size_t max_requests; /* pages sent at the same time; 0: HTTP_MAX_REQUESTS */
	unsigned idle_ms; /* an answered client may ask again for so long; 0: 2 minutes */
	unsigned deadline_ms; /* for a request to be complete, and for an answer that does not come
				 later (routes.h); 0: 20 s */
};

struct http_server;

/*
 * Takes the listeners over, in any case. 0 with the server in @server (stop releases it), or
 * -errno.
 */
int http_server_start(const struct http_server_options *options, struct http_server **server);

/* When run must be called (CLOCK_MONOTONIC): 0 now, as something came; UINT64_MAX: not yet. */
uint64_t http_server_due_ns(const struct http_server *server);

/*
 * Returns how many requests wait for the next run, which is due at once. While it is 0, no answer
 * that was made before will do for any request to come. -ESHUTDOWN if a socket does not listen any
 * more: another process has shut it down (ss -K, or one that shares it).
 */
int http_server_run(struct http_server *server);

/* What was turned away before this run: a row for each reason; it lives as long as the server. */
const struct http_refusal_row *http_server_refusals(const struct http_server *server, size_t *len);

/* Closes all connections and the listeners; NULL is nothing. For _cleanup_: stopp. */
void http_server_stop(struct http_server *server);

static inline void http_server_stopp(struct http_server **server)
{
	http_server_stop(*server);
}

#endif
