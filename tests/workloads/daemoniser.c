// SPDX-License-Identifier: Apache-2.0
/*
 * A service that listens and then daemonises: twice its child goes on and its parent ends.
 *
 * --before-us: from listening to the first fork.
 * --linger-us: how long each parent outlives its fork.
 * --exec=PROGRAM: which the daemon then becomes, with `--inherited=FD` as its only argument.
 * --main-ends=1: the daemon's main thread ends and leaves the service to another one.
 *
 * Commands: `pid` (of the daemon), `quit`.
 */
#include <fcntl.h>

#include "workload.h"

struct daemoniser {
	int listener;
	long linger_us;
};

/* Returns in the child. */
static void fork_and_leave(const struct daemoniser *daemoniser)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (!child)
		return;
	clock_sleep_us(daemoniser->linger_us);
	_exit(0);
}

static void *serve(void *argument)
{
	const struct daemoniser *daemoniser = argument;
	char buffer[100];

	for (;;) {
		int fd = accept(daemoniser->listener, NULL, NULL);

		if (fd < 0)
			die("accept");
		while (io_read_all(fd, buffer, sizeof(buffer)) &&
		       io_write_all(fd, buffer, sizeof(buffer)))
			;
		close(fd);
	}
	return NULL;
}

static void *obey(void *argument)
{
	char line[64];

	(void)argument;
	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		stat_print("pid", (uint64_t)getpid());
		command_done();
	}
	exit(0);
}

static void become(const char *program, int listener)
{
	char inherited[32];

	snprintf(inherited, sizeof(inherited), "--inherited=%d", listener);
	if (fcntl(listener, F_SETFD, 0))
		die("fcntl");
	execl(program, program, inherited, (char *)NULL);
	die("exec");
}

int main(int argc, char **argv)
{
	static struct daemoniser daemoniser;
	long port = 0, before_us = 0, main_ends = 0;
	const char *exec = "";
	const struct option_row options[] = {
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "before-us", &before_us, NULL, "from listening to the first fork" },
		{ "linger-us", &daemoniser.linger_us, NULL, "how long a parent outlives its fork" },
		{ "exec", NULL, &exec, "program that the daemon becomes" },
		{ "main-ends", &main_ends, NULL, "1: the main thread of the daemon ends" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	daemoniser.listener = listen_open("127.0.0.1", port, 16);
	clock_sleep_us(before_us);
	fork_and_leave(&daemoniser);
	setsid();
	fork_and_leave(&daemoniser);
	if (*exec)
		become(exec, daemoniser.listener);
	thread_start(serve, &daemoniser);
	ready_print(daemoniser.listener);
	if (!main_ends)
		obey(NULL);
	thread_start(obey, NULL);
	pthread_exit(NULL);
}
