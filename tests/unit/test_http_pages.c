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
	_cleanup_(buffer_free) struct buffer request = BUFFER_INIT(4096);
	char response[4096];

	site_start(&site);
	buffer_text(&request, "GET /?");
	for (int i = 0; i <= HTTP_ARGUMENTS_MAX; i++)
		buffer_text(&request, "a=b&");
	buffer_append(&request, CLOSE, sizeof(CLOSE));
	exchange(&site, request.data, response, sizeof(response));
	expect_status(response, "400");
}

/* Requests that came before the first of them was answered share what that one was answered. */
Test(http_pages, requests_that_wait_together_are_asked_for_in_one_run)
{
	_cleanup_(site_stop) struct site site = { 0 };
	int fds[8];

	site_start(&site);
	for (size_t i = 0; i < 8; i++) {
		fds[i] = connect_to(&site);
		cr_assert_gt(
			send(fds[i], "GET /metrics" CLOSE, sizeof("GET /metrics" CLOSE) - 1, 0), 0);
	}
	while (http_server_run(site.server) < 8)
		cr_assert_eq(site.asked, 0);
	cr_expect_eq(http_server_timeout_ms(site.server), 0);
	cr_expect_eq(http_server_run(site.server), 0);
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
	while (http_server_run(site.server) < 1)
		;
	close(fd);
	while (http_server_run(site.server))
		;
	expect_scrape(&site);
}
