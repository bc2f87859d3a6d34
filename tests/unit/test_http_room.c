/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for room for their page: for another answer's end, and not for ever. */
#include "site.h"

#include <stdio.h>

#define LOOK_MS 100
#define RUNS_MAX 12 /* of one that polls there would be more in LOOK_MS already */
#define PROMPT_MS 800 /* for what takes a moment, and without a wake until a deadline: 1000 */
#define SOCKET_BYTES (64 << 10)
#define BIG_BYTES ((size_t)1 << 20) /* more than two of these hold, which the kernel doubles */
#define SOME_BYTES (256U << 10) /* of these, taken at once */

/* Whether the server has read all that was sent from @fd (proc_pid_net(5): a line of tcp). */
static bool server_has_read(const struct site *site, int fd)
{
	_cleanup_(cleanup_fclose) FILE *table = fopen("/proc/net/tcp", "re");
	struct sockaddr_in own;
	socklen_t len = sizeof(own);
	unsigned int port, client, unread;
	char line[256];

	cr_assert_not_null(table);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	while (fgets(line, sizeof(line), table))
		if (sscanf(line, "%*d: %*x:%x %*x:%x %*x %*x:%x", &port, &client, &unread) == 3 &&
		    port == site->port && client == ntohs(own.sin_port))
			return !unread;
	return false;
}

/* The server has looked for room when this returns: in the run in which it reads, or the next. */
static int ask_from(struct site *site, uint8_t host)
{
	int64_t until_ms = now_ms() + PATIENCE_MS;
	int fd = connect_from(site, host);

	send_text(site, fd, "GET /metrics" CLOSE);
	do {
		cr_assert_lt(now_ms(), until_ms);
		serve(site, -1, 0, now_ms() + 10);
	} while (!server_has_read(site, fd) || site_round(site));
	return fd;
}

static int ask(struct site *site)
{
	return ask_from(site, 1);
}

/* Asks for a big page, and takes only the beginning of it. */
static int ask_without_reading(struct site *site)
{
	size_t page_bytes = site->page_bytes;
	int fd = connect_to(site);

	site->page_bytes = BIG_BYTES;
	send_text(site, fd, "GET /metrics" CLOSE);
	cr_assert(serve(site, fd, POLLIN, now_ms() + PATIENCE_MS));
	site->page_bytes = page_bytes;
	return fd;
}

static void reset(int fd)
{
	const struct linger linger = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

static void expect_page(struct site *site, int fd)
{
	char response[4096];

	cr_expect(read_to_end(site, fd, response, sizeof(response)));
	expect_status(response, "200");
	close(fd);
}

static void expect_rest(struct site *site)
{
	site->runs = 0;
	serve(site, -1, 0, now_ms() + LOOK_MS);
	cr_expect_eq(site->runs, 0);
}

Test(http_room, nothing_polls_until_the_deadline)
{
	_cleanup_(site_stop) struct site site = { .page_error = -EAGAIN };
	char response[4096];
	int64_t began_ms;
	int fd;

	site_start(&site);
	began_ms = now_ms();
	fd = ask(&site);
	expect_rest(&site);
	cr_expect(read_to_end(&site, fd, response, sizeof(response)));
	close(fd);
	expect_status(response, "503");
	expect_body(response, "Too many requests at the same time.\n");
	cr_expect_geq(now_ms() - began_ms, 990);
	cr_expect_lt(now_ms() - began_ms, 1000 + PROMPT_MS);
	cr_expect_leq(site.runs, RUNS_MAX, "%zu", site.runs);
	cr_expect_eq(site.asked, 2, "when it came, and for the last time");
}

Test(http_room, those_that_wait_look_again_when_another_answer_has_begun_and_ended)
{
	_cleanup_(site_stop) struct site site = { .page_error = -EAGAIN };
	char response[4096];
	int64_t began_ms;
	int fds[3];

	site_start(&site);
	for (size_t i = 0; i < COUNT(fds); i++)
		fds[i] = ask_from(&site, (uint8_t)(i + 1));
	expect_rest(&site);
	began_ms = now_ms();
	site.page_error = 0;
	exchange(&site, "GET /" CLOSE, response, sizeof(response));
	for (size_t i = 0; i < COUNT(fds); i++)
		expect_page(&site, fds[i]);
	cr_expect_lt(now_ms() - began_ms, PROMPT_MS);
	cr_expect_leq(site.runs, 2 * RUNS_MAX, "%zu", site.runs);
	serve(&site, -1, 0, now_ms() + 10);
	cr_expect_eq(http_server_due_ns(site.server), UINT64_MAX, "nothing is left behind");
}

/* On a connection that goes on. */
Test(http_room, there_is_room_as_soon_as_an_answer_has_been_taken)
{
	_cleanup_(site_stop) struct site site = { .max_requests = 1, .socket_bytes = SOCKET_BYTES };
	_cleanup_(cleanup_free) char *some = malloc(SOME_BYTES);
	size_t taken = 0;
	int taker, fd;

	cr_assert_not_null(some);
	site_start(&site);
	site.page_bytes = BIG_BYTES;
	taker = connect_to(&site);
	send_text(&site, taker, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	cr_assert(serve(&site, taker, POLLIN, now_ms() + PATIENCE_MS));
	site.page_bytes = 1000;
	fd = ask(&site);
	while (taken < BIG_BYTES && serve(&site, taker, POLLIN, now_ms() + PATIENCE_MS)) {
		ssize_t received = recv(taker, some, SOME_BYTES, 0);

		cr_assert_gt(received, 0);
		taken += (size_t)received;
	}
	cr_expect(serve(&site, fd, POLLIN, now_ms() + PROMPT_MS));
	expect_page(&site, fd);
	close(taker);
}

/* The one that comes last has no answer under way, and so gets its page first. */
Test(http_room, one_that_lets_another_go_first_goes_after_it)
{
	_cleanup_(site_stop) struct site site = { .socket_bytes = SOCKET_BYTES };
	int slow, fd, poorer;

	site_start(&site);
	slow = ask_without_reading(&site);
	site.page_error = -EAGAIN;
	fd = ask(&site);
	site.page_error = 0;
	site.page_bytes = BIG_BYTES / 4;
	poorer = ask_from(&site, 2);
	cr_expect(serve(&site, poorer, POLLIN, now_ms() + PATIENCE_MS));
	cr_expect(serve(&site, fd, POLLIN, now_ms() + PROMPT_MS));
	cr_expect_geq(site.asked, 5, "the first page; in vain; let the other go; both: %zu",
		      site.asked);
	close(slow);
	close(fd);
	close(poorer);
}

/* None of its own client is ended before it is late, of which no descriptor tells. */
Test(http_room, a_client_gets_room_when_an_answer_of_its_own_is_late)
{
	_cleanup_(site_stop) struct site site = { .max_requests = 1, .socket_bytes = SOCKET_BYTES };
	int64_t began_ms;
	int slow, fd;

	site_start(&site);
	slow = ask_without_reading(&site);
	began_ms = now_ms();
	fd = connect_to(&site);
	site.runs = 0;
	send_text(&site, fd, "GET /metrics" CLOSE);
	expect_page(&site, fd);
	cr_expect_geq(now_ms() - began_ms, 150);
	cr_expect_lt(now_ms() - began_ms, 250 + PROMPT_MS);
	cr_expect_leq(site.runs, 2 * RUNS_MAX, "%zu", site.runs);
	close(slow);
}

Test(http_room, one_that_has_waited_goes_before_one_that_comes)
{
	_cleanup_(site_stop) struct site site = { .max_requests = 1, .socket_bytes = SOCKET_BYTES };
	int slow, fds[2];

	site_start(&site);
	slow = ask_without_reading(&site);
	site.page_bytes = BIG_BYTES;
	fds[0] = ask(&site);
	fds[1] = connect_to(&site);
	cr_assert_gt(send(fds[1], "GET /metrics" CLOSE, sizeof("GET /metrics" CLOSE) - 1, 0), 0);
	reset(slow);
	cr_expect(serve(&site, fds[0], POLLIN, now_ms() + PROMPT_MS));
	cr_expect_not(serve(&site, fds[1], POLLIN, now_ms() + 10));
	close(fds[0]);
	close(fds[1]);
}

/* For one that has asked for nothing no other is ended: that it closes is told as well. */
Test(http_room, those_that_wait_look_again_when_a_connection_has_been_closed)
{
	_cleanup_(site_stop) struct site site = { .page_error = -EAGAIN };
	int idle, fd;

	site_start_with(&site, 0, 400);
	idle = connect_to(&site);
	serve(&site, -1, 0, now_ms() + 200);
	fd = ask(&site);
	site.page_error = 0;
	expect_page(&site, fd);
	close(idle);
}

Test(http_room, those_that_look_in_the_next_run_may_share_what_was_made_in_this_one)
{
	_cleanup_(site_stop) struct site site = { .page_error = -EAGAIN };
	int64_t until_ms = now_ms() + PATIENCE_MS;
	int fds[2];

	site_start(&site);
	fds[0] = ask(&site);
	fds[1] = connect_to(&site);
	cr_assert_gt(send(fds[1], "GET /metrics" CLOSE, sizeof("GET /metrics" CLOSE) - 1, 0), 0);
	while (site_round(&site) < 2 && now_ms() < until_ms)
		;
	cr_expect_eq(site.waiting, 2);
	cr_expect_eq(site_round(&site), 0);
	close(fds[0]);
	close(fds[1]);
}

Test(http_room, a_client_that_sends_no_more_is_answered)
{
	_cleanup_(site_stop) struct site site = { .page_error = -EAGAIN };
	int fd;

	site_start(&site);
	fd = ask(&site);
	shutdown(fd, SHUT_WR);
	expect_rest(&site);
	site.page_error = 0;
	expect_page(&site, fd);
}

Test(http_room, a_client_that_breaks_off_is_forgotten_at_once)
{
	_cleanup_(site_stop) struct site site = { .page_error = -EAGAIN };

	site_start(&site);
	reset(ask(&site));
	serve(&site, -1, 0, now_ms() + PROMPT_MS / 2);
	cr_expect_eq(http_server_due_ns(site.server), UINT64_MAX, "nothing is left behind");
}

/* Which ends before the time that a request may wait for room. */
Test(http_room, the_deadline_of_its_connection_ends_it)
{
	_cleanup_(site_stop) struct site site = { .page_error = -EAGAIN };
	char response[64];
	int64_t began_ms;
	int fd;

	site_start_with(&site, 0, 200);
	began_ms = now_ms();
	fd = ask(&site);
	cr_expect(read_to_end(&site, fd, response, sizeof(response)));
	cr_expect_str_empty(response);
	cr_expect_lt(now_ms() - began_ms, 200 + PROMPT_MS);
	close(fd);
	serve(&site, -1, 0, now_ms() + 10);
	cr_expect_eq(http_server_due_ns(site.server), UINT64_MAX, "nothing is left behind");
}

Test(http_room, a_server_may_stop_while_some_wait)
{
	struct site site = { .page_error = -EAGAIN };
	int fds[2];

	site_start(&site);
	fds[0] = ask(&site);
	fds[1] = ask(&site);
	site_stop(&site);
	close(fds[0]);
	close(fds[1]);
}
