// SPDX-License-Identifier: Apache-2.0
/*
 * A service of one thread around epoll with non-blocking sockets and requests of a fixed size.
 *
 * --ports: how many ports to listen on, --port and others that are free.
 * --tries: a connection is given to epoll only when it has served its first request.
 *
 * Commands: `stuck` (the loop stands still), `release`, `stats`, `ports` (all of them), `close N`
 * (port N takes no more connections, those it has stay), `quit`.
 */
#include <sys/epoll.h>

#include "workload.h"

#define PORTS_MAX 256

struct connection {
	int fd;
	size_t missing; /* bytes until the request is complete */
};

struct server {
	int epoll;
	int listeners[PORTS_MAX];
	long ports;
	long tries;
	long request_bytes;
	long response_bytes;
	uint64_t requests;
	char buffer[MESSAGE_MAX];
};

static void epoll_add(const struct server *server, int fd, void *tag)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = tag };

	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl");
}

static void connection_serve(struct server *server, struct connection *connection);

static void connection_open(struct server *server, int listener)
{
	struct connection *new;
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	new = calloc(1, sizeof(*new));
	if (!new)
		die("calloc");
	new->fd = fd;
	new->missing = (size_t)server->request_bytes;
	if (server->tries) {
		io_wait(fd);
		connection_serve(server, new);
	}
	epoll_add(server, fd, new);
}

static void connection_close(struct connection *connection)
{
	close(connection->fd);
	free(connection);
}

static void connection_serve(struct server *server, struct connection *connection)
{
	ssize_t part = read(connection->fd, server->buffer, connection->missing);

	if (part < 0 && errno == EAGAIN)
		return;
	if (part <= 0) {
		connection_close(connection);
		return;
	}
	connection->missing -= (size_t)part;
	if (connection->missing)
		return;
	connection->missing = (size_t)server->request_bytes;
	server->requests++;
	if (!io_write_all(connection->fd, server->buffer, (size_t)server->response_bytes))
		connection_close(connection);
}

static void listeners_open(struct server *server, const char *address, long port, long backlog)
{
	long i;

	for (i = 0; i < server->ports; i++) {
		server->listeners[i] = listen_open(address, i ? 0 : port, backlog);
		epoll_add(server, server->listeners[i], &server->listeners[i]);
	}
}

/* The listener that an event is tagged with; NULL if it is a connection's. */
static const int *listener_tagged(const struct server *server, const void *tag)
{
	const int *first = server->listeners;

	return (const int *)tag >= first && (const int *)tag < first + PORTS_MAX ? tag : NULL;
}

static void ports_print(const struct server *server)
{
	char key[16];
	long i;

	for (i = 0; i < server->ports; i++) {
		snprintf(key, sizeof(key), "port%ld", i);
		stat_print(key, socket_port(server->listeners[i]));
	}
}

static void listener_close(struct server *server, long number)
{
	if (number < 0 || number >= server->ports || close(server->listeners[number]))
		die("no listener %ld", number);
	server->listeners[number] = -1;
}

/* A line from standard input, read without a buffer so that epoll knows what is left. */
static bool line_read(char *line, size_t size)
{
	size_t length = 0;

	while (length < size - 1 && read(STDIN_FILENO, line + length, 1) == 1) {
		if (line[length] == '\n') {
			line[length] = '\0';
			return true;
		}
		length++;
	}
	return false;
}

/* Obeys one command, after `stuck` all up to `release`. */
static void command_obey(struct server *server)
{
	bool stuck = false;
	char line[64];

	do {
		if (!line_read(line, sizeof(line)) || !strcmp(line, "quit"))
			exit(0);
		if (!strcmp(line, "stuck"))
			stuck = true;
		else if (!strcmp(line, "release"))
			stuck = false;
		else if (!strcmp(line, "stats"))
			stat_print("requests", server->requests);
		else if (!strcmp(line, "ports"))
			ports_print(server);
		else if (!strncmp(line, "close ", 6))
			listener_close(server, strtol(line + 6, NULL, 10));
		command_done();
	} while (stuck);
}

int main(int argc, char **argv)
{
	struct server server = { .ports = 1, .request_bytes = 100, .response_bytes = 100 };
	const char *address = "127.0.0.1";
	long port = 0, backlog = 128;
	const struct option_row options[] = {
		{ "address", NULL, &address, "to listen on" },
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "ports", &server.ports, NULL, "how many to listen on" },
		{ "backlog", &backlog, NULL, "of the listeners" },
		{ "tries", &server.tries, NULL, "before it gives a connection to epoll" },
		{ "request-bytes", &server.request_bytes, NULL, "size of every request" },
		{ "response-bytes", &server.response_bytes, NULL, "size of every response" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	if (!server.ports || server.ports > PORTS_MAX)
		die("1 to %d ports", PORTS_MAX);
	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server.epoll < 0)
		die("epoll_create1");
	listeners_open(&server, address, port, backlog);
	epoll_add(&server, STDIN_FILENO, &server);
	ready_print(server.listeners[0]);
	for (;;) {
		struct epoll_event event;
		const int *listener;

		if (epoll_wait(server.epoll, &event, 1, -1) != 1)
			continue;
		listener = listener_tagged(&server, event.data.ptr);
		if (event.data.ptr == &server)
			command_obey(&server);
		else if (listener)
			connection_open(&server, *listener);
		else
			connection_serve(&server, event.data.ptr);
	}
}
