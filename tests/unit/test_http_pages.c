/* SPDX-License-Identifier: Apache-2.0 */
/* What the server and the pages tell each other, and when. */
#include "site.h"

Test(http_pages, a_page_learns_what_was_asked)
{
	_cleanup_(site_stop) struct site site = { 0 };
	char response[4096];

	site_start(&site);
	exchange(&site,
		 "GET /?collect[]=a%20b&collect%5B%5D=c&flag HTTP/1.1\r\nHost: x\r\n"
		 "accept: text/plain;q=0.5\r\nACCEPT-ENCODING: gzip\r\n"
		 "x-prometheus-scrape-timeout-seconds: 9.5\r\nConnection: close\r\n\r\n",
		 response, sizeof(response));
	expect_body(response, "accept text/plain;q=0.5; encoding gzip; timeout 9.5"
			      "; collect[] is a b; collect[] is c; flag is ");
}

Test(http_pages, a_page_says_how_it_is_to_be_read)
{
	_cleanup_(site_stop) struct site site = { 0 };
	char response[4096];

	site_start(&site);
	exchange(&site, "GET /" CLOSE, response, sizeof(response));
	expect_header(response, "Content-Type: text/plain; charset=utf-8");
	expect_header(response, "Content-Encoding: identity");
	expect_header(response, "Vary: Accept");
}

Test(http_pages, too_many_arguments_are_a_bad_request)
{
	_cleanup_(site_stop) struct site site = { 0 };
	char response[4096];

	site_start(&site);
	for (int arguments = HTTP_ARGUMENTS_MAX; arguments < 5000; arguments += arguments / 2) {
		_cleanup_(buffer_free) struct buffer request = BUFFER_INIT(65536);

		buffer_text(&request, "GET /?");
		for (int i = 1; i < arguments; i++)
			buffer_text(&request, "a&");
		buffer_text(&request, "a=b");
		buffer_append(&request, CLOSE, sizeof(CLOSE));
		exchange(&site, request.data, response, sizeof(response));
		expect_status(response, arguments <= HTTP_ARGUMENTS_MAX ? "200" : "400");
	}
}

/* Requests that came before the first of them was answered share what that one was answered. */
Test(http_pages, requests_that_wait_together_are_asked_for_in_one_run)
{
	_cleanup_(site_stop) struct site site = { 0 };
	uint64_t due_ns;
	int fds[8];

	site_start(&site);
	for (size_t i = 0; i < 8; i++) {
		fds[i] = connect_to(&site);
		cr_assert_gt(
			send(fds[i], "GET /metrics" CLOSE, sizeof("GET /metrics" CLOSE) - 1, 0), 0);
	}
	while (site_round(&site) < 8)
		cr_assert_eq(site.asked, 0);
	due_ns = http_server_due_ns(site.server);
	cr_expect_leq(due_ns, clock_monotonic_ns());
	cr_expect_eq(site_round(&site), 0);
	cr_expect_eq(site.asked, 8);
	for (size_t i = 0; i < 8; i++) {
		char response[4096];

		cr_expect(read_to_end(&site, fds[i], response, sizeof(response)));
		expect_status(response, "200");
		close(fds[i]);
	}
}

Test(http_pages, a_client_that_leaves_while_it_waits_is_forgotten)
{
	_cleanup_(site_stop) struct site site = { 0 };
	int fd;

	site_start(&site);
	fd = connect_to(&site);
	cr_assert_gt(send(fd, "GET /metrics" CLOSE, sizeof("GET /metrics" CLOSE) - 1, 0), 0);
	while (site_round(&site) < 1)
		;
	close(fd);
	while (site_round(&site))
		;
	expect_scrape(&site);
}

#define BIG_BYTES ((size_t)16 << 20) /* more than sockets hold; two are as much as may be sent */

/* Asks for a big page, and takes only the beginning of it. */
static int connect_without_reading(struct site *site)
{
	int fd = connect_to(site);

	site->page_bytes = BIG_BYTES;
	send_text(site, fd, "GET /metrics" CLOSE);
	serve(site, fd, POLLIN, now_ms() + PATIENCE_MS);
	return fd;
}

/* How many of them have been ended by a reset, once the server has had time for it. */
static int count_ended(struct site *site, const int *fds, size_t len)
{
	int ended = 0;

	serve(site, -1, 0, now_ms() + 20);
	for (size_t i = 0; i < len; i++) {
		struct pollfd fd = { .fd = fds[i], .events = POLLIN };

		poll(&fd, 1, 0);
		ended += (fd.revents & (POLLERR | POLLHUP)) != 0;
	}
	return ended;
}

Test(http_pages, beyond_max_requests_who_takes_nothing_gives_way)
{
	_cleanup_(site_stop) struct site site = { .max_requests = 2 };
	char response[4096];
	int slow[2];

	site_start(&site);
	for (int i = 0; i < 2; i++)
		slow[i] = connect_without_reading(&site);
	site.page_bytes = 1000;
	exchange(&site, "GET /-/healthy" CLOSE, response, sizeof(response));
	expect_status(response, "200");
	cr_expect_eq(count_ended(&site, slow, 2), 0, "it needs no room");
	expect_scrape(&site);
	cr_expect_eq(count_ended(&site, slow, 2), 1);
	for (int i = 0; i < 2; i++)
		close(slow[i]);
}

Test(http_pages, a_page_for_which_there_is_no_room_is_not_made_until_there_is)
{
	_cleanup_(site_stop) struct site site = { 0 };
	int slow[8];

	site_start(&site);
	for (int i = 0; i < 8; i++) {
		slow[i] = connect_without_reading(&site);
		cr_expect_leq(i + 1 - count_ended(&site, slow, (size_t)i + 1), 2);
	}
	site.page_bytes = 1000;
	expect_scrape(&site);
	for (int i = 0; i < 8; i++)
		close(slow[i]);
	serve(&site, -1, 0, now_ms() + 20);
	expect_scrape(&site);
}

Test(http_pages, a_client_that_leaves_while_there_is_no_room_is_forgotten)
{
	_cleanup_(site_stop) struct site site = { .page_error = -EAGAIN };
	int fd;

	site_start(&site);
	fd = connect_to(&site);
	send_text(&site, fd, "GET /metrics" CLOSE);
	serve(&site, -1, 0, now_ms() + 50);
	close(fd);
	site.page_error = 0;
	serve(&site, -1, 0, now_ms() + 50);
	expect_scrape(&site);
	cr_expect_eq(http_server_due_ns(site.server), UINT64_MAX, "nothing is left behind");
}
