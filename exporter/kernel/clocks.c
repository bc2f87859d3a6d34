/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/clocks.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

bool clock_is_for(const char *section)
{
	return strcmp(section, "perf_event") == 0;
}

static int event_open(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = CLOCK_HZ,
		.freq = 1,
		.disabled = 1,
		.exclude_idle = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* libbpf's own way would also let the event run, and take a second descriptor. */
static int event_attach(struct clock *clock, int program, int cpu)
{
	_cleanup_(cleanup_close) int event = event_open(cpu);

	if (event == -ENODEV)
		return 0; /* the CPU is not online */
	if (event < 0)
		return event;
	if (ioctl(event, PERF_EVENT_IOC_SET_BPF, program))
		return -errno;
	clock->events[clock->len++] = TAKE_FD(event);
	return 0;
}

static void clock_close(struct clock *clock)
{
	for (size_t i = 0; i < clock->len; i++)
		close(clock->events[i]);
	free(clock->events);
	*clock = (struct clock){ 0 };
}

int clocks_attach(struct clocks *clocks, const struct bpf_program *program, size_t cpus)
{
	struct clock *clock = &clocks->clocks[clocks->len];
	int r = 0;

	if (clocks->len == CLOCKS_MAX)
		return -ENOSPC;
	clock->program = bpf_program__name(program);
	clock->events = calloc(cpus, sizeof(*clock->events));
	if (!clock->events)
		r = -ENOMEM;
	for (size_t cpu = 0; !r && cpu < cpus; cpu++)
		r = event_attach(clock, bpf_program__fd(program), (int)cpu);
	if (r)
		clock_close(clock);
	else
		clocks->len++;
	return r;
}

void clocks_detach(struct clocks *clocks, const char *program)
{
	for (size_t i = 0; i < clocks->len; i++) {
		if (strcmp(clocks->clocks[i].program, program) != 0)
			continue;
		clock_close(&clocks->clocks[i]);
		clocks->clocks[i] = clocks->clocks[--clocks->len];
		return;
	}
}

void clocks_detach_all(struct clocks *clocks)
{
	while (clocks->len)
		clock_close(&clocks->clocks[--clocks->len]);
}

int clocks_run(const struct clocks *clocks, const char *program, bool run)
{
	unsigned long request = run ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	int r = -ENOENT;

	for (size_t i = 0; i < clocks->len; i++) {
		const struct clock *clock = &clocks->clocks[i];

		if (strcmp(clock->program, program) != 0)
			continue;
		r = 0;
		for (size_t event = 0; event < clock->len; event++)
			if (ioctl(clock->events[event], request, 0))
				r = -errno;
	}
	return r;
}
