/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to scrapes: what was asked for (format, coding, collectors, budget), from one snapshot
 * for all requests that came before it was taken, and one rendering for all that ask for the same.
 *
 * An answer is never made of facts that are older than its request. So answers are only shared by
 * requests that waited together, and once none waits there is nothing to keep: scrape_forget().
 */
#ifndef WORKLOAD_APP_SCRAPE_H
#define WORKLOAD_APP_SCRAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/collector.h"
#include "exposition/negotiate.h"
#include "features/features.h"
#include "http/routes.h"
#include "model/snapshot.h"

struct scrape {
	struct collector *collector; /* borrowed */
	unsigned int enabled; /* the collectors there are to ask for */
	const struct http_routes *routes; /* that the page / links to */

	/* The last snapshot, and what was rendered from it. */
	bool taken;
	uint64_t taken_ns;
	unsigned int collectors;
	uint64_t deadline_ns; /* UINT64_MAX if nothing was left out for want of time */
	struct snapshot snapshot;
	struct http_body *bodies[EXPOSITION_FORMATS][2]; /* plain, gzip; owned; NULL: not yet */
	struct http_body *landing; /* the same */
};

/* What a request asks for. */
struct scrape_query {
	enum exposition_format format;
	bool gzip;
	unsigned int collectors;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; UINT64_MAX: none */
};

/*
 * Reads @request where @enabled collectors can be asked for. -EINVAL with the reason, a line of
 * UTF-8 whatever was asked, in the @size bytes of @why: `collect[]` together with `exclude[]`, or a
 * collector that is unknown or disabled. A timeout that is no positive number of seconds is as good
 * as none.
 */
int scrape_query_read(const struct http_request *request, unsigned int enabled,
		      struct scrape_query *query, char *why, size_t size);

/*
 * A snapshot that is not older than @arrived_ns, of @collectors: that of before if it will do. What
 * the deadline left out for another request, with an earlier one, will not do.
 */
const struct snapshot *scrape_snapshot(struct scrape *scrape, unsigned int collectors,
				       uint64_t arrived_ns, uint64_t deadline_ns);

/* http_page_fns; @scrape is a struct scrape. 400 for what scrape_query_read() refuses. */
int scrape_page(void *scrape, const struct http_request *request, struct http_page *page);
int scrape_landing(void *scrape, const struct http_request *request, struct http_page *page);

/* Frees what was rendered. To be called when no request waits. */
void scrape_forget(struct scrape *scrape);

#endif
