/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that come later: other clients are served meanwhile, nothing polls, and a client may go. */
#include "site.h"

#define LATER_REQUEST "GET /later" CLOSE
#define LOOK_MS 100
#define RUNS_MAX 4 /* in that time: of one that polls there would be many more */

/* Sends @request, and lets the server run until its page function has been asked. */
static int ask_on(struct site *site, int fd, const char *request)
{
	size_t before = site->later_len;
	int64_t until_ms = now_ms() + PATIENCE_MS;

	send_text(site, fd, request);
	while (site->later_len == before && now_ms() < until_ms)
		serve(site, -1, 0, now_ms() + 1);
	cr_assert_eq(site->later_len, before + 1);
	return fd;
}

static int ask_with(struct site *site, const char *request)
{
	return ask_on(site, connect_to(site), request);
}

static int ask(struct site *site)
{
	return ask_with(site, LATER_REQUEST);
}

static void answer(struct site *site, size_t which, struct http_body *body)
{
	const struct http_page page = { .status = 200,
					.content_type = HTTP_CONTENT_TYPE_PLAIN,
					.body = body };

	http_later_answer(site->later[which], &page);
}

static struct http_body *body_of(const char *text)
{
	struct buffer buffer = BUFFER_INIT(64);
	struct http_body *body;

	buffer_text(&buffer, text);
	body = http_body_new(&buffer);
	cr_assert_not_null(body);
	return body;
}

static void expect_answer(struct site *site, int fd, const char *status, const char *body)
{
	char response[4096];

	cr_expect(read_to_end(site, fd, response, sizeof(response)));
	expect_status(response, status);
	expect_body(response, body);
	close(fd);
}

static void expect_rest(struct site *site)
{
	size_t runs = site->runs;

	serve(site, -1, 0, now_ms() + LOOK_MS);
	cr_expect_leq(site->runs - runs, RUNS_MAX);
}

/* Lets the server run until so many have been told that their client has gone, or more time. */
static void expect_gone(struct site *site, size_t gone)
{
	int64_t until_ms = now_ms() + PATIENCE_MS;

	while (site->gone < gone && now_ms() < until_ms)
		serve(site, -1, 0, now_ms() + 1);
	cr_expect_eq(site->gone, gone);
}

Test(http_later, others_are_served_until_the_answer_is_there)
{
	_cleanup_(site_stop) struct site site = { 0 };
	int fd;

	site_start(&site);
	fd = ask(&site);
	expect_scrape(&site);
	expect_rest(&site);
	answer(&site, 0, body_of("at last"));
	expect_answer(&site, fd, "200", "at last");
	cr_expect_eq(site.gone, 0);
	expect_scrape(&site);
}

Test(http_later, two_that_ask_the_same_may_share_one_answer)
{
	_cleanup_(site_stop) struct site site = { 0 };
	struct http_body *body = body_of("shared");
	int fds[2];

	site_start(&site);
	fds[0] = ask(&site);
	fds[1] = ask(&site);
	answer(&site, 0, http_body_ref(body));
	answer(&site, 1, body);
	expect_answer(&site, fds[1], "200", "shared");
	expect_answer(&site, fds[0], "200", "shared");
}

Test(http_later, a_page_that_could_not_be_made_is_an_error)
{
	_cleanup_(site_stop) struct site site = { 0 };
	int fd;

	site_start(&site);
	fd = ask(&site);
	http_later_answer(site.later[0], NULL);
	expect_answer(&site, fd, "503", "The page could not be made; see the log.\n");
}

Test(http_later, a_client_that_leaves_is_noticed)
{
	_cleanup_(site_stop) struct site site = { 0 };
	const struct linger reset = { .l_onoff = 1 };
	int fds[2];

	site_start(&site);
	fds[0] = ask(&site);
	fds[1] = ask(&site);
	close(fds[0]);
	expect_gone(&site, 1);
	setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fds[1]);
	expect_gone(&site, 2);
	serve(&site, -1, 0, now_ms() + 20);
	cr_expect_eq(http_server_due_ns(site.server), UINT64_MAX, "nothing is left behind");
}

Test(http_later, an_answer_has_a_deadline)
{
	_cleanup_(site_stop) struct site site = { .later_ms = 200 };
	int64_t began_ms;
	int fd;

	site_start(&site);
	began_ms = now_ms();
	fd = ask(&site);
	expect_answer(&site, fd, "503", "The answer did not come in time.\n");
	cr_expect_geq(now_ms() - began_ms, 200);
	cr_expect_eq(site.gone, 1);
}

Test(http_later, an_answer_may_take_longer_than_other_requests)
{
	_cleanup_(site_stop) struct site site = { 0 };
	int fd;

	site_start_with(&site, 500, 500);
	fd = ask(&site);
	serve(&site, -1, 0, now_ms() + 1200);
	cr_expect_eq(site.gone, 0);
	answer(&site, 0, body_of("at last"));
	expect_answer(&site, fd, "200", "at last");
}

Test(http_later, no_more_are_under_way_than_the_route_allows)
{
	_cleanup_(site_stop) struct site site = { 0 };
	int fds[SITE_LATER_MAX], another;

	site_start(&site);
	for (size_t i = 0; i < SITE_LATER_MAX; i++)
		fds[i] = ask(&site);
	another = connect_to(&site);
	send_text(&site, another, LATER_REQUEST);
	expect_answer(&site, another, "503", "Too many requests at the same time.\n");
	cr_expect_eq(site.later_len, SITE_LATER_MAX);
	answer(&site, 0, body_of("one"));
	expect_answer(&site, fds[0], "200", "one");
	site.later_len = 0;
	fds[0] = ask(&site);
	answer(&site, 0, body_of("another"));
	expect_answer(&site, fds[0], "200", "another");
	for (size_t i = 1; i < SITE_LATER_MAX; i++)
		close(fds[i]);
	expect_gone(&site, SITE_LATER_MAX - 1);
}

Test(http_later, routes_may_share_how_many_are_under_way)
{
	static const struct http_route other = {
		.path = "/other",
		.page = site_later,
		.later_ms = PATIENCE_MS,
		.later_max = SITE_LATER_MAX,
	};
	static const char pool[] = "one of both";

	for (int shared = 0; shared < 2; shared++) {
		_cleanup_(site_stop) struct site site = { 0 };
		struct http_route route = other;
		int fds[SITE_LATER_MAX], another;

		site.later_pool = route.later_pool = shared ? pool : NULL;
		route.arg = &site;
		cr_assert_eq(http_routes_add(&site.routes, &route), 0);
		site_start(&site);
		for (size_t i = 0; i < SITE_LATER_MAX; i++)
			fds[i] = ask(&site);
		another = connect_to(&site);
		send_text(&site, another, "GET /other" CLOSE);
		if (shared) {
			expect_answer(&site, another, "503",
				      "Too many requests at the same time.\n");
		} else {
			serve(&site, -1, 0, now_ms() + LOOK_MS);
			cr_expect_eq(site.later_len, SITE_LATER_MAX + 1);
			close(another);
		}
		for (size_t i = 0; i < SITE_LATER_MAX; i++)
			close(fds[i]);
		expect_gone(&site, SITE_LATER_MAX + !shared);
	}
}

Test(http_later, a_client_that_has_most_of_them_gives_way_to_another)
{
	_cleanup_(site_stop) struct site site = { 0 };
	int fds[SITE_LATER_MAX], another;

	site_start(&site);
	for (size_t i = 0; i < SITE_LATER_MAX; i++)
		fds[i] = ask(&site);
	another = ask_on(&site, connect_from(&site, 2), LATER_REQUEST);
	cr_expect_eq(site.gone, 1);
	expect_answer(&site, fds[SITE_LATER_MAX - 1], "503",
		      "Too many requests at the same time.\n");
	answer(&site, SITE_LATER_MAX, body_of("to the other"));
	expect_answer(&site, another, "200", "to the other");
	for (size_t i = 0; i < SITE_LATER_MAX - 1; i++) {
		answer(&site, i, body_of("to the first"));
		expect_answer(&site, fds[i], "200", "to the first");
	}
}

/* Four that ask in one run displace two of four: then each has as many. */
Test(http_later, those_that_ask_together_get_their_share_and_no_more)
{
	_cleanup_(site_stop) struct site site = { 0 };
	int fds[SITE_LATER_MAX], others[SITE_LATER_MAX];
	int64_t until_ms = now_ms() + PATIENCE_MS;

	site_start(&site);
	for (size_t i = 0; i < SITE_LATER_MAX; i++)
		fds[i] = ask(&site);
	site.later_len = 0;
	for (size_t i = 0; i < SITE_LATER_MAX; i++) {
		others[i] = connect_from(&site, 2);
		cr_assert_gt(send(others[i], LATER_REQUEST, sizeof(LATER_REQUEST) - 1, 0), 0);
	}
	while (site.later_len < SITE_LATER_MAX / 2 && now_ms() < until_ms)
		serve(&site, -1, 0, now_ms() + 1);
	serve(&site, -1, 0, now_ms() + 100);
	cr_expect_eq(site.later_len, SITE_LATER_MAX / 2);
	cr_expect_eq(site.gone, SITE_LATER_MAX / 2);
	for (size_t i = 0; i < SITE_LATER_MAX; i++) {
		close(fds[i]);
		close(others[i]);
	}
}

/* The one that is there already takes nothing of its own, and so gives way. */
Test(http_later, an_answer_waits_for_room_to_be_sent)
{
	_cleanup_(site_stop) struct site site = { .max_requests = 1 };
	int slow, fd;

	site_start(&site);
	fd = ask(&site);
	slow = connect_to(&site);
	site.page_bytes = 16 << 20;
	send_text(&site, slow, "GET /metrics" CLOSE);
	cr_assert(serve(&site, slow, POLLIN, now_ms() + PATIENCE_MS));
	answer(&site, 0, body_of("at last"));
	expect_answer(&site, fd, "200", "at last");
	close(slow);
}

/* Of 20 MiB each, of which two would be more than may be sent. */
Test(http_later, an_answer_that_is_being_sent_may_be_sent_to_another)
{
	_cleanup_(site_stop) struct site site = { 0 };
	struct buffer bytes = BUFFER_INIT(32 << 20);
	struct http_body *body;
	int slow, fd;
	char head[64];

	for (int i = 0; i < 20; i++) {
		static const char megabyte[1 << 20];

		buffer_append(&bytes, megabyte, sizeof(megabyte));
	}
	body = http_body_new(&bytes);
	cr_assert_not_null(body);
	site_start(&site);
	slow = ask(&site);
	fd = ask(&site);
	answer(&site, 0, http_body_ref(body));
	cr_assert(serve(&site, slow, POLLIN, now_ms() + PATIENCE_MS));
	answer(&site, 1, body);
	cr_assert(serve(&site, fd, POLLIN, now_ms() + PATIENCE_MS));
	cr_expect_gt(recv(fd, head, sizeof(head), 0), 0);
	expect_status(head, "200");
	close(fd);
	close(slow);
}

Test(http_later, a_crowd_that_asks_for_nothing_does_not_end_it)
{
	_cleanup_(site_stop) struct site site = { 0 };
	int fds[200], fd;

	site_start(&site);
	fd = ask(&site);
	for (size_t i = 0; i < COUNT(fds); i++) {
		fds[i] = connect_to(&site);
		serve(&site, -1, 0, now_ms() + 1);
	}
	cr_expect_eq(site.gone, 0);
	answer(&site, 0, body_of("at last"));
	expect_answer(&site, fd, "200", "at last");
	for (size_t i = 0; i < COUNT(fds); i++)
		close(fds[i]);
}

/* What is readable meanwhile must not wake the loop again and again. */
Test(http_later, a_request_behind_it_waits)
{
	_cleanup_(site_stop) struct site site = { 0 };
	char response[8192];
	const char *second;
	int fd;

	site_start(&site);
	fd = ask_with(&site, "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /metrics" CLOSE);
	send_text(&site, fd, "more");
	expect_rest(&site);
	answer(&site, 0, body_of("first"));
	cr_expect(read_to_end(&site, fd, response, sizeof(response)));
	second = strstr(response, "firstHTTP/1.1 200 ");
	cr_expect_not_null(second, "%s", response);
	close(fd);
}

Test(http_later, head_is_told_how_long_the_answer_is)
{
	_cleanup_(site_stop) struct site site = { 0 };
	char response[4096];
	int fd;

	site_start(&site);
	fd = ask_with(&site, "HEAD /later" CLOSE);
	answer(&site, 0, body_of("12345"));
	cr_expect(read_to_end(&site, fd, response, sizeof(response)));
	expect_status(response, "200");
	expect_header(response, "Content-Length: 5");
	expect_body(response, "");
	close(fd);
}

Test(http_later, a_server_that_stops_tells_those_who_make_the_answers)
{
	struct site site = { 0 };
	int fds[2];

	site_start(&site);
	fds[0] = ask(&site);
	fds[1] = ask(&site);
	answer(&site, 0, body_of("not sent any more"));
	site_stop(&site);
	cr_expect_eq(site.gone, 1);
	close(fds[0]);
	close(fds[1]);
}
