/* SPDX-License-Identifier: Apache-2.0 */
/* The real server over loopback, driven by the test's own loop as main.c drives it. */
#ifndef WORKLOAD_TESTS_SITE_H
#define WORKLOAD_TESTS_SITE_H

#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/units.h"
#include "http/listen.h"
#include "http/server.h"

#define PATIENCE_MS 8000
#define SITE_LATER_MAX 4

struct site {
	struct loop *loop;
	struct loop_job job; /* the server's runs */
	struct http_server *server;
	int waiting; /* requests that the last run has left for the next */
	size_t runs;
	struct guard *guard;
	struct helper *checker;
	const char *web_config; /* a file; NULL: every client may ask */
	size_t max_requests;
	int socket_bytes; /* as SO_SNDBUF and SO_RCVBUF; 0: what the machine gives */
	uint16_t port;
	size_t page_bytes; /* of /metrics */
	int page_error;
	size_t asked; /* how often, for /metrics */
	unsigned later_ms; /* how long the answers of /later may take */
	const void *later_pool; /* of its route */
	struct http_later *later[SITE_LATER_MAX + 1]; /* which it was asked for, in this order */
	size_t later_len, gone;
	const char *host; /* where it listens; NULL: 127.0.0.1 */
	struct http_routes routes;
};

static inline int site_metrics(void *arg, const struct http_request *request,
			       struct http_page *page)
{
	struct site *site = arg;
	char *text;
	int r = site->page_error;

	site->asked++;
	if (request->made_only)
		return -EAGAIN; /* nothing is kept here */
	text = malloc(site->page_bytes + 1);
	cr_assert_not_null(text);
	cr_expect_leq(request->arrived_ns, clock_monotonic_ns());
	memset(text, 'm', site->page_bytes);
	text[site->page_bytes] = '\0';
	if (!r)
		r = http_page_text(page, 200, text);
	free(text);
	return r;
}

/* What the server's listener has, connections have as well (tcp(7)). */
static inline void site_limit(const struct site *site, int fd, int option)
{
	const int bytes = site->socket_bytes;

	if (bytes)
		cr_assert_eq(setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes)), 0);
}

/* Says what it was asked. */
static inline int site_landing(void *arg, const struct http_request *request,
			       struct http_page *page)
{
	char text[4096];
	size_t len;

	(void)arg;
	len = (size_t)snprintf(text, sizeof(text), "accept %s; encoding %s; timeout %s",
			       request->accept, request->accept_encoding, request->scrape_timeout);
	for (size_t i = 0; i < request->arguments_len; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "; %s is %s",
					request->arguments[i].name, request->arguments[i].value);
	http_page_text(page, 200, text);
	page->content_encoding = "identity";
	page->vary = "Accept";
	return 0;
}

static inline uint64_t site_due_ns(const void *arg)
{
	return http_server_due_ns(((const struct site *)arg)->server);
}

static inline int site_run(void *arg)
{
	struct site *site = arg;

	site->waiting = http_server_run(site->server);
	site->runs++;
	return 0;
}

static inline int site_health(void *arg, const struct http_request *request, struct http_page *page)
{
	(void)arg;
	(void)request;
	return http_page_text(page, 200, "Healthy\n");
}

static inline void site_gone(void *arg)
{
	struct site *site = arg;

	site->gone++;
}

/* Keeps the request: the test answers it. */
static inline int site_later(void *arg, const struct http_request *request, struct http_page *page)
{
	struct site *site = arg;

	(void)page;
	cr_assert_lt(site->later_len, COUNT(site->later));
	request->later->gone = site_gone;
	request->later->arg = site;
	site->later[site->later_len++] = request->later;
	return HTTP_LATER;
}

static inline void site_route(struct site *site)
{
	const struct http_route rows[] = {
		{ .path = "/metrics", .page = site_metrics, .arg = site },
		{ .path = "/", .page = site_landing, .arg = site },
		{ .path = HTTP_HEALTH_PATH, .page = site_health, .prompt = true },
		{ .path = "/later",
		  .page = site_later,
		  .arg = site,
		  .later_ms = site->later_ms ? site->later_ms : PATIENCE_MS,
		  .later_max = SITE_LATER_MAX,
		  .later_pool = site->later_pool },
		{ .path = "/private", .page = site_health, .prompt = true, .access = HTTP_PRIVATE },
		{ .path = "/open", .page = site_health, .prompt = true, .access = HTTP_OPEN },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		cr_assert_eq(http_routes_add(&site->routes, &rows[i]), 0);
}

static inline void site_start_with(struct site *site, unsigned idle_ms, unsigned deadline_ms)
{
	char error[512] = "";
	struct http_server_options options = {
		.listeners = { http_listen(site->host ? site->host : "127.0.0.1", "0", error,
					   sizeof(error)) },
		.listeners_len = 1,
		.max_requests = site->max_requests,
		.idle_ms = idle_ms,
		.deadline_ms = deadline_ms,
	};
	struct guard_options guard_options = { .path = site->web_config };

	site_route(site);
	options.routes = site->routes;
	cr_assert_geq(options.listeners[0], 0, "%s", error);
	site_limit(site, options.listeners[0], SO_SNDBUF);
	site->page_bytes = 1000;
	site->port = http_listen_port(options.listeners[0]);
	cr_assert_neq(site->port, 0);
	if (site->web_config)
		cr_assert_eq(checker_start(&(const struct user){ 0 }, &site->checker), 0);
	guard_options.checker = options.checker = site->checker;
	cr_assert_eq(guard_new(&guard_options, &site->guard, error, sizeof(error)), 0, "%s", error);
	options.guard = site->guard;
	cr_assert_eq(loop_new(&site->loop), 0);
	options.loop = site->loop;
	cr_assert_eq(http_server_start(&options, &site->server), 0);
	site->job = (struct loop_job){ .due_ns = site_due_ns, .run = site_run, .arg = site };
	loop_add(site->loop, &site->job);
}

static inline void site_start(struct site *site)
{
	site_start_with(site, 0, 0);
}

static inline void site_stop(struct site *site)
{
	http_server_stop(site->server);
	loop_free(site->loop);
	guard_free(site->guard);
	helper_stop(site->checker);
}

static inline int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* From 127.0.0.@host. */
static inline int connect_from(const struct site *site, uint8_t host)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(site->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct sockaddr_in from = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffU) | host),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	site_limit(site, fd, SO_RCVBUF);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static inline int connect_to(const struct site *site)
{
	return connect_from(site, 1);
}

/* One round of the loop; how many requests wait after it. */
static inline int site_round(struct site *site)
{
	cr_assert_eq(loop_round(site->loop, 0), 0);
	return site->waiting;
}

/* Lets the server run until @fd (or nothing, if -1) has one of @events or @until_ms has come. */
static inline short serve(struct site *site, int fd, short events, int64_t until_ms)
{
	struct pollfd client = { .fd = fd, .events = events };
	int64_t now;

	while ((now = now_ms()) < until_ms) {
		/* What the server has done may reach the client a moment later. */
		int64_t look_ms = now + 10 < until_ms ? now + 10 : until_ms;

		cr_assert_eq(loop_round(site->loop, (uint64_t)look_ms * 1000000), 0);
		cr_assert_geq(poll(&client, 1, 0), 0);
		if (client.revents)
			return client.revents;
	}
	return 0;
}

/* Sends @len bytes, as far as the server takes them. */
static inline void send_bytes(struct site *site, int fd, const char *bytes, size_t len)
{
	ssize_t sent;

	while (len && serve(site, fd, POLLOUT, now_ms() + PATIENCE_MS)) {
		sent = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno != EAGAIN)
			return;
		bytes += sent > 0 ? sent : 0;
		len -= sent > 0 ? (size_t)sent : 0;
	}
}

static inline void send_text(struct site *site, int fd, const char *text)
{
	send_bytes(site, fd, text, strlen(text));
}

/* Reads until the server closes (true) or goes on waiting (false); @out is NUL-terminated. */
static inline bool read_to_end(struct site *site, int fd, char *out, size_t size)
{
	size_t len = 0;
	ssize_t received = 1;

	while (serve(site, fd, POLLIN, now_ms() + PATIENCE_MS)) {
		received = recv(fd, out + len, size - 1 - len, MSG_DONTWAIT);
		if (received <= 0)
			break;
		len += (size_t)received;
	}
	out[len] = '\0';
	return received == 0 || (received < 0 && errno == ECONNRESET);
}

/* One request on a connection of its own. */
static inline void exchange(struct site *site, const char *request, char *response, size_t size)
{
	_cleanup_(cleanup_close) int fd = connect_to(site);

	send_text(site, fd, request);
	cr_assert(read_to_end(site, fd, response, size), "not closed: %s", request);
}

#define CLOSE " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static inline void expect_status(const char *response, const char *status)
{
	char line[32];

	snprintf(line, sizeof(line), "HTTP/1.1 %s ", status);
	cr_expect_eq(strncmp(response, line, strlen(line)), 0, "wanted %s: %.200s", status,
		     response);
}

static inline void expect_header(const char *response, const char *header)
{
	char line[256];

	snprintf(line, sizeof(line), "\r\n%s\r\n", header);
	cr_expect_not_null(strstr(response, line), "no %s: %.500s", header, response);
}

static inline void expect_body(const char *response, const char *body)
{
	const char *end = strstr(response, "\r\n\r\n");

	cr_assert_not_null(end);
	cr_expect_str_eq(end + 4, body);
}

static inline void expect_scrape(struct site *site)
{
	char response[4096];

	exchange(site, "GET /metrics" CLOSE, response, sizeof(response));
	expect_status(response, "200");
	expect_header(response, "Content-Length: 1000");
}

#endif
