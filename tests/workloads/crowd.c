// SPDX-License-Identifier: Apache-2.0
/*
 * Much of something: a service with many listeners, idle keep-alive connections or idle threads,
 * or one that starts threads or processes at a rate.
 *
 * --connections: each has had one request of one byte; a process of their own holds their other
 *   ends.
 * --per-second, --seconds: what the command `start` does: that many threads (or, with
 *   --processes=1, programs) one after the other that end at once. It prints how many were
 *   `started`, and `elapsed_ns`: a machine that is too slow takes longer.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "workload.h"

#define THREAD_STACK_BYTES 65536

struct crowd {
	long connections;
	long listeners;
	long threads;
	long per_second;
	long seconds;
	long processes;
	int port_pipe[2];
};

static void byte_exchange(int fd, bool first)
{
	char byte = 0;

	if ((first && !io_write_all(fd, &byte, 1)) || !io_read_all(fd, &byte, 1) ||
	    (!first && !io_write_all(fd, &byte, 1)))
		die("exchange");
}

/* The other ends of all connections; forked before the service listens, so it is no part of it. */
__attribute__((noreturn)) static void client_main(const struct crowd *crowd)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint16_t port;
	long i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(crowd->port_pipe[0], &port, sizeof(port)) != sizeof(port))
		exit(0);
	address.sin_port = htons(port);
	for (i = 0; i < crowd->connections; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
			die("connect");
		byte_exchange(fd, true);
	}
	for (;;)
		pause();
}

static void client_start(struct crowd *crowd)
{
	pid_t client;

	if (pipe(crowd->port_pipe))
		die("pipe");
	client = fork();
	if (client < 0)
		die("fork");
	if (!client)
		client_main(crowd);
}

static void connections_take(const struct crowd *crowd, int listener)
{
	const struct timeval moment = { .tv_usec = 1000 };
	uint16_t port = (uint16_t)socket_port(listener);
	long i;

	if (write(crowd->port_pipe[1], &port, sizeof(port)) != sizeof(port))
		die("pipe");
	for (i = 0; i < crowd->connections; i++) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			die("accept");
		byte_exchange(fd, false);
	}
	/* It waits for one more: a thread in another wait may yet be at the last answer. */
	if (setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof(moment)) ||
	    accept(listener, NULL, NULL) >= 0)
		die("accept");
}

static void *thread_idle(void *argument)
{
	thread_name_set("idle", 0);
	pause();
	return argument;
}

static void *thread_end(void *argument)
{
	return argument;
}

static pthread_t thread_small(void *(*main)(void *))
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, THREAD_STACK_BYTES);
	errno = pthread_create(&thread, &small, main, NULL);
	if (errno)
		die("pthread_create");
	pthread_attr_destroy(&small);
	return thread;
}

static void program_run(void)
{
	char *arguments[] = { (char *)"true", NULL }, *environment[] = { NULL };
	pid_t child;

	errno = posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environment);
	if (errno || waitpid(child, NULL, 0) != child)
		die("posix_spawn");
}

static void churn(const struct crowd *crowd)
{
	uint64_t begin = clock_now_ns();
	long count = crowd->per_second * crowd->seconds, i;

	for (i = 0; i < count; i++) {
		clock_sleep_until(begin + (uint64_t)i * NS_PER_S / (uint64_t)crowd->per_second);
		if (crowd->processes)
			program_run();
		else
			pthread_join(thread_small(thread_end), NULL);
	}
	stat_print("started", (uint64_t)count);
	stat_print("elapsed_ns", clock_now_ns() - begin);
}

int main(int argc, char **argv)
{
	struct crowd crowd = { .listeners = 1, .seconds = 1 };
	long port = 0, i;
	int first = -1;
	char line[64];
	const struct option_row options[] = {
		{ "port", &port, NULL, "of the first listener; 0 for any free one" },
		{ "listeners", &crowd.listeners, NULL, "how many" },
		{ "connections", &crowd.connections, NULL, "on the first listener" },
		{ "threads", &crowd.threads, NULL, "beside the main thread" },
		{ "per-second", &crowd.per_second, NULL, "starts" },
		{ "seconds", &crowd.seconds, NULL, "of starts" },
		{ "processes", &crowd.processes, NULL, "1: start programs, not threads" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	if (crowd.connections)
		client_start(&crowd);
	for (i = 0; i < crowd.listeners; i++) {
		int listener = listen_open("127.0.0.1", i ? 0 : port, 4096);

		if (!i)
			first = listener;
	}
	if (crowd.connections)
		connections_take(&crowd, first);
	for (i = 0; i < crowd.threads; i++)
		thread_small(thread_idle);
	ready_print(first);
	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (!strcmp(line, "start"))
			churn(&crowd);
		command_done();
	}
	exit(0);
}
