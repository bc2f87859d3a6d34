/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
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
/* A TLS handshake at which libmicrohttpd 0.9.75 would look all the time, and when it has stalled.
 */
#define POLL_MS 5
#define STALLED_MS 250U
/* What a client that takes nothing can keep in the kernel, which counts it as the exporter's
 * memory. */
#define SEND_BUFFER_BYTES (256 << 10)

struct listener {
	struct loop_watch watch; /* its descriptor is owned */
	struct http_server *server;
	bool ready; /* connections may wait to be accepted */
};

struct http_server {
	struct loop *loop; /* borrowed */
	bool woken; /* a descriptor is ready: the next run is due */
	uint64_t ran_ns; /* when the last run was over */
	struct MHD_Daemon *daemon;
	struct http_handler handler;
	struct http_connections connections;
	struct guard *guard;
	struct loop_watch daemon_watch, checker_watch; /* -1 without; neither is owned */
	int spare_fd; /* given up where there is no other, to turn a client away */
	struct listener listeners[HTTP_LISTENERS_MAX];
	size_t listeners_len;
	size_t turn; /* of the listener whose clients are accepted first */
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
	record->tls = tls;
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
	server->retired = record->tls;
	http_connections_remove(&server->connections, record);
	http_turns_wake(&server->handler.turns, HTTP_WAIT_ROOM);
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

/* Without a descriptor left no client could be turned away, and accept would fail for ever. */
static void server_turn_away(struct http_server *server, int listener)
{
	int fd;

	server->handler.refused[HTTP_REFUSED_NOT_ACCEPTED]++;
	http_connections_evict(&server->connections, server_now_ms());
	if (server->spare_fd < 0)
		return;
	close(server->spare_fd);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	server->spare_fd = fcntl(server->daemon_watch.fd, F_DUPFD_CLOEXEC, 0);
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

/*
 * Some at a time: those that are accepted are served before the next ones come. Each listener is
 * the first in turn, so that a flood at one is none at the others.
 */
static void server_accept(struct http_server *server)
{
	int left = ACCEPTS_PER_RUN;

	server->turn++;
	for (size_t i = 0; i < server->listeners_len; i++) {
		struct listener *listener =
			&server->listeners[(server->turn + i) % server->listeners_len];

		while (listener->ready && left > 0 && server_accept_one(server, listener->watch.fd))
			left--;
		listener->ready = false;
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

static void server_wake(void *arg)
{
	struct http_server *server = arg;

	server->woken = true;
}

static int server_watch(struct http_server *server, struct loop_watch *watch, int fd)
{
	*watch = (struct loop_watch){ .fd = fd, .ready = server_wake, .arg = server };
	return loop_watch(server->loop, watch, LOOP_READABLE);
}

static int server_start_daemon(struct http_server *server)
{
	const union MHD_DaemonInfo *info;
	bool has_tls = guard_has_tls(server->guard);
	struct http_handler *handler = &server->handler;

	server->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
			(has_tls ? MHD_USE_TLS : 0),
		0, NULL, NULL, http_handler_request, handler, MHD_OPTION_NOTIFY_CONNECTION,
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
	return server_watch(server, &server->daemon_watch, info->epoll_fd);
}

static void listener_wake(void *arg)
{
	struct listener *listener = arg;

	listener->ready = true;
	server_wake(listener->server);
}

static int server_listen(struct http_server *server, struct listener *listener)
{
	const int send_bytes = SEND_BUFFER_BYTES;

	listener->server = server;
	listener->watch.ready = listener_wake;
	listener->watch.arg = listener;
	/* Inherited by what is accepted. */
	setsockopt(listener->watch.fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes));
	return loop_watch(server->loop, &listener->watch, LOOP_READABLE);
}

static int server_watch_all(struct http_server *server, const struct helper *checker)
{
	int r = 0;

	for (size_t i = 0; !r && i < server->listeners_len; i++)
		r = server_listen(server, &server->listeners[i]);
	if (!r && checker)
		r = server_watch(server, &server->checker_watch, helper_fd(checker));
	server->spare_fd = fcntl(server->daemon_watch.fd, F_DUPFD_CLOEXEC, 0);
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
	for (size_t i = 0; i < options->listeners_len; i++)
		server->listeners[i].watch.fd = options->listeners[i];
	server->listeners_len = options->listeners_len;
	server->loop = options->loop;
	server->guard = options->guard;
	server->daemon_watch.fd = server->checker_watch.fd = server->spare_fd = -1;
	server->handler = (struct http_handler){
		.guard = options->guard,
		.connections = &server->connections,
		.routes = options->routes,
		.max_requests = options->max_requests ? options->max_requests : HTTP_MAX_REQUESTS,
	};
	http_turns_init(&server->handler.turns, server->loop);
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
		err = server_watch_all(started, options->checker);
	if (err < 0)
		return err;
	server_count(started);
	*server = TAKE_PTR(started);
	return 0;
}

/* --- the loop ------------------------------------------------------------------------------- */

/*
 * libmicrohttpd wants to be run again at once while a TLS handshake waits for its client, which
 * wakes the loop: now and then is enough.
 */
static bool server_may_wait(const struct http_server *server)
{
	const struct http_connection *oldest = http_connections_oldest(&server->connections,
								       HTTP_STAGE_REQUEST);

	return !server->handler.turns.waiting[HTTP_WAIT_RUN] && guard_has_tls(server->guard) &&
	       oldest && server_now_ms() - oldest->since_ms > STALLED_MS;
}

/* When libmicrohttpd wants to be run again: so long after its last run. */
static uint64_t server_daemon_due_ns(const struct http_server *server)
{
	unsigned long long wish_ms;

	if (MHD_get_timeout(server->daemon, &wish_ms) != MHD_YES)
		return UINT64_MAX;
	if (!wish_ms && server_may_wait(server))
		wish_ms = POLL_MS;
	return server->ran_ns + wish_ms * NS_PER_MS;
}

uint64_t http_server_due_ns(const struct http_server *server)
{
	uint64_t due_ns, turn_ns, daemon_ns;

	if (server->woken || server->handler.turns.resumed)
		return 0;
	due_ns = http_connections_due_ms(&server->connections);
	due_ns = due_ns == UINT64_MAX ? due_ns : due_ns * NS_PER_MS;
	turn_ns = http_turns_due_ns(&server->handler.turns);
	daemon_ns = server_daemon_due_ns(server);
	due_ns = turn_ns < due_ns ? turn_ns : due_ns;
	return daemon_ns < due_ns ? daemon_ns : due_ns;
}

static void server_run_guard(struct http_server *server)
{
	if (server->checker_watch.fd < 0)
		return;
	if (guard_run(server->guard))
		http_turns_wake(&server->handler.turns, HTTP_WAIT_CHECK);
	if (guard_is_deaf(server->guard)) {
		loop_forget(server->loop, &server->checker_watch);
		server->checker_watch.fd = -1;
	}
}

const struct http_refusal_row *http_server_refusals(const struct http_server *server, size_t *len)
{
	*len = HTTP_REFUSALS;
	return server->rows;
}

int http_server_run(struct http_server *server)
{
	struct http_turns *turns = &server->handler.turns;
	size_t waiting;

	server->woken = false;
	web_tls_unref(server->retired);
	server->retired = NULL;
	server_run_guard(server);
	http_connections_expire(&server->connections, server_now_ms());
	server_accept(server);
	http_turns_review(turns, clock_monotonic_ns());
	server_count(server);
	turns->resumed = false;
	MHD_run(server->daemon);
	server->ran_ns = clock_monotonic_ns();
	waiting = turns->waiting[HTTP_WAIT_RUN];
	if (turns->resumed)
		waiting += turns->waiting[HTTP_WAIT_ROOM];
	return server->listener_gone ? -ESHUTDOWN : (int)waiting;
}

/* One that is not watched is as if it had been forgotten. */
static void server_forget(struct http_server *server)
{
	loop_forget(server->loop, &server->daemon_watch);
	loop_forget(server->loop, &server->checker_watch);
	for (size_t i = 0; i < server->listeners_len; i++)
		loop_forget(server->loop, &server->listeners[i].watch);
}

void http_server_stop(struct http_server *server)
{
	if (!server)
		return;
	server_forget(server);
	http_turns_end(&server->handler.turns);
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	web_tls_unref(server->retired);
	for (size_t i = 0; i < server->listeners_len; i++)
		close(server->listeners[i].watch.fd);
	cleanup_close(&server->spare_fd);
	free(server);
}
