// SPDX-License-Identifier: Apache-2.0
/*
 * How long one CPU was not to be had: a thread of real-time priority wants it every 50 us, and is
 * late by as long as the kernel does something there that it does not interrupt.
 *
 * Commands: `reset` forgets what was, `worst` prints the longest wait since, `worst_ns`.
 */
#include <sched.h>
#include <stdatomic.h>

#include "workload.h"

#define STEP_NS 50000ULL

static _Atomic uint64_t worst_ns;

static void *watch(void *argument)
{
	for (;;) {
		uint64_t at = clock_now_ns() + STEP_NS, late;

		clock_sleep_until(at);
		late = clock_now_ns() - at;
		if (late > atomic_load(&worst_ns))
			atomic_store(&worst_ns, late);
	}
	return argument;
}

static void watch_on(long cpu)
{
	struct sched_param priority = { .sched_priority = 1 };
	pthread_t thread = thread_start(watch, NULL);
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET((int)cpu, &only);
	errno = pthread_setaffinity_np(thread, sizeof(only), &only);
	if (!errno)
		errno = pthread_setschedparam(thread, SCHED_FIFO, &priority);
	if (errno)
		die("cannot watch CPU %ld", cpu);
}

int main(int argc, char **argv)
{
	long port = 0, cpu = 0;
	const struct option_row options[] = {
		{ "port", &port, NULL, "of a listener that nobody needs" },
		{ "cpu", &cpu, NULL, "which one" },
		{ 0 },
	};
	char line[64];

	options_parse(options, argc, argv);
	watch_on(cpu);
	ready_print(listen_open("127.0.0.1", port, 1));
	while (command_next(line, sizeof(line)) && strcmp(line, "quit")) {
		if (!strcmp(line, "reset"))
			atomic_store(&worst_ns, 0);
		if (!strcmp(line, "worst"))
			stat_print("worst_ns", atomic_load(&worst_ns));
		command_done();
	}
	exit(0);
}
