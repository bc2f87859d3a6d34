/* SPDX-License-Identifier: Apache-2.0 */
#include "app/scrape.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"
#include "exposition/gzip.h"
#include "exposition/openmetrics.h"
#include "exposition/protobuf.h"
#include "exposition/text.h"
#include "http/landing.h"

#define BODY_MAX_BYTES ((size_t)64 << 20)
#define TIMEOUT_MAX_SECONDS 86400 /* more is as good as none */
#define WHY_BYTES 256
#define SHOWN_BYTES 65 /* of a name that is no collector's */
/* Of a timeout, for rendering and the way back: a tenth, half a second at most. */
#define RESERVE_PART 10
#define RESERVE_MAX_NS (NS_PER_S / 2)

/* --- what is asked for --------------------------------------------------------------------- */

/* Seconds as "10" or "9.5", to nanoseconds; 0 if it is anything else, or too long to matter. */
static uint64_t timeout_read(const char *text)
{
	uint64_t ns = 0, unit_ns = NS_PER_S;

	if (*text < '0' || *text > '9')
		return 0;
	for (; *text >= '0' && *text <= '9'; text++) {
		ns = ns * 10 + (uint64_t)(*text - '0') * NS_PER_S;
		if (ns > TIMEOUT_MAX_SECONDS * NS_PER_S)
			return 0;
	}
	if (*text == '.')
		text++;
	for (; *text >= '0' && *text <= '9'; text++) {
		unit_ns /= 10;
		ns += (uint64_t)(*text - '0') * unit_ns;
	}
	return *text ? 0 : ns;
}

static uint64_t deadline_read(const struct http_request *request)
{
	uint64_t timeout_ns = timeout_read(request->scrape_timeout);
	uint64_t reserve_ns = timeout_ns / RESERVE_PART;

	if (!timeout_ns)
		return UINT64_MAX;
	if (reserve_ns > RESERVE_MAX_NS)
		reserve_ns = RESERVE_MAX_NS;
	return request->arrived_ns + timeout_ns - reserve_ns;
}

/* The collectors that arguments @name name. -EINVAL with the reason in @why. */
static int collectors_read(const struct http_request *request, const char *name,
			   unsigned int enabled, unsigned int *collectors, char *why, size_t size)
{
	*collectors = 0;
	for (size_t i = 0; i < request->arguments_len; i++) {
		const struct http_argument *argument = &request->arguments[i];
		char names[FEATURES_NAMES_BYTES], shown[SHOWN_BYTES];
		int id;

		if (strcmp(argument->name, name) != 0)
			continue;
		id = features_find(argument->value);
		if (id < 0 || !(enabled & 1U << id)) {
			bool there = id >= 0 && features_table[id]->collector;

			utf8_copy(shown, sizeof(shown), argument->value);
			snprintf(why, size, "%s=%s: %s; the collectors are: %s.\n", name, shown,
				 there ? "this collector is disabled by a flag"
				       : "there is no such collector",
				 features_names(features_collectors(), names, sizeof(names)));
			return -EINVAL;
		}
		*collectors |= 1U << id;
	}
	return 0;
}

int scrape_query_read(const struct http_request *request, unsigned int enabled,
		      struct scrape_query *query, char *why, size_t size)
{
	unsigned int collect, exclude;

	if (collectors_read(request, "collect[]", enabled, &collect, why, size) < 0 ||
	    collectors_read(request, "exclude[]", enabled, &exclude, why, size) < 0)
		return -EINVAL;
	if (collect && exclude) {
		snprintf(why, size, "collect[] and exclude[] cannot be combined.\n");
		return -EINVAL;
	}
	*query = (struct scrape_query){
		.format = exposition_negotiate(request->accept),
		.gzip = exposition_accepts_gzip(request->accept_encoding),
		.collectors = collect ? collect : enabled & ~exclude,
		.deadline_ns = deadline_read(request),
	};
	return 0;
}

/* --- what is answered ---------------------------------------------------------------------- */

void scrape_forget(struct scrape *scrape)
{
	for (size_t i = 0; i < EXPOSITION_FORMATS; i++) {
		http_body_unref(scrape->bodies[i][false]);
		http_body_unref(scrape->bodies[i][true]);
	}
	memset(scrape->bodies, 0, sizeof(scrape->bodies));
	http_body_unref(scrape->landing);
	scrape->landing = NULL;
	scrape->taken = false;
}

static bool scrape_will_do(const struct scrape *scrape, unsigned int collectors,
			   uint64_t arrived_ns, uint64_t deadline_ns)
{
	return scrape->taken && scrape->collectors == collectors &&
	       scrape->taken_ns >= arrived_ns && scrape->deadline_ns >= deadline_ns;
}

const struct snapshot *scrape_snapshot(struct scrape *scrape, unsigned int collectors,
				       uint64_t arrived_ns, uint64_t deadline_ns)
{
	bool whole;

	if (scrape_will_do(scrape, collectors, arrived_ns, deadline_ns))
		return &scrape->snapshot;
	scrape_forget(scrape);
	scrape->taken_ns = clock_monotonic_ns();
	whole = collector_collect(scrape->collector, collectors, deadline_ns, &scrape->snapshot);
	scrape->deadline_ns = whole ? UINT64_MAX : deadline_ns;
	scrape->collectors = collectors;
	scrape->taken = true;
	return &scrape->snapshot;
}

static int render(const struct snapshot *snapshot, const struct scrape_query *query,
		  struct buffer *out)
{
	static int (*const renders[])(const struct snapshot *snapshot, struct buffer *out) = {
		[EXPOSITION_TEXT] = exposition_text_render,
		[EXPOSITION_OPENMETRICS] = exposition_openmetrics_render,
		[EXPOSITION_PROTOBUF] = exposition_protobuf_render,
	};
	_cleanup_(buffer_free) struct buffer plain = BUFFER_INIT(BODY_MAX_BYTES);
	int r;

	if (!query->gzip)
		return renders[query->format](snapshot, out);
	r = renders[query->format](snapshot, &plain);
	return r ? r : exposition_gzip(&plain, out);
}

/* Renders the last snapshot for @query; the landing page where that is NULL. */
static int scrape_render(const struct scrape *scrape, const struct scrape_query *query,
			 struct buffer *out)
{
	return query ? render(&scrape->snapshot, query, out)
		     : landing_render(&scrape->snapshot, scrape->routes, out);
}

/* One more reference to the body in @shared, which is made of a snapshot that will do if need be.
 */
static int scrape_body(struct scrape *scrape, const struct http_request *request,
		       const struct scrape_query *query, struct http_body **shared,
		       struct http_body **body)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(BODY_MAX_BYTES);
	unsigned int collectors = query ? query->collectors : scrape->enabled;
	uint64_t deadline_ns = query ? query->deadline_ns : UINT64_MAX;
	int r = 0;

	if (request->made_only &&
	    !(*shared && scrape_will_do(scrape, collectors, request->arrived_ns, deadline_ns)))
		return -EAGAIN;
	scrape_snapshot(scrape, collectors, request->arrived_ns, deadline_ns);
	if (!*shared)
		r = scrape_render(scrape, query, &out);
	if (r)
		return r;
	if (!*shared)
		*shared = http_body_new(&out);
	if (!*shared)
		return -ENOMEM;
	*body = http_body_ref(*shared);
	return 0;
}

int scrape_landing(void *arg, const struct http_request *request, struct http_page *page)
{
	struct scrape *scrape = arg;
	struct http_body *body;
	int r = scrape_body(scrape, request, NULL, &scrape->landing, &body);

	if (!r)
		*page = (struct http_page){
			.status = 200,
			.content_type = HTTP_CONTENT_TYPE_HTML,
			.body = body,
		};
	return r;
}

int scrape_page(void *arg, const struct http_request *request, struct http_page *page)
{
	static const char *const content_types[] = {
		[EXPOSITION_TEXT] = TEXT_CONTENT_TYPE,
		[EXPOSITION_OPENMETRICS] = OPENMETRICS_CONTENT_TYPE,
		[EXPOSITION_PROTOBUF] = PROTOBUF_CONTENT_TYPE,
	};
	struct scrape *scrape = arg;
	struct scrape_query query;
	struct http_body *body;
	char why[WHY_BYTES];
	int r;

	if (scrape_query_read(request, scrape->enabled, &query, why, sizeof(why)) < 0)
		return http_page_text(page, 400, why);
	r = scrape_body(scrape, request, &query, &scrape->bodies[query.format][query.gzip], &body);
	if (r)
		return r;
	*page = (struct http_page){
		.status = 200,
		.content_type = content_types[query.format],
		.content_encoding = query.gzip ? "gzip" : NULL,
		.vary = "Accept, Accept-Encoding",
		.body = body,
	};
	return 0;
}
