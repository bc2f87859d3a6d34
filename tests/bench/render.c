/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rendering costs, by itself: a snapshot of 10 000 series, made by hand, in each format. The
 * median CPU time of many renderings, into a new buffer each time as in a scrape.
 *
 *	render [ROUNDS]
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "exposition/gzip.h"
#include "exposition/openmetrics.h"
#include "exposition/protobuf.h"
#include "exposition/text.h"

#define WORKLOADS 40
#define ENDPOINTS 80
#define POOLS 106
#define NAME_BYTES 48
#define ROUNDS_MAX 10000
#define BODY_MAX_BYTES ((size_t)64 << 20)

/* A machine of 40 services with two ports each, whose pools have waited for everything. */
struct machine {
	struct workload_row workloads[WORKLOADS];
	struct endpoint_row endpoints[ENDPOINTS];
	struct pool_row pools[POOLS];
	struct process_row process;
	struct build_row build;
	char names[WORKLOADS][NAME_BYTES];
	char ports[ENDPOINTS][NAME_BYTES];
	char pool_names[POOLS][NAME_BYTES];
};

/* Times from a microsecond to seconds, in every bucket between. */
static void fill_histogram(struct hist *hist)
{
	for (size_t i = 20; i < 80; i++) {
		hist->bucket[i] = (uint64_t)random() % 1000000;
		hist->sum_ns += hist->bucket[i] * 12345;
	}
}

static void fill_endpoint(struct machine *machine, size_t i)
{
	struct endpoint_row *row = &machine->endpoints[i];

	snprintf(machine->ports[i], NAME_BYTES, "%zu", 8000 + i);
	row->workload = machine->names[i % WORKLOADS];
	row->port = machine->ports[i];
	fill_histogram(&row->queue);
	fill_histogram(&row->service);
	fill_histogram(&row->duration);
	row->accepted[IO_EPOLL] = (uint64_t)random();
	row->received_bytes = row->sent_bytes = (uint64_t)random() << 20;
	row->connections = 100;
}

static void fill_pool(struct machine *machine, size_t i)
{
	struct pool_row *row = &machine->pools[i];

	snprintf(machine->pool_names[i], NAME_BYTES, "http-nio-#-ex%zu", i);
	row->workload = machine->names[i % WORKLOADS];
	row->pool = machine->pool_names[i];
	row->role = "serving";
	for (size_t state = 0; state < STATES; state++) {
		row->threads[state] = (uint64_t)random() % 100;
		row->thread_ns[state] = (uint64_t)random() * 1000003;
	}
	fill_histogram(&row->runqueue);
	fill_histogram(&row->mutex);
	fill_histogram(&row->disk);
}

static struct snapshot fill_machine(struct machine *machine)
{
	for (size_t i = 0; i < WORKLOADS; i++) {
		snprintf(machine->names[i], NAME_BYTES, "service-%zu.service", i);
		machine->workloads[i] = (struct workload_row){
			.workload = machine->names[i],
			.exe = "/usr/bin/service",
			.runtime = "jvm",
			.unit = machine->names[i],
			.container = "",
			.user = "0",
			.processes = 3,
		};
	}
	for (size_t i = 0; i < ENDPOINTS; i++)
		fill_endpoint(machine, i);
	for (size_t i = 0; i < POOLS; i++)
		fill_pool(machine, i);
	machine->build = (struct build_row){ "1.0.0", "0123456789ab", "main", "gcc" };
	return (struct snapshot){
		.workloads = machine->workloads,
		.workloads_len = WORKLOADS,
		.endpoints = machine->endpoints,
		.endpoints_len = ENDPOINTS,
		.pools = machine->pools,
		.pools_len = POOLS,
		.build = &machine->build,
		.process = &machine->process,
	};
}

static int render_compressed(const struct snapshot *snapshot, struct buffer *out)
{
	_cleanup_(buffer_free) struct buffer plain = BUFFER_INIT(BODY_MAX_BYTES);
	int r = exposition_text_render(snapshot, &plain);

	return r ? r : exposition_gzip(&plain, out);
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return (one > other) - (one < other);
}

static size_t count_series(const struct snapshot *snapshot)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(BODY_MAX_BYTES);
	size_t series = 0;

	exposition_text_render(snapshot, &out);
	for (size_t i = 0; i < out.len; i++)
		series += out.data[i] == '\n' && i + 1 < out.len && out.data[i + 1] != '#';
	return series;
}

/* Prints a line about @render. 0 or -errno. */
static int measure(const char *name, int (*render)(const struct snapshot *, struct buffer *),
		   const struct snapshot *snapshot, size_t rounds)
{
	static uint64_t took_ns[ROUNDS_MAX];
	size_t bytes = 0;

	for (size_t i = 0; i < rounds; i++) {
		_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(BODY_MAX_BYTES);
		uint64_t start_ns = cpu_ns();
		int r = render(snapshot, &out);

		if (r)
			return r;
		took_ns[i] = cpu_ns() - start_ns;
		bytes = out.len;
	}
	qsort(took_ns, rounds, sizeof(*took_ns), compare_ns);
	printf("%-14s %9zu bytes %7.3f ms median %7.3f ms worst\n", name, bytes,
	       (double)took_ns[rounds / 2] / 1e6, (double)took_ns[rounds - 1] / 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*render)(const struct snapshot *snapshot, struct buffer *out);
	} formats[] = {
		{ "text", exposition_text_render },
		{ "openmetrics", exposition_openmetrics_render },
		{ "protobuf", exposition_protobuf_render },
		{ "text, gzip", render_compressed },
	};
	static struct machine machine;
	struct snapshot snapshot = fill_machine(&machine);
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
	int r = rounds && rounds <= ROUNDS_MAX ? 0 : -EINVAL;

	printf("%zu series\n", count_series(&snapshot));
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats) && !r; i++)
		r = measure(formats[i].name, formats[i].render, &snapshot, rounds);
	if (r)
		fprintf(stderr, "render: %s\n", strerror(-r));
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
