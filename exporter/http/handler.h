/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to its answer: who may ask (web/guard.h), what there is, how many at once. The
 * callbacks of libmicrohttpd; the connections and the loop are the server's (server.h).
 */
#ifndef WORKLOAD_HTTP_HANDLER_H
#define WORKLOAD_HTTP_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <microhttpd.h>

#include "http/connections.h"
#include "http/page.h"
#include "http/refusals.h"
#include "web/guard.h"

#define HTTP_HEALTH_PATH "/-/healthy"

/* Of all pages that are being sent, but for one that is alone; no more are made until others end.
 */
#define HTTP_SENDING_MAX_BYTES ((size_t)32 << 20)

/* What a request waits for. */
enum http_wait {
	HTTP_WAIT_NOTHING,
	HTTP_WAIT_RUN, /* the next run, with all others that have come in this one */
	HTTP_WAIT_ROOM, /* until there is room for its page */
	HTTP_WAIT_CHECK, /* until its password has been compared */
	HTTP_WAITS,
};

struct http_handler {
	struct guard *guard; /* borrowed, as all below */
	struct http_connections *connections;
	const char *telemetry_path;
	bool health_open; /* HTTP_HEALTH_PATH asks for no password and knows no rate limit */
	http_page_fn metrics;
	http_page_fn landing;
	void *arg; /* for both */
	size_t max_requests; /* pages that are sent at the same time */
	size_t waiting[HTTP_WAITS]; /* requests, by what they wait for */
	size_t sending_bytes; /* of pages that are being sent, shared ones once */
	size_t page_bytes; /* of the last page: so much the next one will have */
	uint64_t refused[HTTP_REFUSALS];
};

/* MHD_AccessHandlerCallback; @arg is the struct http_handler, as in those below. */
enum MHD_Result http_handler_request(void *arg, struct MHD_Connection *connection, const char *path,
				     const char *method, const char *version, const char *upload,
				     size_t *upload_bytes, void **request);

/* For MHD_OPTION_URI_LOG_CALLBACK: a request line has come. NULL. */
void *http_handler_begun(void *arg, const char *uri, struct MHD_Connection *connection);

/* MHD_RequestCompletedCallback. */
void http_handler_completed(void *arg, struct MHD_Connection *connection, void **request,
			    enum MHD_RequestTerminationCode how);

#endif
