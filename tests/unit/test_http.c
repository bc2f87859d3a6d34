/* SPDX-License-Identifier: Apache-2.0 */
/* Routes, methods and clients that behave badly. */
#include "site.h"

Test(http, serves_metrics)
{
	_cleanup_(site_stop) struct site site = { 0 };
	char response[4096];

	site_start(&site);
	exchange(&site, "GET /metrics?a=b" CLOSE, response, sizeof(response));
	expect_status(response, "200");
	expect_header(response, "Content-Type: text/plain; charset=utf-8");
	expect_header(response, "X-Content-Type-Options: nosniff");
	expect_header(response, "Content-Length: 1000");
	cr_expect_eq(strspn(strstr(response, "\r\n\r\n") + 4, "m"), 1000);
}

Test(http, serves_the_landing_page_and_health)
{
	_cleanup_(site_stop) struct site site = { 0 };
	char response[4096];

	site_start(&site);
	exchange(&site, "GET /" CLOSE, response, sizeof(response));
	expect_status(response, "200");
	expect_header(response, "X-Content-Type-Options: nosniff");
	expect_body(response, "accept ; encoding ; timeout ");
	exchange(&site, "GET /-/healthy" CLOSE, response, sizeof(response));
	expect_status(response, "200");
	expect_body(response, "Healthy\n");
}

Test(http, head_is_get_without_the_body)
{
	_cleanup_(site_stop) struct site site = { 0 };
	char response[4096];

	site_start(&site);
	exchange(&site, "HEAD /metrics" CLOSE, response, sizeof(response));
	expect_status(response, "200");
	expect_header(response, "Content-Length: 1000");
	expect_body(response, "");
	exchange(&site, "HEAD /" CLOSE, response, sizeof(response));
	expect_header(response, "Content-Length: 28");
	expect_body(response, "");
}

Test(http, other_methods_are_not_allowed)
{
	static const char *const methods[] = { "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "X" };
	_cleanup_(site_stop) struct site site = { 0 };
	char request[128], response[4096];

	site_start(&site);
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		snprintf(request, sizeof(request), "%s /metrics" CLOSE, methods[i]);
		exchange(&site, request, response, sizeof(response));
		expect_status(response, "405");
		expect_header(response, "Allow: GET, HEAD");
	}
}

Test(http, other_paths_are_not_found)
{
	static const char *const paths[] = { "/metrics/", "/metric", "//", "/-/ready", "/../" };
	_cleanup_(site_stop) struct site site = { 0 };
	char request[128], response[4096];

	site_start(&site);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		snprintf(request, sizeof(request), "GET %s" CLOSE, paths[i]);
		exchange(&site, request, response, sizeof(response));
		expect_status(response, "404");
	}
}

Test(http, a_page_that_fails_is_unavailable)
{
	_cleanup_(site_stop) struct site site = { .page_error = -EIO };
	char response[4096];

	site_start(&site);
	exchange(&site, "GET /metrics" CLOSE, response, sizeof(response));
	expect_status(response, "503");
	expect_body(response, "The page could not be made; see the log.\n");
	site.page_error = 0;
	expect_scrape(&site);
}

Test(http, bodies_are_refused)
{
	static const char *const requests[] = {
		"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nxxx",
		"GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
		"chunked\r\n\r\n3\r\nxxx\r\n",
	};
	_cleanup_(site_stop) struct site site = { 0 };
	char response[4096];

	site_start(&site);
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		exchange(&site, requests[i], response, sizeof(response));
		expect_status(response, "413");
	}
	exchange(&site, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nxxx",
		 response, sizeof(response));
	expect_status(response, "405");
}

Test(http, one_connection_serves_many_requests)
{
	_cleanup_(site_stop) struct site site = { 0 };
	_cleanup_(cleanup_close) int fd = -1;
	char response[65536];
	int answers = 0;

	site_start(&site);
	fd = connect_to(&site);
	for (int i = 0; i < 9; i++)
		send_text(&site, fd, "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n");
	send_text(&site, fd, "GET /-/healthy" CLOSE);
	cr_assert(read_to_end(&site, fd, response, sizeof(response)));
	for (const char *at = response; (at = strstr(at, "Healthy\n")); at++)
		answers++;
	cr_expect_eq(answers, 10);
}

Test(http, garbage_is_a_bad_request)
{
	static const char *const garbage[] = { "\x16\x03\x01\x02\x01\x01\xfc\x03\r\n\r\n",
					       "nonsense\r\n\r\n", "GET\r\n\r\n", "\r\n \r\n\r\n",
					       "GET /metrics HTTP/9.9\r\n\r\n" };
	_cleanup_(site_stop) struct site site = { 0 };
	_cleanup_(cleanup_close) int fd = -1;

	site_start_with(&site, 1000, 1000);
	for (size_t i = 0; i < sizeof(garbage) / sizeof(*garbage); i++) {
		char response[4096];

		exchange(&site, garbage[i], response, sizeof(response));
		cr_expect(!*response || strncmp(response, "HTTP/1.1 4", 10) == 0 ||
				  strncmp(response, "HTTP/1.1 5", 10) == 0 ||
				  strncmp(response, "HTTP/1.0 4", 10) == 0,
			  "%zu: %.100s", i, response);
		expect_scrape(&site);
	}
}

Test(http, huge_headers_are_refused)
{
	_cleanup_(site_stop) struct site site = { 0 };
	_cleanup_(cleanup_close) int fd = -1;
	_cleanup_(cleanup_free) char *header = malloc(1 << 20);
	char response[4096];

	cr_assert_not_null(header);
	memset(header, 'h', 1 << 20);
	site_start(&site);
	fd = connect_to(&site);
	send_text(&site, fd, "GET /metrics HTTP/1.1\r\nHost: x\r\nX: ");
	send_bytes(&site, fd, header, 1 << 20);
	cr_expect(read_to_end(&site, fd, response, sizeof(response)));
	/* The refusal may be lost to the reset that unread bytes cause. */
	if (*response)
		expect_status(response, "431");
	expect_scrape(&site);
}

Test(http, clients_that_say_nothing_give_way)
{
	_cleanup_(site_stop) struct site site = { 0 };
	int fds[200];

	site_start(&site);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		fds[i] = connect_to(&site);
		serve(&site, fds[i], 0, now_ms() + 1);
	}
	expect_scrape(&site);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		close(fds[i]);
	expect_scrape(&site);
}

Test(http, a_scraper_keeps_its_place_among_them)
{
	_cleanup_(site_stop) struct site site = { 0 };
	_cleanup_(cleanup_close) int scraper = -1;
	int fds[150];
	char response[65536];
	int answers = 0;

	site_start(&site);
	scraper = connect_to(&site);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		fds[i] = connect_to(&site);
		serve(&site, -1, 0, now_ms() + 1);
		if (i % 30 == 0) {
			send_text(&site, scraper, "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n");
			serve(&site, scraper, POLLIN, now_ms() + PATIENCE_MS);
		}
	}
	send_text(&site, scraper, "GET /-/healthy" CLOSE);
	cr_assert(read_to_end(&site, scraper, response, sizeof(response)));
	for (const char *at = response; (at = strstr(at, "Healthy\n")); at++)
		answers++;
	cr_expect_eq(answers, 6);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		close(fds[i]);
}

Test(http, an_idle_client_is_closed)
{
	_cleanup_(site_stop) struct site site = { 0 };
	_cleanup_(cleanup_close) int fd = -1;
	char response[64];

	site_start_with(&site, 0, 1000);
	cr_expect_eq(http_server_due_ns(site.server), UINT64_MAX, "at rest there is nothing to do");
	fd = connect_to(&site);
	cr_expect(read_to_end(&site, fd, response, sizeof(response)));
	cr_expect_str_empty(response);
	serve(&site, -1, 0, now_ms() + 50);
	cr_expect_eq(http_server_due_ns(site.server), UINT64_MAX);
}

Test(http, a_request_that_never_ends_is_closed)
{
	_cleanup_(site_stop) struct site site = { 0 };
	_cleanup_(cleanup_close) int fd = -1;
	int64_t begin_ms;
	bool closed = false;

	site_start_with(&site, 1000, 700);
	fd = connect_to(&site);
	send_text(&site, fd, "GET /metrics HTTP/1.1\r\n");
	begin_ms = now_ms();
	while (!closed && now_ms() < begin_ms + PATIENCE_MS) {
		send(fd, "X", 1, MSG_NOSIGNAL);
		closed = serve(&site, fd, POLLIN, now_ms() + 50) != 0;
	}
	cr_expect(closed);
	cr_expect_geq(now_ms() - begin_ms, 600);
	cr_expect_lt(now_ms() - begin_ms, 3000);
}

Test(http, a_client_that_leaves_in_the_middle_does_no_harm)
{
	const struct linger reset = { .l_onoff = 1 };
	_cleanup_(site_stop) struct site site = { 0 };

	signal(SIGPIPE, SIG_DFL);
	site_start(&site);
	site.page_bytes = 10 << 20;
	for (int i = 0; i < 5; i++) {
		int fd = connect_to(&site);
		char some[100];

		send_text(&site, fd, "GET /metrics" CLOSE);
		serve(&site, fd, POLLIN, now_ms() + PATIENCE_MS);
		cr_expect_gt(recv(fd, some, sizeof(some), 0), 0);
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(fd);
		serve(&site, -1, 0, now_ms() + 20);
	}
	site.page_bytes = 1000;
	expect_scrape(&site);
	cr_expect_eq(http_server_due_ns(site.server), UINT64_MAX, "nothing is left behind");
}

Test(http, a_slow_reader_does_not_block_others)
{
	_cleanup_(site_stop) struct site site = { 0 };
	_cleanup_(cleanup_close) int fd = -1;

	site_start(&site);
	site.page_bytes = 10 << 20;
	fd = connect_to(&site);
	send_text(&site, fd, "GET /metrics" CLOSE);
	serve(&site, fd, POLLIN, now_ms() + PATIENCE_MS);
	site.page_bytes = 1000;
	expect_scrape(&site);
}
