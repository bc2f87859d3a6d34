/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pages there are: a table, which the program brings. A path that is in no row is answered
 * with 404, another method than GET and HEAD with 405.
 */
#ifndef WORKLOAD_HTTP_ROUTES_H
#define WORKLOAD_HTTP_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "http/page.h"

#define HTTP_HEALTH_PATH "/-/healthy"

struct http_route {
	const char *path;
	http_page_fn page;
	void *arg; /* of the function */
	bool prompt; /* small: made at once, beside the limits of other pages, of no arguments */
	bool open; /* asks for no password and knows no rate limit */
	unsigned later_ms; /* how long a late answer may take; 0: the page does not come later */
	size_t later_max; /* how many late answers may be under way; 503 beyond */
};

struct http_routes {
	const struct http_route *rows; /* borrowed */
	size_t len;
};

/* The first row of this path; NULL: there is none. */
const struct http_route *http_routes_find(const struct http_routes *routes, const char *path);

#endif
