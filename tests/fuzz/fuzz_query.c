/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a scrape asks for, through libmicrohttpd and the handler: the input is the query of a
 * request line, and behind the first newline the value of the header with the time-out, which may
 * well end that header and begin others.
 */
#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/scrape.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "http/handler.h"
#include "fuzz.h"

#define SECOND 1000000000ULL
#define TIMEOUT_MAX_NS (86401 * SECOND)
#define WHY_BYTES 256
#define RUNS 4 /* of libmicrohttpd: the request, the page's turn, the answer, and the end */

struct site {
	struct http_connections connections;
	struct http_handler handler;
	struct MHD_Daemon *daemon;
};

static void check_why(const char *why)
{
	size_t len = strlen(why);

	MUST(len > 1 && len < WHY_BYTES - 1 && why[len - 1] == '\n' && why[len - 2] == '.');
	for (size_t i = 0; i + 1 < len; i += utf8_length(why + i))
		MUST(utf8_length(why + i));
}

static void check_query(const struct http_request *request, const struct scrape_query *query,
			unsigned int enabled)
{
	struct scrape_query again;
	char why[WHY_BYTES];

	MUST(!(query->collectors & ~enabled));
	MUST(query->deadline_ns == UINT64_MAX ||
	     (query->deadline_ns > request->arrived_ns &&
	      query->deadline_ns < request->arrived_ns + TIMEOUT_MAX_NS));
	MUST(query->format < EXPOSITION_FORMATS);
	MUST(scrape_query_read(request, enabled, &again, why, sizeof(why)) == 0);
	MUST(again.collectors == query->collectors && again.deadline_ns == query->deadline_ns &&
	     again.format == query->format && again.gzip == query->gzip);
}

static int page(void *arg, const struct http_request *request, struct http_page *out)
{
	unsigned int enabled = 1U << features_find("discovery") | 1U << features_find("requests");
	struct scrape_query query;
	char why[WHY_BYTES];
	int r = scrape_query_read(request, enabled, &query, why, sizeof(why));

	(void)arg;
	MUST(request->arguments_len <= HTTP_ARGUMENTS_MAX);
	MUST(r == 0 || r == -EINVAL);
	if (r)
		check_why(why);
	else
		check_query(request, &query, enabled);
	return http_page_text(out, r ? 400 : 200, r ? why : "");
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	static const struct http_origin nowhere;
	struct http_connections *connections = arg;

	(void)connection;
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		MUST(*context = http_connections_add(connections, -1, &nowhere, 0));
	else
		http_connections_remove(connections, *context);
}

static struct site *site_make(void)
{
	static const struct http_limits limits = { .max = 8 };
	static const struct guard_options options;
	static struct site site;
	struct guard *guard = NULL;

	MUST(guard_new(&options, &guard, NULL, 0) == 0);
	http_connections_init(&site.connections, &limits);
	site.handler = (struct http_handler){
		.guard = guard,
		.connections = &site.connections,
		.routes = { .rows = { { .path = "/metrics", .page = page } }, .len = 1 },
		.max_requests = 1,
	};
	http_turns_init(&site.handler.turns, NULL);
	site.daemon = MHD_start_daemon(
		MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, http_handler_request, &site.handler,
		MHD_OPTION_URI_LOG_CALLBACK, http_handler_begun, &site.handler,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, &site.connections,
		MHD_OPTION_NOTIFY_COMPLETED, http_handler_completed, &site.handler, MHD_OPTION_END);
	MUST(site.daemon);
	return &site;
}

static size_t request_write(const char *input, char *out, size_t size)
{
	size_t query_len = strcspn(input, "\n");
	int len = snprintf(out, size,
			   "GET /metrics?%.*s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
			   "X-Prometheus-Scrape-Timeout-Seconds: %s\r\n\r\n",
			   (int)query_len, input, input[query_len] ? input + query_len + 1 : "");

	MUST(len > 0);
	return (size_t)len < size ? (size_t)len : size - 1;
}

/* An answer, if there is one, is whole: it has a status and the end of its headers. */
static void check_answer(int fd)
{
	char answer[4096];
	ssize_t got = recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);

	if (got <= 0)
		return;
	answer[got] = '\0';
	MUST(strncmp(answer, "HTTP/1.", strlen("HTTP/1.")) == 0 && strstr(answer, "\r\n\r\n"));
}

static void exchange(struct site *site, const char *request, size_t len)
{
	const struct sockaddr nobody = { .sa_family = AF_UNIX };
	int ends[2];

	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	MUST(send(ends[0], request, len, MSG_NOSIGNAL) == (ssize_t)len);
	MUST(shutdown(ends[0], SHUT_WR) == 0);
	MUST(MHD_add_connection(site->daemon, ends[1], &nobody, sizeof(nobody)) == MHD_YES);
	for (int i = 0; i < RUNS; i++)
		MUST(MHD_run(site->daemon) == MHD_YES);
	check_answer(ends[0]);
	close(ends[0]);
	while (MHD_get_daemon_info(site->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
		       ->num_connections)
		MUST(MHD_run(site->daemon) == MHD_YES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct site *site;
	char *input = fuzz_text(data, len), request[16384];

	if (!site)
		site = site_make();
	exchange(site, request, request_write(input, request, sizeof(request)));
	MUST(!site->handler.turns.waiting[HTTP_WAIT_RUN] && !site->handler.sending_bytes);
	free(input);
	return 0;
}
