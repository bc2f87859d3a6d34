/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the HTTP server and the pages tell each other: what was asked, what is answered. Nothing in
 * here knows libmicrohttpd.
 */
#ifndef WORKLOAD_HTTP_PAGE_H
#define WORKLOAD_HTTP_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

#define HTTP_CONTENT_TYPE_PLAIN "text/plain; charset=utf-8"
#define HTTP_CONTENT_TYPE_HTML "text/html; charset=utf-8"

#define HTTP_ARGUMENTS_MAX 32 /* in a query; a request with more is refused */

/* One `name=value` of the query, percent-decoded; value is "" without `=`. */
struct http_argument {
	const char *name;
	const char *value;
};

/*
 * A GET or HEAD request. All of it is hostile, and borrowed for the call. A header that was not
 * sent is "".
 */
struct http_request {
	const char *host; /* by which name or address, and port, it was asked */
	const char *accept;
	const char *accept_encoding;
	const char *scrape_timeout; /* X-Prometheus-Scrape-Timeout-Seconds */
	struct http_argument arguments[HTTP_ARGUMENTS_MAX];
	size_t arguments_len;
	struct http_later *later; /* for an answer that comes later; NULL: it may not */
	uint64_t arrived_ns; /* CLOCK_MONOTONIC: an answer made of older facts is stale */
	bool made_only; /* there is no memory for another body: -EAGAIN where one must be made */
};

/* Bytes that several answers share; immutable once made. Not thread-safe. */
struct http_body {
	struct buffer bytes;
	unsigned int references;
	unsigned int senders; /* of the references: answers that are being sent */
};

/*
 * Takes the bytes of @bytes over, which is empty afterwards. One reference, the caller's. NULL,
 * with
 * @bytes untouched, without memory.
 */
struct http_body *http_body_new(struct buffer *bytes);
struct http_body *http_body_ref(struct http_body *body);
void http_body_unref(struct http_body *body); /* NULL is nothing */

static inline void http_body_unrefp(struct http_body **body)
{
	http_body_unref(*body);
}

/* An answer. Texts live for ever; NULL leaves the header out. */
struct http_page {
	unsigned int status;
	const char *content_type;
	const char *content_encoding;
	const char *vary;
	struct http_body *body; /* one reference, which the receiver of the page releases */
};

/*
 * An answer that comes later. A page function that returns HTTP_LATER has kept it and filled it in.
 * Then one of two things happens, once, and after that it must not be used any more: its maker
 * calls http_later_answer(), or `gone` is called, as the client has gone, another origin had fewer
 * answers under way, the route's time is over, or the server stops. That may be while another
 * request is at its page function.
 */
struct http_later {
	void (*gone)(void *arg);
	void *arg;
};

#define HTTP_LATER 1

/*
 * Takes @page over; NULL where it could not be made, which is answered with 503. Not within the
 * page function; the answer is sent in the server's next run.
 */
void http_later_answer(struct http_later *later, const struct http_page *page);

/*
 * Fills @page, which is all zeros. 0; HTTP_LATER; -errno is answered with 503, and @page is then
 * untouched; with -EAGAIN it is asked for again once other answers have begun or ended, but for one
 * that may come later.
 * HEAD requests are asked for in the same way.
 */
typedef int (*http_page_fn)(void *arg, const struct http_request *request, struct http_page *page);

/* Fills @page with @bytes, which are taken over as by http_body_new(). 0; their error; -ENOMEM. */
int http_page_bytes(struct http_page *page, unsigned int status, const char *content_type,
		    struct buffer *bytes);

/* Fills @page with plain text. 0 or -ENOMEM. */
int http_page_text(struct http_page *page, unsigned int status, const char *text);

#endif
