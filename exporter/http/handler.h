/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to its answer: which clients may ask (web/guard.h), what there is, how many at
 * once. The callbacks of libmicrohttpd; the connections and the loop are the server's (server.h).
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
#include "http/routes.h"
#include "http/turns.h"
#include "web/guard.h"

/* Of all pages that are being sent, but for one that is alone; no more are made until others end.
 */
#define HTTP_SENDING_MAX_BYTES ((size_t)32 << 20)

struct http_handler {
	struct guard *guard; /* borrowed, as all below */
	struct http_connections *connections;
	struct http_routes routes;
	size_t max_requests; /* pages that are sent at the same time */
	struct http_turns turns;
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
