/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/perf_events.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

static const struct perf_event_attr sources[PERF_SOURCES] = {
	[PERF_CLOCK] = { .config = PERF_COUNT_SW_CPU_CLOCK,
			 .sample_freq = PERF_CLOCK_HZ,
			 .freq = 1,
			 .exclude_idle = 1 },
	/* No frequency: the kernel goes on with the period of a flood long after that. */
	[PERF_MINOR_FAULTS] = { .config = PERF_COUNT_SW_PAGE_FAULTS_MIN },
	[PERF_MAJOR_FAULTS] = { .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ },
};

static int program_row(const struct perf_events *events, const char *program)
{
	for (size_t i = 0; i < events->len; i++)
		if (!strcmp(program, events->programs[i]->program))
			return (int)i;
	return -1;
}

void perf_events_add(struct perf_events *events, const struct perf_program *program)
{
	events->programs[events->len++] = program;
}

bool perf_events_have(const struct perf_events *events, const char *program)
{
	return program_row(events, program) >= 0;
}

static int event_open(const struct perf_program *program, int cpu)
{
	struct perf_event_attr attr = sources[program->source];
	long fd;

	attr.type = PERF_TYPE_SOFTWARE;
	attr.size = sizeof(attr);
	attr.disabled = 1;
	if (program->each)
		attr.sample_period = program->each;
	fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* libbpf's own way would also let the event run, and take a second descriptor. */
static int event_attach(struct perf_opened *opened, const struct perf_program *program, int fd,
			int cpu)
{
	_cleanup_(cleanup_close) int event = event_open(program, cpu);

	if (event == -ENODEV)
		return 0; /* the CPU is not online */
	if (event < 0)
		return event;
	if (ioctl(event, PERF_EVENT_IOC_SET_BPF, fd))
		return -errno;
	opened->events[opened->len++] = TAKE_FD(event);
	return 0;
}

static void opened_close(struct perf_opened *opened)
{
	for (size_t i = 0; i < opened->len; i++)
		close(opened->events[i]);
	free(opened->events);
	*opened = (struct perf_opened){ 0 };
}

int perf_events_attach(struct perf_events *events, const struct bpf_program *program, size_t cpus)
{
	int row = program_row(events, bpf_program__name(program)), r = 0;
	struct perf_opened *opened;

	if (row < 0)
		return -EINVAL;
	opened = &events->opened[row];
	opened->events = calloc(cpus, sizeof(*opened->events));
	if (!opened->events)
		return -ENOMEM;
	for (size_t cpu = 0; !r && cpu < cpus; cpu++)
		r = event_attach(opened, events->programs[row], bpf_program__fd(program), (int)cpu);
	if (r)
		opened_close(opened);
	return r;
}

void perf_events_detach(struct perf_events *events, const char *program)
{
	int row = program_row(events, program);

	if (row >= 0)
		opened_close(&events->opened[row]);
}

void perf_events_detach_all(struct perf_events *events)
{
	for (size_t i = 0; i < events->len; i++)
		opened_close(&events->opened[i]);
}

static int opened_run(const struct perf_opened *opened, bool run)
{
	unsigned long request = run ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	int r = 0;

	for (size_t i = 0; i < opened->len; i++)
		if (ioctl(opened->events[i], request, 0))
			r = -errno;
	return r;
}

int perf_events_run(const struct perf_events *events, const char *program, bool run)
{
	int row = program_row(events, program), r;

	if (row < 0 || !events->opened[row].events)
		return -ENOENT;
	r = opened_run(&events->opened[row], run);
	if (r && run)
		opened_run(&events->opened[row], false);
	return r;
}
