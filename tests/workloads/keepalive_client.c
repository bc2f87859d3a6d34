// SPDX-License-Identifier: Apache-2.0
/*
 * The heaviest load that one thread can give, counted exactly: --connections keep-alive connections
 * in one epoll loop, each with one request under way. After --ms nothing new is sent, and every
 * answer still missing is waited for: what it reports is what the server has answered.
 *
 * Answers have a fixed size. Prints `requests`, `elapsed_ns`, `response_p50_ns`, `response_p99_ns`.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include "workload.h"

#define EVENTS_MAX 128
#define SLOT_NS 250ULL
#define SLOTS 400000 /* response times of up to 100 ms, by quarter microseconds */

struct connection {
	int fd;
	size_t missing; /* bytes of the answer */
	uint64_t sent_ns;
};

struct load {
	const char *request;
	size_t request_bytes;
	size_t response_bytes;
	struct connection *connections;
	long count;
	int epoll;
	uint64_t end_ns;
	long open; /* requests under way */
	uint64_t requests;
	uint32_t *slots; /* SLOTS of them; the last one holds what is longer as well */
};

static void request_send(struct load *load, struct connection *connection, uint64_t now)
{
	connection->sent_ns = now;
	connection->missing = load->response_bytes;
	if (!io_write_all(connection->fd, load->request, load->request_bytes))
		die("send");
	load->open++;
}

static void request_end(struct load *load, const struct connection *connection, uint64_t now)
{
	uint64_t slot = (now - connection->sent_ns) / SLOT_NS;

	load->slots[slot < SLOTS ? slot : SLOTS - 1]++;
	load->requests++;
	load->open--;
}

static void connection_ready(struct load *load, struct connection *connection)
{
	char buffer[MESSAGE_MAX];
	ssize_t part = recv(connection->fd, buffer, connection->missing, 0);
	uint64_t now;

	if (part <= 0)
		die("the server closed a connection");
	connection->missing -= (size_t)part;
	if (connection->missing)
		return;
	now = clock_now_ns();
	request_end(load, connection, now);
	if (now < load->end_ns)
		request_send(load, connection, now);
}

static void load_run(struct load *load)
{
	struct epoll_event events[EVENTS_MAX];
	long i;

	for (i = 0; i < load->count; i++)
		request_send(load, &load->connections[i], clock_now_ns());
	while (load->open) {
		int ready = epoll_wait(load->epoll, events, EVENTS_MAX, 10000);

		if (!ready)
			die("no answer for ten seconds, %ld requests under way", load->open);
		for (i = 0; i < ready; i++)
			connection_ready(load, events[i].data.ptr);
	}
}

static void connection_open(struct load *load, struct connection *connection, const char *address,
			    long port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };
	struct addrinfo *found;
	char service[16];
	int on = 1;

	snprintf(service, sizeof(service), "%ld", port);
	if (getaddrinfo(address, service, &hints, &found))
		die("not an address: %s port %ld", address, port);
	connection->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connection->fd < 0 || connect(connection->fd, found->ai_addr, found->ai_addrlen) ||
	    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->fd, &event))
		die("cannot connect to %s port %ld", address, port);
	freeaddrinfo(found);
}

static uint64_t percentile_ns(const struct load *load, unsigned int percent)
{
	uint64_t wanted = load->requests * percent / 100, seen = 0, slot;

	for (slot = 0; slot < SLOTS - 1; slot++) {
		seen += load->slots[slot];
		if (seen > wanted)
			break;
	}
	return (slot + 1) * SLOT_NS;
}

int main(int argc, char **argv)
{
	struct load load = { .request = "", .epoll = epoll_create1(EPOLL_CLOEXEC) };
	const char *address = "127.0.0.1";
	long port = 0, connections = 32, response_bytes = 0, ms = 1000, i;
	uint64_t begin;
	const struct option_row options[] = {
		{ "address", NULL, &address, "of the server" },
		{ "port", &port, NULL, "of the server" },
		{ "connections", &connections, NULL, "each with one request at a time" },
		{ "request", NULL, &load.request, "what to send" },
		{ "response-bytes", &response_bytes, NULL, "size of every answer" },
		{ "ms", &ms, NULL, "how long to send" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	if (!*load.request || !response_bytes || response_bytes > MESSAGE_MAX)
		die("a request, and answers of 1 to %d bytes, are needed", MESSAGE_MAX);
	load.request_bytes = strlen(load.request);
	load.response_bytes = (size_t)response_bytes;
	load.connections = calloc((size_t)connections, sizeof(*load.connections));
	load.slots = calloc(SLOTS, sizeof(*load.slots));
	if (!load.connections || !load.slots || load.epoll < 0)
		die("no memory");
	for (load.count = 0; load.count < connections; load.count++)
		connection_open(&load, &load.connections[load.count], address, port);
	begin = clock_now_ns();
	load.end_ns = begin + (uint64_t)ms * 1000 * NS_PER_US;
	load_run(&load);
	stat_print("elapsed_ns", clock_now_ns() - begin);
	stat_print("requests", load.requests);
	stat_print("response_p50_ns", percentile_ns(&load, 50));
	stat_print("response_p99_ns", percentile_ns(&load, 99));
	command_done();
	for (i = 0; i < connections; i++)
		close(load.connections[i].fd);
	return 0;
}
