// SPDX-License-Identifier: Apache-2.0
/*
 * Burns CPU time in three functions, each by a further one: main, worker, burn_most, spin. Which of
 * the three is next is drawn for every slice, so that what samples it at even intervals does not
 * sample the same one: 60, 30 and 10 % of the time.
 *
 * --threads: further ones that burn in `worker`, called by `thread_run`. --idle: 1: main does not.
 * --rest-us: after each slice, of about SLICE_US: for tests that only want samples.
 * --quiet: 1: it does not listen, and so is a part of the workload that has started it.
 *
 * Commands: `stats` (most_ns, some_ns, least_ns: CPU time in each, by the clocks of the threads
 * that burn), `fork` (child: the pid of a process that burns as well, unmeasured, and ends with
 * this one), `quit`.
 */
#include <signal.h>

#include "workload.h"

#define SLICE_US 500 /* short beside the 10 ms between two samples */

/* Neither inlined, nor a jump where it calls last. */
#define FRAME __attribute__((noinline, noclone))
#define RETURNS __asm__ volatile("" ::: "memory")

enum { MOST, SOME, LEAST, FUNCTIONS };

static uint64_t burned_ns[FUNCTIONS];
static uint64_t slice_rounds;
static long rest_us;

FRAME static void spin(uint64_t rounds)
{
	rounds_compute(rounds);
	RETURNS;
}

FRAME static void burn_most(void)
{
	spin(slice_rounds);
	RETURNS;
}

/* Each has other rounds, or the compiler would make one function of all. */
FRAME static void burn_some(void)
{
	spin(slice_rounds + 1);
	RETURNS;
}

FRAME static void burn_least(void)
{
	spin(slice_rounds + 2);
	RETURNS;
}

static int function_draw(unsigned int *seed)
{
	int percent = rand_r(seed) % 100;

	return percent < 60 ? MOST : percent < 90 ? SOME : LEAST;
}

/* The function is called where its name can be read: not through a table. */
FRAME static void slice_burn(int function)
{
	if (function == MOST)
		burn_most();
	else if (function == SOME)
		burn_some();
	else
		burn_least();
	RETURNS;
}

FRAME static void worker(unsigned int seed)
{
	for (;;) {
		int function = function_draw(&seed);
		uint64_t begin = clock_thread_ns();

		slice_burn(function);
		__atomic_fetch_add(&burned_ns[function], clock_thread_ns() - begin,
				   __ATOMIC_RELAXED);
		if (rest_us)
			clock_sleep_us(rest_us);
	}
}

FRAME static void *thread_run(void *number)
{
	worker((unsigned int)(uintptr_t)number);
	RETURNS;
	return NULL;
}

static void child_fork(void)
{
	pid_t child = fork_tied();

	if (!child)
		worker(0);
	stat_print("child", (uint64_t)child);
}

static void become(char *program)
{
	char port[] = "--port=0";
	char *const arguments[] = { program, port, NULL };

	execv(program, arguments);
	die("%s", program);
}

static void *commands_obey(void *argument)
{
	static const char become_word[] = "become ";
	char line[4096];

	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (!strcmp(line, "fork"))
			child_fork();
		else if (!strncmp(line, become_word, strlen(become_word)))
			become(line + strlen(become_word));
		stat_print("most_ns", __atomic_load_n(&burned_ns[MOST], __ATOMIC_RELAXED));
		stat_print("some_ns", __atomic_load_n(&burned_ns[SOME], __ATOMIC_RELAXED));
		stat_print("least_ns", __atomic_load_n(&burned_ns[LEAST], __ATOMIC_RELAXED));
		command_done();
	}
	exit(0);
	return argument;
}

int main(int argc, char **argv)
{
	long port = 0, threads = 0, idle = 0, quiet = 0, i;
	const struct option_row options[] = {
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "threads", &threads, NULL, "that burn, beside main" },
		{ "rest-us", &rest_us, NULL, "after each slice" },
		{ "idle", &idle, NULL, "1: main does not burn" },
		{ "quiet", &quiet, NULL, "1: it neither listens nor says that it is ready" },
		{ 0 },
	};

	options_parse(options, argc, argv);
	slice_rounds = rounds_of_us(SLICE_US);
	if (!quiet)
		ready_print(listen_open("127.0.0.1", port, 1));
	for (i = 1; i <= threads; i++)
		thread_start(thread_run, (void *)(uintptr_t)i);
	if (idle)
		commands_obey(NULL);
	thread_start(commands_obey, NULL);
	worker(0);
	RETURNS;
	return 0;
}
