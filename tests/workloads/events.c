// SPDX-License-Identifier: Apache-2.0
/*
 * Makes one kind of event again and again, --rounds times, as fast as it can, so that its cost can
 * be told from that of others.
 *
 * --mode=switch: two threads on one core pass a byte to and fro through pipes: two switches and two
 *   wake-ups a round.
 * --mode=socket: one thread sends itself a byte on a TCP connection that no listener has made (both
 *   ends are the same socket): a send, an arrival and a read of an untracked socket a round.
 * --mode=request: one thread is client and server of a connection of its own: the same two times a
 *   round, once on the client's and once on the server's side.
 * --listen=1: it listens, and its threads are a workload's; request does so in any case.
 *
 * Prints `ready PORT`, runs on the command `start`, and answers with `elapsed_ns`.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>

#include "workload.h"

struct events {
	long rounds;
	int listener; /* -1: none */
	int to[2];
	int fro[2];
};

static void byte_pass(int from, int to)
{
	char byte = 0;

	if (from >= 0 && read(from, &byte, 1) != 1)
		die("read");
	if (to >= 0 && write(to, &byte, 1) != 1)
		die("write");
}

static void *echo_main(void *argument)
{
	struct events *events = argument;
	long i;

	for (i = 0; i < events->rounds; i++)
		byte_pass(events->to[0], events->fro[1]);
	return NULL;
}

static void core_keep(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((unsigned int)sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		die("sched_setaffinity");
}

static void run_switch(struct events *events)
{
	pthread_t echo;
	long i;

	core_keep();
	if (pipe(events->to) || pipe(events->fro))
		die("pipe");
	echo = thread_start(echo_main, events);
	for (i = 0; i < events->rounds; i++) {
		byte_pass(-1, events->to[1]);
		byte_pass(events->fro[0], -1);
	}
	pthread_join(echo, NULL);
}

static int socket_new(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		die("socket");
	return fd;
}

static void socket_connect(int fd, uint64_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		die("connect");
}

/* A connect to the address that a socket is bound to is a simultaneous open with itself. */
static void run_socket(struct events *events)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket_new();
	long i;

	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		die("bind");
	socket_connect(fd, socket_port(fd));
	for (i = 0; i < events->rounds; i++) {
		byte_pass(-1, fd);
		byte_pass(fd, -1);
	}
	close(fd);
}

static void run_request(struct events *events)
{
	int client = socket_new(), server, on = 1;
	long i;

	socket_connect(client, socket_port(events->listener));
	server = accept(events->listener, NULL, NULL);
	if (server < 0 || setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		die("accept");
	for (i = 0; i < events->rounds; i++) {
		byte_pass(-1, client);
		byte_pass(server, server);
		byte_pass(client, -1);
	}
	close(client);
	close(server);
}

static void commands_obey(struct events *events, void (*run)(struct events *events))
{
	char line[64];

	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		uint64_t begin = clock_now_ns();

		if (!strcmp(line, "start"))
			run(events);
		stat_print("elapsed_ns", clock_now_ns() - begin);
		command_done();
	}
}

int main(int argc, char **argv)
{
	struct events events = { .rounds = 100000, .listener = -1 };
	void (*run)(struct events * events) = run_switch;
	const char *mode = "switch";
	long port = 0, listens = 0;
	const struct option_row options[] = {
		{ "mode", NULL, &mode, "switch, socket or request" },
		{ "rounds", &events.rounds, NULL, "how often" },
		{ "listen", &listens, NULL, "1: be a workload" },
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	if (!strcmp(mode, "socket"))
		run = run_socket;
	else if (!strcmp(mode, "request"))
		run = run_request;
	else if (strcmp(mode, "switch"))
		die("unknown mode %s", mode);
	if (listens || run == run_request)
		events.listener = listen_open("127.0.0.1", port, 16);
	if (events.listener < 0)
		puts("ready 0");
	else
		ready_print(events.listener);
	fflush(stdout);
	commands_obey(&events, run);
	exit(0);
}
