// SPDX-License-Identifier: Apache-2.0
/*
 * A server as those that fork for each connection: its children burn CPU time and end, one after
 * the other: main, children_run, child_run, child_burn. It burns none itself.
 *
 * --ms: how long each lives.
 *
 * Commands: `stats` (children: that have ended; cpu_us: CPU time of them, user and system, by the
 * kernel's count), `burn N` (N children), `run N PROGRAM` (N children that execute it, as burner
 * with --quiet=1), `quit`.
 */
#include <sys/wait.h>

#include "workload.h"

/* Neither inlined, nor a jump where it calls last. */
#define FRAME __attribute__((noinline, noclone))
#define RETURNS __asm__ volatile("" ::: "memory")

static uint64_t children, cpu_us, rounds;
static long child_ms = 100;

FRAME static void child_burn(void)
{
	rounds_compute(rounds);
	RETURNS;
}

FRAME static void child_run(void)
{
	for (;;)
		child_burn();
	RETURNS;
}

static void child_execute(char *program)
{
	char quiet[] = "--quiet=1";
	char *const arguments[] = { program, quiet, NULL };

	execv(program, arguments);
	die("%s", program);
}

static pid_t child_start(char *program)
{
	pid_t child = fork_tied();

	if (child)
		return child;
	if (program)
		child_execute(program);
	child_run();
	return 0;
}

FRAME static void children_run(long count, char *program)
{
	while (count-- > 0) {
		pid_t child = child_start(program);
		struct rusage usage;

		clock_sleep_us(1000 * child_ms);
		kill(child, SIGKILL);
		if (wait4(child, NULL, 0, &usage) != child)
			die("wait4");
		children++;
		cpu_us += (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
			  (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	}
	RETURNS;
}

int main(int argc, char **argv)
{
	long port = 0;
	const struct option_row options[] = {
		{ "port", &port, NULL, "to listen on; 0 for any free one" },
		{ "ms", &child_ms, NULL, "for which a child lives" },
		{ 0 },
	};
	char line[4096], program[4096];
	long count;

	options_parse(options, argc, argv);
	rounds = rounds_of_us(1000);
	ready_print(listen_open("127.0.0.1", port, 1));
	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (sscanf(line, "burn %ld", &count) == 1)
			children_run(count, NULL);
		else if (sscanf(line, "run %ld %4095s", &count, program) == 2)
			children_run(count, program);
		stat_print("children", children);
		stat_print("cpu_us", cpu_us);
		command_done();
	}
	return 0;
}
