/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perf events of CPUs (perf_event_open(2)) that run a program: a clock, or so many page faults.
 * They are opened at the start, when that is allowed, and stand still until they are told to run,
 * which takes no privilege. A CPU that comes online later has none.
 */
#ifndef WORKLOAD_KERNEL_PERF_EVENTS_H
#define WORKLOAD_KERNEL_PERF_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#define PERF_PROGRAMS_MAX 48
#define PERF_CLOCK_HZ 99U /* not a divisor of what services do in steps of 10 ms */

struct bpf_program;

/* What a program is run by. */
enum perf_source {
	PERF_CLOCK, /* so many times a second, unless the CPU is idle then */
	PERF_MINOR_FAULTS, /* one of `each`, */
	PERF_MAJOR_FAULTS, /* or of those that waited for something to be read */
	PERF_SOURCES
};

struct perf_program {
	const char *program;
	enum perf_source source;
	unsigned int each; /* of faults */
};

/* Of one program, one event for each CPU that was online when it was attached. */
struct perf_opened {
	int *events; /* descriptors; owned */
	size_t len;
};

/* Zeroed: none. */
struct perf_events {
	const struct perf_program *programs[PERF_PROGRAMS_MAX];
	struct perf_opened opened[PERF_PROGRAMS_MAX];
	size_t len;
};

/* Adds a program, which is borrowed, of at most PERF_PROGRAMS_MAX. */
void perf_events_add(struct perf_events *events, const struct perf_program *program);

/* Whether a program of this name was added. */
bool perf_events_have(const struct perf_events *events, const char *program);

/* Opens those of @program, which was added, on all CPUs, of which there are at most @cpus. 0 or
 * -errno. */
int perf_events_attach(struct perf_events *events, const struct bpf_program *program, size_t cpus);
void perf_events_detach(struct perf_events *events, const char *program);
void perf_events_detach_all(struct perf_events *events);

/* Lets those of that program run, or stand still. 0; -ENOENT: it is not attached; -errno: not all
 * of them run, and so none, or not all stand still. */
int perf_events_run(const struct perf_events *events, const char *program, bool run);

#endif
