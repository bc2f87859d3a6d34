/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exposition writers: the input becomes a snapshot of a few services with any names and any
 * numbers. With FUZZ_WRITE=DIRECTORY in the environment the pages are written there, for the
 * parsers of others to read (tests/fuzz/parse.py).
 */
#include "base/buffer.h"
#include "base/utf8.h"
#include "exposition/openmetrics.h"
#include "exposition/protobuf.h"
#include "exposition/text.h"
#include "fuzz.h"
#include "proto/metric_family.pb-c.h"
#include "model/snapshot.h"

#define ROWS 3
#define NAME_BYTES 64
#define PAGE_BYTES ((size_t)1 << 24)

struct input {
	const uint8_t *data;
	size_t len;
};

struct page {
	struct workload_row workloads[ROWS];
	struct endpoint_row endpoints[ROWS];
	struct pool_row pools[ROWS];
	struct probe_row probe;
	struct map_row map;
	struct drop_row drop;
	struct collector_row collector;
	struct build_row build;
	struct process_row process;
	char names[8 * ROWS][NAME_BYTES + 1];
	size_t names_len;
	struct snapshot snapshot;
};

/* Mostly small numbers, as each costs as many bytes of the input as its first byte says. */
static uint64_t take_number(struct input *input)
{
	size_t bytes = input->len ? 1 + *input->data % 8 : 0;
	uint64_t number = 0;

	if (bytes > input->len)
		bytes = input->len;
	memcpy(&number, input->data, bytes);
	input->data += bytes;
	input->len -= bytes;
	return number;
}

/* What makes the rows of a snapshot keeps them apart, also after the repair of their names. */
static const char *take_name(struct input *input, struct page *page)
{
	char *name = page->names[page->names_len];
	size_t len = input->len ? *input->data % NAME_BYTES : 0;

	if (len > input->len)
		len = input->len;
	memcpy(name, input->data, len);
	name[len] = '\0';
	name[0] = (char)('a' + page->names_len++);
	input->data += len;
	input->len -= len;
	return name;
}

/* @out: 64 bits each, whatever they are called. */
static void take_numbers(struct input *input, void *out, size_t len)
{
	for (size_t i = 0; i < len && input->len; i++) {
		uint64_t number = take_number(input);

		memcpy((char *)out + i * sizeof(number), &number, sizeof(number));
	}
}

/* Few enough observations that their number and their sum do not wrap. */
static void take_hist(struct input *input, struct hist *hist)
{
	size_t wanted = input->len ? *input->data % 8 : 0;

	for (size_t i = 0; i < wanted && input->len; i++) {
		uint64_t ns = take_number(input) >> 4;

		hist->bucket[hist_index(ns)] += 1 + ns % 1000;
		hist->sum_ns += ns;
	}
}

static void fill_endpoint(struct input *input, struct page *page, size_t i)
{
	struct endpoint_row *row = &page->endpoints[i];

	row->workload = page->workloads[i].workload;
	row->port = take_name(input, page);
	take_numbers(input, row->abandoned, STAGES);
	take_numbers(input, row->accepted, IO_MODELS);
	row->received_bytes = take_number(input);
	row->oldest_queued_ns = take_number(input);
	row->oldest_in_service_ns = take_number(input);
	row->connections = take_number(input);
	take_hist(input, &row->queue);
	take_hist(input, &row->service);
	take_hist(input, &row->duration);
	take_hist(input, &row->accept_wait);
}

static void fill_pool(struct input *input, struct page *page, size_t i)
{
	struct pool_row *row = &page->pools[i];

	row->workload = page->workloads[i].workload;
	row->pool = take_name(input, page);
	row->role = i % 2 ? "serving" : "other";
	take_numbers(input, row->threads, STATES);
	take_numbers(input, row->thread_ns, STATES);
	row->started = take_number(input);
	take_hist(input, &row->mutex);
	take_hist(input, &row->runqueue);
}

static void fill_self(struct input *input, struct page *page)
{
	page->probe = (struct probe_row){ "requests", "probe", take_number(input) % 2 };
	page->map = (struct map_row){ "map", take_number(input), take_number(input) };
	page->drop = (struct drop_row){ "reason", take_number(input) };
	page->collector = (struct collector_row){ "requests", take_number(input), 1 };
	page->build = (struct build_row){ "1", "2", "3", "4" };
	page->process.cpu_ns = take_number(input);
	page->process.start_ns = take_number(input);
}

static void fill_page(struct input *input, struct page *page)
{
	for (size_t i = 0; i < ROWS; i++) {
		page->workloads[i] = (struct workload_row){
			.workload = take_name(input, page),
			.exe = take_name(input, page),
			.runtime = "native",
			.unit = take_name(input, page),
			.container = take_name(input, page),
			.user = take_name(input, page),
			.processes = take_number(input),
		};
		fill_endpoint(input, page, i);
		fill_pool(input, page, i);
	}
	fill_self(input, page);
	page->snapshot = (struct snapshot){
		.workloads = page->workloads,
		.workloads_len = ROWS,
		.endpoints = page->endpoints,
		.endpoints_len = ROWS,
		.pools = page->pools,
		.pools_len = ROWS,
		.probes = &page->probe,
		.probes_len = 1,
		.maps = &page->map,
		.maps_len = 1,
		.drops = &page->drop,
		.drops_len = 1,
		.collectors = &page->collector,
		.collectors_len = 1,
		.build = &page->build,
		.process = &page->process,
	};
}

static void write_page(const struct buffer *out, const char *name)
{
	const char *directory = getenv("FUZZ_WRITE");
	char path[4096];
	FILE *file;

	if (!directory)
		return;
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	MUST(file && fwrite(out->data, 1, out->len, file) == out->len && fclose(file) == 0);
}

static void check_text(const struct buffer *out, const char *end)
{
	MUST(out->len >= strlen(end));
	MUST(memcmp(out->data + out->len - strlen(end), end, strlen(end)) == 0);
	MUST(!memchr(out->data, '\0', out->len));
	for (size_t i = 0; i < out->len;) {
		/* Of control characters only the one that ends a line is on a page. */
		size_t len = out->data[i] == '\n' ? 1 : utf8_length(out->data + i);

		MUST(len > 0 && i + len <= out->len);
		i += len;
	}
}

static size_t varint(const uint8_t *data, size_t len, uint64_t *value)
{
	size_t i = 0;

	*value = 0;
	do {
		MUST(i < len && i < 10);
		*value |= (uint64_t)(data[i] & 0x7f) << 7 * i;
	} while (data[i++] & 0x80);
	return i;
}

static void check_protobuf(const struct buffer *out)
{
	const uint8_t *data = (const uint8_t *)out->data;
	uint64_t bytes;

	for (size_t at = 0; at < out->len; at += bytes) {
		Io__Prometheus__Client__MetricFamily *family;

		at += varint(data + at, out->len - at, &bytes);
		MUST(bytes <= out->len - at);
		family = io__prometheus__client__metric_family__unpack(NULL, bytes, data + at);
		MUST(family && family->name && *family->name && family->n_metric);
		io__prometheus__client__metric_family__free_unpacked(family, NULL);
	}
}

static void render_all(const struct snapshot *snapshot)
{
	struct buffer text = BUFFER_INIT(PAGE_BYTES), openmetrics = BUFFER_INIT(PAGE_BYTES),
		      protobuf = BUFFER_INIT(PAGE_BYTES);

	MUST(exposition_text_render(snapshot, &text) == 0);
	MUST(exposition_openmetrics_render(snapshot, &openmetrics) == 0);
	MUST(exposition_protobuf_render(snapshot, &protobuf) == 0);
	write_page(&text, "text");
	write_page(&openmetrics, "openmetrics");
	buffer_char(&text, '\0'); /* what reads characters needs an end */
	text.len--;
	check_text(&text, "\n");
	buffer_char(&openmetrics, '\0');
	openmetrics.len--;
	check_text(&openmetrics, "\n# EOF\n");
	check_protobuf(&protobuf);
	buffer_free(&text);
	buffer_free(&openmetrics);
	buffer_free(&protobuf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct page *page = calloc(1, sizeof(*page));
	struct input input = { data, len };

	MUST(page);
	fill_page(&input, page);
	render_all(&page->snapshot);
	free(page);
	return 0;
}
