/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks: programs of section perf_event, which each CPU runs so many times a second, unless it is
 * idle then. They are opened at the start, when that is allowed, and stand still until they are
 * told to run, which takes no privilege. A CPU that comes online later has none.
 */
#ifndef WORKLOAD_KERNEL_CLOCKS_H
#define WORKLOAD_KERNEL_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#define CLOCKS_MAX 2U
#define CLOCK_HZ 99U /* not a divisor of what services do in steps of 10 ms */

struct bpf_program;

struct clock {
	const char *program; /* borrowed */
	int *events; /* owned; a descriptor for each CPU that was online */
	size_t len;
};

/* Zeroed: none. */
struct clocks {
	struct clock clocks[CLOCKS_MAX];
	size_t len;
};

/* Whether a program with this section is run by a clock. */
bool clock_is_for(const char *section);

/* Opens the clock of @program on all CPUs, of which there are at most @cpus. 0 or -errno. */
int clocks_attach(struct clocks *clocks, const struct bpf_program *program, size_t cpus);
void clocks_detach(struct clocks *clocks, const char *program);
void clocks_detach_all(struct clocks *clocks);

/* Lets the clock of that program run, or stand still. 0; -ENOENT; -errno. */
int clocks_run(const struct clocks *clocks, const char *program, bool run);

#endif
