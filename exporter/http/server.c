/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <microhttpd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "http/connections.h"

#define CONNECTIONS_MAX 128U
#define CONNECTIONS_PER_ADDRESS 64U
/* Below both limits, so that clients that do nothing give way before anyone is turned away. */
#define CONNECTIONS_KEPT 48U
#define CONNECTION_MEMORY_BYTES ((size_t)16384)
#define IDLE_DEFAULT_S 10U
#define DEADLINE_DEFAULT_MS 20000U

struct http_server {
	struct MHD_Daemon *daemon;
	struct http_connections connections;
	const char *telemetry_path;
	http_page_fn metrics;
	http_page_fn landing;
	void *arg;
	int epoll_fd; /* the daemon's */
	size_t waiting; /* turns that wait */
};

/* A request, from its headers until it is answered or given up. */
struct server_turn {
	uint64_t arrived_ns;
	bool waits; /* for the next run, with all others that have come in this one */
};

static uint64_t server_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool server_add_header(struct MHD_Response *response, const char *name, const char *value)
{
	return !value || MHD_add_response_header(response, name, value) == MHD_YES;
}

/* Adds the headers of @page, queues and releases @response, which may be NULL: no memory. */
static enum MHD_Result server_send(struct MHD_Connection *connection, const struct http_page *page,
				   struct MHD_Response *response)
{
	const char *allow = page->status == MHD_HTTP_METHOD_NOT_ALLOWED ? "GET, HEAD" : NULL;
	enum MHD_Result result = MHD_NO;

	if (!response)
		return MHD_NO;
	if (server_add_header(response, "Content-Type", page->content_type) &&
	    server_add_header(response, "Content-Encoding", page->content_encoding) &&
	    server_add_header(response, "Vary", page->vary) &&
	    server_add_header(response, "X-Content-Type-Options", "nosniff") &&
	    server_add_header(response, "Allow", allow))
		result = MHD_queue_response(connection, page->status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result server_send_text(struct MHD_Connection *connection, unsigned status,
					const char *text)
{
	struct http_page page = { .status = status, .content_type = HTTP_CONTENT_TYPE_PLAIN };

	/* The text is constant: libmicrohttpd only reads it. */
	return server_send(connection, &page,
			   MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
							   MHD_RESPMEM_PERSISTENT));
}

static void server_release_body(void *body)
{
	http_body_unref(body);
}

/* The body is shared, not copied; HEAD gets it too, for the length, and is sent none of it. */
static enum MHD_Result server_send_page(struct MHD_Connection *connection,
					const struct http_page *page)
{
	struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
		page->body->bytes.len, page->body->bytes.data, server_release_body, page->body);

	if (!response)
		http_body_unref(page->body);
	return server_send(connection, page, response);
}

static enum MHD_Result server_add_argument(void *arg, enum MHD_ValueKind kind, const char *name,
					   const char *value)
{
	struct http_request *request = arg;

	(void)kind;
	if (request->arguments_len < HTTP_ARGUMENTS_MAX)
		request->arguments[request->arguments_len] =
			(struct http_argument){ name, value ? value : "" };
	request->arguments_len++;
	return MHD_YES;
}

static const char *server_header(struct MHD_Connection *connection, const char *name)
{
	const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);

	return value ? value : "";
}

static enum MHD_Result server_ask_page(const struct http_server *server,
				       struct MHD_Connection *connection,
				       const struct server_turn *turn, http_page_fn ask)
{
	struct http_request request = {
		.accept = server_header(connection, "Accept"),
		.accept_encoding = server_header(connection, "Accept-Encoding"),
		.scrape_timeout = server_header(connection, "X-Prometheus-Scrape-Timeout-Seconds"),
		.arrived_ns = turn->arrived_ns,
	};
	struct http_page page = { 0 };

	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, server_add_argument, &request);
	if (request.arguments_len > HTTP_ARGUMENTS_MAX)
		return server_send_text(connection, MHD_HTTP_BAD_REQUEST,
					"Too many query arguments.\n");
	if (ask(server->arg, &request, &page) < 0)
		return server_send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
					"The page could not be made; see the log.\n");
	return server_send_page(connection, &page);
}

/*
 * A page is not asked for when its request comes but in the run after it: whoever asks first then
 * pays for a snapshot, which is younger than all requests that wait and answers all of them. A
 * final call that queues no response is made again in the next run, at once.
 */
static enum MHD_Result server_route(struct http_server *server, struct MHD_Connection *connection,
				    struct server_turn *turn, const char *path)
{
	bool metrics = strcmp(path, server->telemetry_path) == 0;

	if (!metrics && strcmp(path, "/") != 0)
		return server_send_text(connection, MHD_HTTP_OK, "Healthy\n");
	turn->waits = !turn->waits;
	if (turn->waits) {
		turn->arrived_ns = clock_monotonic_ns();
		server->waiting++;
		return MHD_YES;
	}
	server->waiting--;
	return server_ask_page(server, connection, turn,
			       metrics ? server->metrics : server->landing);
}

static bool server_has_path(const struct http_server *server, const char *path)
{
	return strcmp(path, server->telemetry_path) == 0 || strcmp(path, "/") == 0 ||
	       strcmp(path, HTTP_HEALTH_PATH) == 0;
}

static bool server_request_has_body(struct MHD_Connection *connection)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 "Content-Length");

	return (length && strcmp(length, "0") != 0) ||
	       MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding");
}

static struct http_connection *server_record(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void server_progress(struct http_server *server, struct MHD_Connection *connection)
{
	struct http_connection *record = server_record(connection);

	if (record && !record->closing)
		http_connections_progress(&server->connections, record, server_now_ms());
}

/*
 * libmicrohttpd calls twice: with the headers, then with the whole request. Answering the first
 * call closes the connection without reading on, which is right for what is refused and wrong for
 * scrapes.
 */
static enum MHD_Result server_on_request(void *arg, struct MHD_Connection *connection,
					 const char *path, const char *method, const char *version,
					 const char *upload, size_t *upload_bytes, void **request)
{
	struct http_server *server = arg;

	(void)version;
	(void)upload;
	if (*request) {
		if (*upload_bytes)
			return MHD_NO;
		server_progress(server, connection);
		return server_route(server, connection, *request, path);
	}
	*request = calloc(1, sizeof(struct server_turn));
	if (!*request)
		return MHD_NO;
	if (!server_has_path(server, path))
		return server_send_text(connection, MHD_HTTP_NOT_FOUND, "Not found.\n");
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return server_send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
					"Only GET and HEAD.\n");
	if (server_request_has_body(connection))
		return server_send_text(connection, MHD_HTTP_CONTENT_TOO_LARGE,
					"Requests have no body here.\n");
	return MHD_YES;
}

static void server_on_completed(void *arg, struct MHD_Connection *connection, void **request,
				enum MHD_RequestTerminationCode how)
{
	struct http_server *server = arg;
	struct server_turn *turn = *request;

	(void)how;
	server->waiting -= turn && turn->waits;
	free(turn);
	*request = NULL;
	server_progress(server, connection);
}

static void server_on_connection(void *arg, struct MHD_Connection *connection, void **record,
				 enum MHD_ConnectionNotificationCode what)
{
	struct http_server *server = arg;
	const union MHD_ConnectionInfo *info;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*record)
			http_connections_remove(&server->connections, *record);
		*record = NULL;
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (info)
		*record = http_connections_add(&server->connections, info->connect_fd,
					       server_now_ms());
}

static int server_start_daemon(struct http_server *server,
			       const struct http_server_options *options)
{
	const union MHD_DaemonInfo *info;
	unsigned idle_s = options->idle_s ? options->idle_s : IDLE_DEFAULT_S;

	server->daemon = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, server_on_request, server, MHD_OPTION_LISTEN_SOCKET,
		options->listen_fd, MHD_OPTION_NOTIFY_CONNECTION, server_on_connection, server,
		MHD_OPTION_NOTIFY_COMPLETED, server_on_completed, server,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		CONNECTIONS_PER_ADDRESS, MHD_OPTION_CONNECTION_TIMEOUT, idle_s,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES, MHD_OPTION_END);
	if (!server->daemon)
		return -EIO;
	info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info || info->epoll_fd < 0)
		return -EIO;
	server->epoll_fd = info->epoll_fd;
	return 0;
}

int http_server_start(const struct http_server_options *options, struct http_server **server)
{
	_cleanup_(http_server_stopp) struct http_server *started = calloc(1, sizeof(*started));
	int err;

	if (!started) {
		close(options->listen_fd);
		return -ENOMEM;
	}
	started->telemetry_path = options->telemetry_path;
	started->metrics = options->metrics;
	started->landing = options->landing;
	started->arg = options->arg;
	http_connections_init(&started->connections, CONNECTIONS_KEPT,
			      options->deadline_ms ? options->deadline_ms : DEADLINE_DEFAULT_MS);
	err = server_start_daemon(started, options);
	if (err < 0)
		return err;
	*server = TAKE_PTR(started);
	return 0;
}

int http_server_fd(const struct http_server *server)
{
	return server->epoll_fd;
}

int http_server_timeout_ms(const struct http_server *server)
{
	int deadline_ms = http_connections_timeout_ms(&server->connections, server_now_ms());
	unsigned long long mhd_ms;

	if (MHD_get_timeout(server->daemon, &mhd_ms) != MHD_YES)
		return deadline_ms;
	if (mhd_ms > INT_MAX)
		mhd_ms = INT_MAX;
	return deadline_ms >= 0 && deadline_ms < (int)mhd_ms ? deadline_ms : (int)mhd_ms;
}

size_t http_server_run(struct http_server *server)
{
	http_connections_expire(&server->connections, server_now_ms());
	MHD_run(server->daemon);
	return server->waiting;
}

void http_server_stop(struct http_server *server)
{
	if (!server)
		return;
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	free(server);
}
