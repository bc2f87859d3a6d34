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
#define HTTP_ROUTES_MAX 32U

/* Which clients may ask for a page. */
enum http_access {
	HTTP_GUARDED, /* those that --web.config.file lets in */
	HTTP_OPEN, /* all: no password, and no rate limit */
	/*
	 * Those of these that had to give a password or show a certificate, or whose connection
	 * begins and ends at addresses that only this machine has (a proxy on it lets others in,
	 * and a Unix socket has none); 403.
	 */
	HTTP_PRIVATE,
};

struct http_route {
	const char *path;
	const char *title; /* of the link on the page /; NULL: it has none */
	const char *about; /* of one that a feature brings: what it shows, for the man page */
	http_page_fn page;
	void *arg; /* of the function */
	bool prompt; /* small: made at once, beside the limits of other pages, of no arguments */
	enum http_access access;
	unsigned later_ms; /* how long a late answer may take; 0: the page does not come later */
	size_t later_max; /* how many late answers may be under way; 503 beyond */
	const void *later_pool; /* routes that have the same share that number; NULL: its own */
};

/* Zeroed: no pages. */
struct http_routes {
	struct http_route rows[HTTP_ROUTES_MAX];
	size_t len;
};

/* 0; -EEXIST: its path is that of another row; -ENOSPC: there are HTTP_ROUTES_MAX. */
int http_routes_add(struct http_routes *routes, const struct http_route *row);

/* The row of this path; NULL: there is none. */
const struct http_route *http_routes_find(const struct http_routes *routes, const char *path);

#endif
