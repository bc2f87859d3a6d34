/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <gnutls/abstract.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "http/connections.h"

#define CONNECTIONS_MAX 128U
#define ACCEPTS_PER_RUN 32
/* Of libmicrohttpd: those that were shut down keep their place until its next run. */
#define CONNECTIONS_LIMIT (CONNECTIONS_MAX + 2U * ACCEPTS_PER_RUN)
#define CONNECTION_MEMORY_BYTES ((size_t)16384) /* bounds the headers: 431 beyond */
#define IDLE_DEFAULT_MS 120000U
#define DEADLINE_DEFAULT_MS 20000U
/* For what libmicrohttpd 0.9.75 would have us look all the time, and how long until it is that. */
#define POLL_MS 5
#define STALLED_MS 250U
/* What a client that takes nothing can keep in the kernel, which counts it as the exporter's
 * memory. */
#define SEND_BUFFER_BYTES (256 << 10)
#define EVENTS_MAX (HTTP_LISTENERS_MAX + 2)

struct http_server {
	struct MHD_Daemon *daemon;
	struct http_handler handler;
	struct http_connections connections;
	struct guard *guard;
	int epoll_fd; /* the listeners, the daemon's and the checker's */
	int daemon_fd;
	int checker_fd; /* -1 without one; not owned */
	int spare_fd; /* given up where there is no other, to turn a client away */
	int listeners[HTTP_LISTENERS_MAX];
	size_t listeners_len;
	bool listener_gone; /* one of them was shut down */
	struct http_origin origin; /* of the connection that is being added */
	struct web_tls *retired; /* that of a session which is released in the next run */
	struct http_refusal_row rows[HTTP_REFUSALS];
};

static uint64_t server_now_ms(void)
{
	return clock_monotonic_ns() / NS_PER_MS;
}

/* --- connections ---------------------------------------------------------------------------- */

static int server_begin_tls(struct http_server *server, struct MHD_Connection *connection,
			    struct http_connection *record)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	struct web_tls *tls = info ? guard_tls(server->guard) : NULL;

	if (!tls)
		return -EIO;
	record->context = tls;
	return web_tls_use(tls, info->tls_session);
}

static void server_connected(struct http_server *server, struct MHD_Connection *connection,
			     void **context)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	int fd = info ? info->connect_fd : -1;
	struct http_connection *record = http_connections_add(&server->connections, fd,
							      &server->origin, server_now_ms());

	*context = record;
	if (!record) {
		server->handler.refused[HTTP_REFUSED_NOT_ACCEPTED]++;
		shutdown(fd, SHUT_RDWR);
	} else if (guard_has_tls(server->guard) && server_begin_tls(server, connection, record)) {
		server->handler.refused[HTTP_REFUSED_TLS_BROKEN]++;
		shutdown(fd, SHUT_RDWR);
	}
}

/* The session is released behind this call, and needs its credentials until then. */
static void server_disconnected(struct http_server *server, struct http_connection *record)
{
	if (!record)
		return;
	web_tls_unref(server->retired);
	server->retired = record->context;
	http_connections_remove(&server->connections, record);
}

static void server_on_connection(void *arg, struct MHD_Connection *connection, void **context,
				 enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		server_connected(arg, connection, context);
	} else {
		server_disconnected(arg, *context);
		*context = NULL;
	}
}

/* Without a descriptor left nobody could even be turned away, and accept would be tried for ever.
 */
static void server_turn_away(struct http_server *server, int listener)
{
	int fd;

	server->handler.refused[HTTP_REFUSED_NOT_ACCEPTED]++;
	http_connections_evict(&server->connections);
	if (server->spare_fd < 0)
		return;
	close(server->spare_fd);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	server->spare_fd = fcntl(server->epoll_fd, F_DUPFD_CLOEXEC, 0);
}

/*
 * Errors of the network come out of accept(2) as well, and concern one connection. EINVAL concerns
 * the socket: it listens no more, and would be reported as ready for ever.
 */
static bool server_accept_failed(struct http_server *server, int listener, int error)
{
	if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM)
		server_turn_away(server, listener);
	server->listener_gone |= error == EINVAL;
	return error != EAGAIN && error != EINVAL;
}

/* Whether there may be more. */
static bool server_accept_one(struct http_server *server, int listener)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);
	int fd = accept4(listener, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return server_accept_failed(server, listener, errno);
	server->origin = http_origin_of(&address);
	/* It closes the descriptor where it fails. */
	if (MHD_add_connection(server->daemon, fd, (struct sockaddr *)&address, len) != MHD_YES)
		server->handler.refused[HTTP_REFUSED_NOT_ACCEPTED]++;
	return true;
}

/* Some at a time: those that are accepted are served before the next ones come. */
static void server_accept(struct http_server *server)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(server->epoll_fd, events, EVENTS_MAX, 0);
	int left = ACCEPTS_PER_RUN;

	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == server->daemon_fd ||
		    events[i].data.fd == server->checker_fd)
			continue;
		while (left > 0 && server_accept_one(server, events[i].data.fd))
			left--;
	}
}

/* --- start ---------------------------------------------------------------------------------- */

/* For libmicrohttpd, which wants to know of some certificate: sessions get theirs in web_tls_use.
 */
static int server_no_certificate(gnutls_session_t session, const gnutls_datum_t *issuers,
				 int issuers_len, const gnutls_pk_algorithm_t *algorithms,
				 int algorithms_len, gnutls_pcert_st **chain,
				 unsigned int *chain_len, gnutls_privkey_t *key)
{
	(void)session;
	(void)issuers;
	(void)issuers_len;
	(void)algorithms;
	(void)algorithms_len;
	(void)chain;
	(void)chain_len;
	(void)key;
	return -1;
}

static int server_start_daemon(struct http_server *server)
{
	const union MHD_DaemonInfo *info;
	bool has_tls = guard_has_tls(server->guard);
	struct http_handler *handler = &server->handler;

	server->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | (has_tls ? MHD_USE_TLS : 0), 0, NULL,
		NULL, http_handler_request, handler, MHD_OPTION_NOTIFY_CONNECTION,
		server_on_connection, server, MHD_OPTION_NOTIFY_COMPLETED, http_handler_completed,
		handler, MHD_OPTION_URI_LOG_CALLBACK, http_handler_begun, handler,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_LIMIT, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		CONNECTION_MEMORY_BYTES, MHD_OPTION_HTTPS_CERT_CALLBACK, server_no_certificate,
		MHD_OPTION_END);
	if (!server->daemon)
		return -EIO;
	info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info || info->epoll_fd < 0)
		return -EIO;
	server->daemon_fd = info->epoll_fd;
	return 0;
}

static int server_watch(const struct http_server *server, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int server_watch_all(struct http_server *server)
{
	const int send_bytes = SEND_BUFFER_BYTES;
	int r;

	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll_fd < 0)
		return -errno;
	r = server_watch(server, server->daemon_fd);
	for (size_t i = 0; !r && i < server->listeners_len; i++) {
		/* Inherited by what is accepted. */
		setsockopt(server->listeners[i], SOL_SOCKET, SO_SNDBUF, &send_bytes,
			   sizeof(send_bytes));
		r = server_watch(server, server->listeners[i]);
	}
	if (!r && server->checker_fd >= 0)
		r = server_watch(server, server->checker_fd);
	server->spare_fd = fcntl(server->epoll_fd, F_DUPFD_CLOEXEC, 0);
	return r;
}

static void server_set_options(struct http_server *server,
			       const struct http_server_options *options)
{
	unsigned deadline_ms = options->deadline_ms ? options->deadline_ms : DEADLINE_DEFAULT_MS;
	const struct http_limits limits = {
		.max = CONNECTIONS_MAX,
		.stage_ms = { [HTTP_STAGE_REQUEST] = deadline_ms,
			      [HTTP_STAGE_IDLE] = options->idle_ms ? options->idle_ms
								   : IDLE_DEFAULT_MS,
			      [HTTP_STAGE_CHECK] = deadline_ms,
			      [HTTP_STAGE_WAIT] = deadline_ms,
			      [HTTP_STAGE_ANSWER] = deadline_ms },
	};

	http_connections_init(&server->connections, &limits);
	memcpy(server->listeners, options->listeners, sizeof(server->listeners));
	server->listeners_len = options->listeners_len;
	server->guard = options->guard;
	server->checker_fd = options->checker ? checker_fd(options->checker) : -1;
	server->epoll_fd = server->spare_fd = -1;
	server->handler = (struct http_handler){
		.guard = options->guard,
		.connections = &server->connections,
		.telemetry_path = options->telemetry_path,
		.health_open = options->health_open,
		.metrics = options->metrics,
		.landing = options->landing,
		.arg = options->arg,
		.max_requests = options->max_requests ? options->max_requests : HTTP_MAX_REQUESTS,
	};
}

/* Before the pages are made that show them. */
static void server_count(struct http_server *server)
{
	static const char *const reasons[HTTP_REFUSALS] = {
#define REFUSAL(id, name) [HTTP_REFUSED_##id] = name,
		HTTP_REFUSAL_LIST(REFUSAL)
#undef REFUSAL
	};

	for (int i = 0; i < HTTP_REFUSALS; i++)
		server->rows[i] = (struct http_refusal_row){ reasons[i],
							     server->handler.refused[i] };
	server->rows[HTTP_REFUSED_EVICTED].refused = server->connections.evicted;
	server->rows[HTTP_REFUSED_EXPIRED].refused = server->connections.expired;
}

int http_server_start(const struct http_server_options *options, struct http_server **server)
{
	_cleanup_(http_server_stopp) struct http_server *started = calloc(1, sizeof(*started));
	int err;

	if (!started) {
		for (size_t i = 0; i < options->listeners_len; i++)
			close(options->listeners[i]);
		return -ENOMEM;
	}
	server_set_options(started, options);
	err = server_start_daemon(started);
	if (!err)
		err = server_watch_all(started);
	if (err < 0)
		return err;
	server_count(started);
	*server = TAKE_PTR(started);
	return 0;
}

/* --- the loop ------------------------------------------------------------------------------- */

int http_server_fd(const struct http_server *server)
{
	return server->epoll_fd;
}

/*
 * libmicrohttpd wants to be run again at once while a request waits for its answer, and also while
 * a TLS handshake waits for its client. The checker and the client wake us up: it need not be.
 */
static bool server_may_wait(const struct http_server *server)
{
	const struct http_connection *oldest =
		TAILQ_FIRST(&server->connections.stages[HTTP_STAGE_REQUEST]);

	const size_t *waiting = server->handler.waiting;

	if (waiting[HTTP_WAIT_RUN])
		return false;
	return waiting[HTTP_WAIT_CHECK] || waiting[HTTP_WAIT_ROOM] ||
	       (guard_has_tls(server->guard) && oldest &&
		server_now_ms() - oldest->since_ms > STALLED_MS);
}

/* libmicrohttpd's own wish: -1 for none. */
static int server_daemon_timeout_ms(const struct http_server *server)
{
	unsigned long long wish_ms;

	if (MHD_get_timeout(server->daemon, &wish_ms) != MHD_YES)
		return -1;
	if (!wish_ms && server_may_wait(server))
		return POLL_MS;
	return wish_ms > INT_MAX ? INT_MAX : (int)wish_ms;
}

int http_server_timeout_ms(const struct http_server *server)
{
	int deadline_ms = http_connections_timeout_ms(&server->connections, server_now_ms());
	int daemon_ms = server_daemon_timeout_ms(server);

	if (daemon_ms < 0 || (deadline_ms >= 0 && deadline_ms < daemon_ms))
		return deadline_ms;
	return daemon_ms;
}

static void server_run_guard(struct http_server *server)
{
	if (server->checker_fd < 0)
		return;
	if (guard_run(server->guard) && guard_is_deaf(server->guard)) {
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->checker_fd, NULL);
		server->checker_fd = -1;
	}
}

const struct http_refusal_row *http_server_refusals(const struct http_server *server, size_t *len)
{
	*len = HTTP_REFUSALS;
	return server->rows;
}

int http_server_run(struct http_server *server)
{
	web_tls_unref(server->retired);
	server->retired = NULL;
	server_run_guard(server);
	http_connections_expire(&server->connections, server_now_ms());
	server_accept(server);
	server_count(server);
	MHD_run(server->daemon);
	return server->listener_gone ? -ESHUTDOWN : (int)server->handler.waiting[HTTP_WAIT_RUN];
}

void http_server_stop(struct http_server *server)
{
	if (!server)
		return;
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	web_tls_unref(server->retired);
	for (size_t i = 0; i < server->listeners_len; i++)
		close(server->listeners[i]);
	cleanup_close(&server->epoll_fd);
	cleanup_close(&server->spare_fd);
	free(server);
}
