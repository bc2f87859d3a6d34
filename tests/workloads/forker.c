// SPDX-License-Identifier: Apache-2.0
/*
 * A prefork service: the parent listens and forks, its children accept on the listener they
 * inherited and serve one connection at a time. Children die with their parent.
 *
 * --turns: a child accepts while it holds a lock that all share, as Apache's do.
 * --supervise: the parent waits for its children instead of commands.
 * --helpers: further children that have closed the listener and wait on a pipe, each with one more
 * thread: both named helper-N.
 *
 * Commands: `stats` (pids of the children), `quit`.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "workload.h"

#define CHILDREN_MAX 64

struct forker {
	int listener;
	pthread_mutex_t *turn; /* in memory that all share; NULL: none */
	long request_bytes;
	long response_bytes;
	long service_us;
	long children;
	long helpers;
	long turns;
	long supervise;
};

static pthread_mutex_t *turn_new(void)
{
	pthread_mutex_t *turn = mmap(NULL, sizeof(*turn), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attributes;

	if (turn == MAP_FAILED || pthread_mutexattr_init(&attributes) ||
	    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) ||
	    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT) ||
	    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) ||
	    pthread_mutex_init(turn, &attributes))
		die("a shared mutex");
	return turn;
}

static int connection_take(const struct forker *forker)
{
	int fd;

	if (forker->turn)
		pthread_mutex_lock(forker->turn);
	fd = accept(forker->listener, NULL, NULL);
	if (forker->turn)
		pthread_mutex_unlock(forker->turn);
	return fd;
}

__attribute__((noreturn)) static void child_run(const struct forker *forker)
{
	char *buffer = calloc(1, MESSAGE_MAX);

	if (!buffer)
		die("calloc");
	for (;;) {
		int fd = connection_take(forker);

		if (fd < 0)
			die("accept");
		while (io_read_all(fd, buffer, (size_t)forker->request_bytes)) {
			clock_sleep_us(forker->service_us);
			if (!io_write_all(fd, buffer, (size_t)forker->response_bytes))
				break;
		}
		close(fd);
	}
}

static void *helper_wait(void *number)
{
	int ends[2];
	char byte;

	thread_name_set("helper", *(const long *)number);
	if (pipe(ends) || read(ends[0], &byte, 1) < 0)
		die("pipe");
	return NULL;
}

__attribute__((noreturn)) static void helper_run(const struct forker *forker, long number)
{
	close(forker->listener);
	thread_start(helper_wait, &number);
	helper_wait(&number);
	exit(1);
}

static pid_t child_start(const struct forker *forker, long number)
{
	pid_t child = fork_tied();

	if (child)
		return child;
	if (number < forker->children)
		child_run(forker);
	helper_run(forker, number);
}

int main(int argc, char **argv)
{
	struct forker forker = { .request_bytes = 100, .response_bytes = 100, .children = 4 };
	const char *address = "127.0.0.1";
	long port = 0, backlog = 128, i;
	pid_t pids[CHILDREN_MAX];
	char line[64];
	const struct option_row options[] = {
		{ "address", NULL, &address, "to listen on" },
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "backlog", &backlog, NULL, "of the listener" },
		{ "children", &forker.children, NULL, "processes that serve" },
		{ "helpers", &forker.helpers, NULL, "processes that do not" },
		{ "turns", &forker.turns, NULL, "1: children take turns to accept" },
		{ "supervise", &forker.supervise, NULL, "1: wait for the children" },
		{ "service-us", &forker.service_us, NULL, "sleep per request" },
		{ "request-bytes", &forker.request_bytes, NULL, "size of every request" },
		{ "response-bytes", &forker.response_bytes, NULL, "size of every response" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	if (forker.children + forker.helpers > CHILDREN_MAX || forker.request_bytes > MESSAGE_MAX ||
	    forker.response_bytes > MESSAGE_MAX)
		die("too many children or bytes");
	forker.turn = forker.turns ? turn_new() : NULL;
	forker.listener = listen_open(address, port, backlog);
	for (i = 0; i < forker.children + forker.helpers; i++)
		pids[i] = child_start(&forker, i);
	ready_print(forker.listener);
	if (forker.supervise && wait(NULL) > 0)
		die("a child has ended");
	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		for (i = 0; i < forker.children + forker.helpers; i++)
			printf("child%ld %d\n", i, pids[i]);
		command_done();
	}
	for (i = 0; i < forker.children + forker.helpers; i++)
		kill(pids[i], SIGTERM);
	return 0;
}
