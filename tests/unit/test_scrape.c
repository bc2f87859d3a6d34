/* SPDX-License-Identifier: Apache-2.0 */
/* What a request asks for, and which requests share an answer. */
#include <criterion/criterion.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <libdeflate.h>

#include "app/scrape.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "core.h"
#include "made_up.h"

#define SECOND 1000000000ULL
#define ONE(name) (1U << (unsigned int)features_find(name))
#define ALL (ONE("discovery") | ONE("requests") | ONE("threads"))
#define REQUESTS ONE("requests")
#define THREADS ONE("threads")

/* --- what is asked for --------------------------------------------------------------------- */

/* Reads a query of up to two arguments, of @enabled collectors; what it is, or -EINVAL. */
static int read_query(const char *first, const char *second, unsigned int enabled,
		      struct scrape_query *query, char why[256])
{
	static char names[2][32], values[2][128];
	const char *texts[] = { first, second };
	struct http_request request = { .accept = "", .accept_encoding = "", .scrape_timeout = "" };

	for (size_t i = 0; i < 2 && texts[i]; i++) {
		size_t len = strcspn(texts[i], "=");

		snprintf(names[i], sizeof(names[i]), "%.*s", (int)len, texts[i]);
		snprintf(values[i], sizeof(values[i]), "%s", texts[i] + len + 1);
		request.arguments[i] = (struct http_argument){ names[i], values[i] };
		request.arguments_len++;
	}
	return scrape_query_read(&request, enabled, query, why, 256);
}

static unsigned int parts_of(const char *first, const char *second, unsigned int enabled)
{
	struct scrape_query query;
	char why[256] = "";

	cr_assert_eq(read_query(first, second, enabled, &query, why), 0, "%s", why);
	return query.collectors;
}

static void expect_refused(const char *first, const char *second, const char *reason)
{
	struct scrape_query query;
	char why[256] = "";

	cr_expect_eq(read_query(first, second, ALL & ~THREADS, &query, why), -EINVAL);
	cr_expect_not_null(strstr(why, reason), "no \"%s\" in \"%s\"", reason, why);
}

Test(scrape_query, all_enabled_parts_unless_asked_otherwise)
{
	cr_expect_eq(parts_of(NULL, NULL, ALL), ALL);
	cr_expect_eq(parts_of(NULL, NULL, REQUESTS), REQUESTS);
	cr_expect_eq(parts_of("name=x", "collect=requests", ALL), ALL);
}

Test(scrape_query, collect_asks_for_parts)
{
	cr_expect_eq(parts_of("collect[]=requests", NULL, ALL), REQUESTS);
	cr_expect_eq(parts_of("collect[]=requests", "collect[]=threads", ALL), REQUESTS | THREADS);
	cr_expect_eq(parts_of("collect[]=requests", "collect[]=requests", ALL), REQUESTS);
}

Test(scrape_query, exclude_leaves_parts_out)
{
	cr_expect_eq(parts_of("exclude[]=requests", NULL, ALL), ALL & ~REQUESTS);
	cr_expect_eq(parts_of("exclude[]=requests", "exclude[]=threads", ALL),
		     ALL & ~REQUESTS & ~THREADS);
}

Test(scrape_query, says_what_is_wrong)
{
	expect_refused("collect[]=requests", "exclude[]=discovery", "cannot be combined");
	expect_refused("collect[]=cpu", NULL, "cpu: there is no such collector");
	expect_refused("collect[]=cpu", NULL, "discovery, requests, threads");
	expect_refused("exclude[]=", NULL, "there is no such collector");
	expect_refused("collect[]=threads", NULL, "disabled by a flag");
}

/* Characters of three bytes: what is shown of a name ends within one of them. */
#define EUROS "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac"

/* The reason is a page: what was asked for is on it, and any bytes can be asked for. */
Test(scrape_query, the_reason_is_a_line_of_characters_whatever_was_asked_for)
{
	expect_refused("collect[]=\x1b[2J\xff\n", NULL,
		       "=" UTF8_REPLACEMENT "[2J" UTF8_REPLACEMENT UTF8_REPLACEMENT ": there is");
	expect_refused("collect[]=xx" EUROS EUROS EUROS, NULL, "xx" EUROS EUROS ": there is");
}

static uint64_t deadline_of(const char *timeout)
{
	struct http_request request = {
		.accept = "",
		.accept_encoding = "",
		.scrape_timeout = timeout,
		.arrived_ns = 1000 * SECOND,
	};
	struct scrape_query query;
	char why[256];

	cr_assert_eq(scrape_query_read(&request, ALL, &query, why, sizeof(why)), 0);
	return query.deadline_ns;
}

Test(scrape_query, the_timeout_less_a_reserve_is_the_deadline)
{
	cr_expect_eq(deadline_of("10"), 1000 * SECOND + 9500000000);
	cr_expect_eq(deadline_of("1"), 1000 * SECOND + 900000000);
	cr_expect_eq(deadline_of("9.5"), 1000 * SECOND + 9000000000);
	cr_expect_eq(deadline_of("0.000000010999"), 1000 * SECOND + 9);
	cr_expect_eq(deadline_of("10."), 1000 * SECOND + 9500000000);
}

Test(scrape_query, a_timeout_that_is_none_is_ignored)
{
	static const char *const nonsense[] = { "",
						"0",
						"0.0",
						"-1",
						"+1",
						" 1",
						"1 ",
						"ten",
						"1e3",
						"0x10",
						"nan",
						"inf",
						".5",
						"1s",
						"1.2.3",
						"1,5",
						"99999999999999999999",
						"86401" };

	for (size_t i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++)
		cr_expect_eq(deadline_of(nonsense[i]), UINT64_MAX, "%s", nonsense[i]);
}

/* --- what is answered ---------------------------------------------------------------------- */

/* Of the core on plain memory, where the feature `counted` tells how many snapshots were taken. */
struct source {
	struct core *core;
	struct scrape scrape;
};

static uint64_t taken(void)
{
	return made_up_counted.taken;
}

static void source_init(struct source *source)
{
	source->core = core_start(ALL);
	source->scrape = (struct scrape){ .collector = &source->core->collector, .enabled = ALL };
}

static void source_free(struct source *source)
{
	scrape_forget(&source->scrape);
	core_stop(source->core);
}

/* Which collectors the last snapshot is of. */
static unsigned int collected(const struct source *source)
{
	const struct snapshot *snapshot = &source->scrape.snapshot;
	unsigned int mask = 0;

	for (size_t i = 0; i < snapshot->collectors_len; i++)
		mask |= ONE(snapshot->collectors[i].collector);
	return mask;
}

/* A request that came just now. */
static struct http_request request_now(void)
{
	return (struct http_request){
		.accept = "",
		.accept_encoding = "",
		.scrape_timeout = "",
		.arrived_ns = clock_monotonic_ns(),
	};
}

static struct http_page ask(struct source *source, const struct http_request *request)
{
	struct http_page page = { 0 };

	cr_assert_eq(scrape_page(&source->scrape, request, &page), 0);
	return page;
}

#define COUNTED "\nworkload_exporter_mutex_processes{result=\"counted\"} "

/* Which of the snapshots the answer was made of; releases it. */
static uint64_t answered(struct http_page page)
{
	uint64_t number = 0;
	const char *at;

	buffer_char(&page.body->bytes, '\0');
	at = strstr(page.body->bytes.data, COUNTED);
	cr_assert_not_null(at);
	cr_assert_eq(sscanf(at + strlen(COUNTED), "%" SCNu64, &number), 1);
	page.body->bytes.len--;
	http_body_unref(page.body);
	return number;
}

Test(scrape, requests_that_waited_together_share_one_rendering)
{
	_cleanup_(source_free) struct source source;
	struct http_request first = request_now(), second = request_now();
	struct http_page one, two;

	source_init(&source);
	one = ask(&source, &first);
	two = ask(&source, &second);
	cr_expect_eq(one.body, two.body);
	cr_expect_eq(taken(), 1);
	scrape_forget(&source.scrape);
	cr_expect_eq(answered(one), 1, "outlives what is forgotten");
	cr_expect_eq(answered(two), 1);
}

Test(scrape, a_request_never_gets_a_snapshot_older_than_itself)
{
	_cleanup_(source_free) struct source source;

	source_init(&source);
	for (uint64_t i = 1; i < 100; i++) {
		struct http_request request = request_now();

		cr_expect_eq(answered(ask(&source, &request)), i);
	}
}

Test(scrape, formats_share_a_snapshot)
{
	_cleanup_(source_free) struct source source;
	struct http_request text = request_now(), openmetrics = text, gzip = text;
	struct http_page pages[3];

	source_init(&source);
	openmetrics.accept = "application/openmetrics-text";
	gzip.accept_encoding = "gzip";
	pages[0] = ask(&source, &text);
	pages[1] = ask(&source, &openmetrics);
	pages[2] = ask(&source, &gzip);
	cr_expect_eq(taken(), 1);
	cr_expect_str_eq(pages[0].content_type, "text/plain; version=0.0.4; charset=utf-8");
	cr_expect_str_eq(pages[1].content_type,
			 "application/openmetrics-text; version=1.0.0; charset=utf-8");
	cr_expect_null(pages[1].content_encoding);
	cr_expect_str_eq(pages[2].content_encoding, "gzip");
	for (size_t i = 0; i < 3; i++) {
		cr_expect_str_eq(pages[i].vary, "Accept, Accept-Encoding");
		http_body_unref(pages[i].body);
	}
}

Test(scrape, other_parts_are_another_snapshot)
{
	_cleanup_(source_free) struct source source;
	struct http_request all = request_now(), some = all;

	source_init(&source);
	some.arguments[some.arguments_len++] = (struct http_argument){ "collect[]", "threads" };
	cr_expect_eq(answered(ask(&source, &all)), 1);
	cr_expect_eq(collected(&source), ALL);
	cr_expect_eq(answered(ask(&source, &some)), 2);
	cr_expect_eq(collected(&source), THREADS);
}

Test(scrape, a_short_budget_of_one_does_not_cut_the_answer_of_another)
{
	_cleanup_(source_free) struct source source;
	struct http_request hasty = request_now(), patient = hasty;

	source_init(&source);
	made_up_counted.cost.ns = 100 * SECOND;
	hasty.scrape_timeout = "1";
	cr_expect_eq(answered(ask(&source, &hasty)), 1);
	cr_expect_eq(answered(ask(&source, &hasty)), 1, "who waited with it may share it");
	cr_expect_eq(answered(ask(&source, &patient)), 2);
	cr_expect_eq(answered(ask(&source, &hasty)), 2, "what is whole will do for all");
}

Test(scrape, what_cannot_be_asked_for_is_a_bad_request)
{
	_cleanup_(source_free) struct source source;
	struct http_request request = request_now();
	struct http_page page;

	source_init(&source);
	request.arguments[request.arguments_len++] = (struct http_argument){ "collect[]", "x" };
	page = ask(&source, &request);
	cr_expect_eq(page.status, 400);
	cr_expect_eq(taken(), 0);
	http_body_unref(page.body);
}

Test(scrape, gzip_is_what_it_was_before)
{
	_cleanup_(source_free) struct source source;
	struct http_request plain = request_now(), gzip = plain;
	struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
	struct http_page as_text, packed;
	char unpacked[65536];
	size_t len;

	source_init(&source);
	gzip.accept_encoding = "gzip";
	as_text = ask(&source, &plain);
	packed = ask(&source, &gzip);
	cr_assert_eq(libdeflate_gzip_decompress(decompressor, packed.body->bytes.data,
						packed.body->bytes.len, unpacked, sizeof(unpacked),
						&len),
		     0);
	cr_assert_eq(len, as_text.body->bytes.len);
	cr_expect_arr_eq(unpacked, as_text.body->bytes.data, len);
	libdeflate_free_decompressor(decompressor);
	http_body_unref(as_text.body);
	http_body_unref(packed.body);
}

Test(scrape, where_nothing_may_be_made_only_what_is_made_already_is_had)
{
	_cleanup_(source_free) struct source source;
	struct http_request request = request_now();
	struct http_page one, two, none = { 0 };

	source_init(&source);
	request.made_only = true;
	cr_expect_eq(scrape_page(&source.scrape, &request, &none), -EAGAIN);
	cr_expect_eq(scrape_landing(&source.scrape, &request, &none), -EAGAIN);
	cr_expect_eq(taken(), 0, "not even a snapshot is taken");
	request.made_only = false;
	one = ask(&source, &request);
	request.made_only = true;
	two = ask(&source, &request);
	cr_expect_eq(one.body, two.body);
	request.accept_encoding = "gzip";
	cr_expect_eq(scrape_page(&source.scrape, &request, &none), -EAGAIN);
	request = request_now();
	request.made_only = true;
	cr_expect_eq(scrape_page(&source.scrape, &request, &none), -EAGAIN, "too old");
	cr_expect_eq(answered(one), 1);
	cr_expect_eq(answered(two), 1);
}

Test(scrape, landing_pages_are_shared_as_well)
{
	_cleanup_(source_free) struct source source;
	struct http_request request = request_now();
	struct http_page one = { 0 }, two = { 0 };

	source_init(&source);
	source.scrape.routes = &(const struct http_routes){ .len = 0 };
	cr_assert_eq(scrape_landing(&source.scrape, &request, &one), 0);
	cr_assert_eq(scrape_landing(&source.scrape, &request, &two), 0);
	cr_expect_eq(one.body, two.body);
	cr_expect_eq(taken(), 1);
	scrape_forget(&source.scrape);
	http_body_unref(one.body);
	http_body_unref(two.body);
}
