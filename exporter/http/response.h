/* SPDX-License-Identifier: Apache-2.0 */
/* From a page to a response of libmicrohttpd, with the headers that each must have. */
#ifndef WORKLOAD_HTTP_RESPONSE_H
#define WORKLOAD_HTTP_RESPONSE_H

#include <microhttpd.h>

#include "http/page.h"
#include "web/guard.h"

/*
 * Queues @page, whose body it takes over: shared with other responses, not copied. HEAD gets it
 * too, for the length, and is sent none of it. @guard knows the headers of the web configuration
 * file. MHD_NO without memory: the connection is closed.
 */
enum MHD_Result http_respond(struct MHD_Connection *connection, const struct guard *guard,
			     const struct http_page *page);

/* The same with plain text, which is constant. */
enum MHD_Result http_respond_text(struct MHD_Connection *connection, const struct guard *guard,
				  unsigned int status, const char *text);

#endif
