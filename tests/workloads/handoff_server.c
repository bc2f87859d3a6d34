// SPDX-License-Identifier: Apache-2.0
/*
 * A service that hands requests over: one thread around epoll (reader-0) reads them, 100 bytes
 * each, and workers (worker-N) answer with as many. For each a worker exchanges 100 bytes with
 * another service, over the one connection that all of them share behind a mutex.
 *
 * --wait: how it waits for that service: recv, read, poll, or polls (of several descriptors),
 * select.
 *
 * Commands: `stats`, `quit`.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>

#include "workload.h"

#define QUEUE_MAX 1024
#define MESSAGE_BYTES 100

struct server {
	int listener;
	int epoll;
	long workers;
	pthread_barrier_t named; /* all of them */
	const char *wait;
	int never; /* a descriptor that is never readable */

	pthread_mutex_t gate; /* of the queue, of connections with a request to be answered */
	pthread_cond_t filled;
	int queue[QUEUE_MAX];
	unsigned long put, taken;

	struct measured_lock shared; /* of the connection to the other service */
	int upstream;
};

static void epoll_arm(const struct server *server, int operation, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (epoll_ctl(server->epoll, operation, fd, &event))
		die("epoll_ctl");
}

static void queue_put(struct server *server, int fd)
{
	pthread_mutex_lock(&server->gate);
	if (server->put - server->taken == QUEUE_MAX)
		die("the queue is full");
	server->queue[server->put++ % QUEUE_MAX] = fd;
	pthread_cond_signal(&server->filled);
	pthread_mutex_unlock(&server->gate);
}

static int queue_take(struct server *server)
{
	int fd;

	pthread_mutex_lock(&server->gate);
	while (server->put == server->taken)
		pthread_cond_wait(&server->filled, &server->gate);
	fd = server->queue[server->taken++ % QUEUE_MAX];
	pthread_mutex_unlock(&server->gate);
	return fd;
}

static void *reader_main(void *argument)
{
	struct server *server = argument;
	char buffer[MESSAGE_BYTES];
	struct epoll_event event;

	thread_name_set("reader", 0);
	epoll_arm(server, EPOLL_CTL_ADD, server->listener, EPOLLIN);
	for (;;) {
		if (epoll_wait(server->epoll, &event, 1, -1) != 1)
			continue;
		if (event.data.fd == server->listener)
			epoll_arm(server, EPOLL_CTL_ADD, accept(server->listener, NULL, NULL),
				  EPOLLIN | EPOLLONESHOT);
		else if (io_read_all(event.data.fd, buffer, sizeof(buffer)))
			queue_put(server, event.data.fd);
		else
			close(event.data.fd);
	}
	return NULL;
}

static void upstream_select(int fd, int never)
{
	fd_set readable;

	FD_ZERO(&readable);
	FD_SET(fd, &readable);
	FD_SET(never, &readable);
	if (select((fd > never ? fd : never) + 1, &readable, NULL, NULL, NULL) != 1)
		die("select");
}

static void upstream_wait(const struct server *server)
{
	struct pollfd wanted[] = { { .fd = server->never, .events = POLLIN },
				   { .fd = server->upstream, .events = POLLIN } };
	nfds_t skipped = strcmp(server->wait, "polls") ? 1 : 0;

	if (!strcmp(server->wait, "select"))
		upstream_select(server->upstream, server->never);
	else if (!strncmp(server->wait, "poll", 4) && poll(wanted + skipped, 2 - skipped, -1) != 1)
		die("poll");
}

static void upstream_ask(const struct server *server)
{
	char message[MESSAGE_BYTES] = { 0 };
	size_t missing = sizeof(message);
	ssize_t part;

	if (!io_write_all(server->upstream, message, sizeof(message)))
		die("upstream");
	while (missing) {
		upstream_wait(server);
		part = strcmp(server->wait, "read") ? recv(server->upstream, message, missing, 0)
						    : read(server->upstream, message, missing);
		if (part <= 0)
			die("upstream");
		missing -= (size_t)part;
	}
}

static void work(struct server *server)
{
	measured_lock_take(&server->shared);
	upstream_ask(server);
	measured_lock_give(&server->shared);
}

static void *worker_main(void *argument)
{
	static long workers;
	struct server *server = argument;
	char buffer[MESSAGE_BYTES] = { 0 };

	thread_name_set("worker", __atomic_fetch_add(&workers, 1, __ATOMIC_RELAXED));
	pthread_barrier_wait(&server->named);
	for (;;) {
		int fd = queue_take(server);

		work(server);
		if (io_write_all(fd, buffer, sizeof(buffer)))
			epoll_arm(server, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT);
		else
			close(fd);
	}
	return NULL;
}

static void commands_obey(const struct server *server)
{
	char line[64];

	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		measured_lock_print(&server->shared);
		command_done();
	}
}

int main(int argc, char **argv)
{
	static struct server server = { .workers = 4,
					.wait = "recv",
					.gate = PTHREAD_MUTEX_INITIALIZER,
					.filled = PTHREAD_COND_INITIALIZER,
					.shared.mutex = PTHREAD_MUTEX_INITIALIZER };
	long port = 0, upstream_port = 0, i;
	const struct option_row options[] = {
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "workers", &server.workers, NULL, "threads that answer" },
		{ "upstream-port", &upstream_port, NULL, "of the other service" },
		{ "wait", NULL, &server.wait, "recv, read, poll, polls or select" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	server.upstream = upstream_connect(upstream_port);
	server.never = eventfd(0, EFD_CLOEXEC);
	if (server.never < 0)
		die("eventfd");
	server.listener = listen_open("127.0.0.1", port, 128);
	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server.epoll < 0)
		die("epoll_create1");
	errno = pthread_barrier_init(&server.named, NULL, (unsigned int)server.workers + 1);
	if (errno)
		die("pthread_barrier_init");
	for (i = 0; i < server.workers; i++)
		thread_start(worker_main, &server);
	pthread_barrier_wait(&server.named);
	thread_start(reader_main, &server);
	ready_print(server.listener);
	commands_obey(&server);
	return 0;
}
