/* SPDX-License-Identifier: Apache-2.0 */
/* Written by the writer, read again by protobuf-c, and held against the snapshot. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "metric_family.pb-c.h"

#include "exposition/protobuf.h"
#include "model/metrics.h"
#include "sample.h"

#define FAMILIES_MAX 64

typedef Io__Prometheus__Client__MetricFamily pb_family;
typedef Io__Prometheus__Client__Histogram pb_histogram;

struct exposition {
	struct buffer bytes;
	pb_family *families[FAMILIES_MAX];
	size_t families_len;
};

static size_t read_varint(const char **at)
{
	size_t value = 0;

	for (int shift = 0;; shift += 7) {
		unsigned char byte = (unsigned char)*(*at)++;

		value |= (size_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
}

static void exposition_read(struct exposition *exposition, const struct snapshot *snapshot)
{
	const char *at, *end;

	*exposition = (struct exposition){ .bytes = BUFFER_INIT(EXPOSITION_MAX_BYTES) };
	cr_assert_eq(exposition_protobuf_render(snapshot, &exposition->bytes), 0);
	at = exposition->bytes.data;
	end = at + exposition->bytes.len;
	while (at < end) {
		size_t len = read_varint(&at);
		pb_family *family;

		cr_assert_leq(len, (size_t)(end - at));
		family = io__prometheus__client__metric_family__unpack(NULL, len, (const void *)at);
		cr_assert_not_null(family);
		cr_assert_lt(exposition->families_len, FAMILIES_MAX);
		exposition->families[exposition->families_len++] = family;
		at += len;
	}
}

static void exposition_free(struct exposition *exposition)
{
	for (size_t i = 0; i < exposition->families_len; i++)
		io__prometheus__client__metric_family__free_unpacked(exposition->families[i], NULL);
	buffer_free(&exposition->bytes);
}

static const pb_family *find(const struct exposition *exposition, const char *name)
{
	for (size_t i = 0; i < exposition->families_len; i++) {
		if (strcmp(exposition->families[i]->name, name) == 0)
			return exposition->families[i];
	}
	cr_assert_fail("no family %s", name);
	abort();
}

/* The histogram of queue times of the one endpoint in the snapshot. */
static const pb_histogram *queue_of(const struct exposition *exposition)
{
	const pb_family *family = find(exposition, "workload_request_queue_seconds");

	cr_assert_eq(family->n_metric, 1);
	cr_assert_not_null(family->metric[0]->histogram);
	return family->metric[0]->histogram;
}

static void read_queue(struct exposition *exposition, const struct hist *hist)
{
	struct endpoint_row row = { .workload = "w", .port = "1", .queue = *hist };
	struct snapshot snapshot = { .endpoints = &row, .endpoints_len = 1 };

	exposition_read(exposition, &snapshot);
}

Test(protobuf, a_snapshot_renders_as_in_the_golden_file)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(EXPOSITION_MAX_BYTES);
	struct snapshot snapshot = sample_snapshot();

	cr_assert_eq(exposition_protobuf_render(&snapshot, &out), 0);
	expect_golden(&out, "exposition.protobuf");
}

/* Every family, metric, label and value, as the walk hands them to any writer. */
struct comparison {
	const struct exposition *exposition;
	size_t family; /* behind the one at hand */
	size_t metric; /* of that family */
};

static const Io__Prometheus__Client__Metric *next_metric(struct comparison *comparison,
							 const struct metric_labels *labels)
{
	const pb_family *family = comparison->exposition->families[comparison->family - 1];
	const Io__Prometheus__Client__Metric *metric;

	cr_assert_lt(comparison->metric, family->n_metric);
	metric = family->metric[comparison->metric++];
	cr_assert_eq(metric->n_label, labels->len);
	for (size_t i = 0; i < labels->len; i++) {
		cr_expect_str_eq(metric->label[i]->name, labels->label[i].name);
		if (!strchr(labels->label[i].value, '\xff'))
			cr_expect_str_eq(metric->label[i]->value, labels->label[i].value);
	}
	return metric;
}

static void compare_family(void *arg, const struct metric_family *family)
{
	struct comparison *comparison = arg;
	const pb_family *read;

	if (comparison->family)
		cr_expect_eq(comparison->metric,
			     comparison->exposition->families[comparison->family - 1]->n_metric);
	cr_assert_lt(comparison->family, comparison->exposition->families_len);
	read = comparison->exposition->families[comparison->family++];
	comparison->metric = 0;
	cr_expect_str_eq(read->name, family->name);
	cr_expect_str_eq(read->help, family->help);
}

static void compare_sample(void *arg, const struct metric_family *family,
			   const struct metric_labels *labels, struct metric_value value)
{
	const Io__Prometheus__Client__Metric *metric = next_metric(arg, labels);
	double expected = (double)value.amount / (value.unit == METRIC_NANOSECONDS ? 1e9 : 1);

	cr_expect_null(metric->histogram);
	if (family->type == METRIC_COUNTER)
		cr_expect_eq(metric->counter->value, expected, "%s", family->name);
	else
		cr_expect_eq(metric->gauge->value, expected, "%s", family->name);
}

static void compare_histogram(void *arg, const struct metric_family *family,
			      const struct metric_labels *labels,
			      const struct metric_histogram *histogram)
{
	const pb_histogram *read = next_metric(arg, labels)->histogram;

	cr_assert_not_null(read);
	cr_expect_eq(read->sample_count, histogram->count);
	cr_expect_eq(read->sample_sum, (double)histogram->hist->sum_ns / 1e9);
	cr_assert_eq(read->n_bucket, histogram->bounds_len, "%s", family->name);
	for (size_t i = 0; i < read->n_bucket; i++) {
		cr_expect_eq(read->bucket[i]->cumulative_count, histogram->cumulative[i]);
		cr_expect_eq(read->bucket[i]->upper_bound, ldexp(1, family->bounds[i]));
	}
}

Test(protobuf, tells_all_that_the_walk_tells)
{
	static const struct metrics_writer comparer = {
		.family = compare_family,
		.sample = compare_sample,
		.histogram = compare_histogram,
	};
	_cleanup_(exposition_free) struct exposition exposition;
	struct snapshot snapshot = sample_snapshot();
	struct comparison comparison = { .exposition = &exposition };

	exposition_read(&exposition, &snapshot);
	metrics_walk(&snapshot, &comparer, &comparison);
	cr_expect_eq(comparison.family, exposition.families_len);
	cr_expect_gt(comparison.family, 30);
}

/* Reads the native buckets of @native into @cells, as struct hist has them. */
static void unfold(const pb_histogram *native, uint64_t cells[HIST_BUCKETS])
{
	int32_t index = 0;
	int64_t count = 0;
	size_t delta = 0;

	memset(cells, 0, HIST_BUCKETS * sizeof(*cells));
	cells[0] = native->zero_count;
	for (size_t s = 0; s < native->n_positive_span; s++) {
		index += native->positive_span[s]->offset;
		for (uint32_t i = 0; i < native->positive_span[s]->length; i++, index++) {
			cr_assert_lt(delta, native->n_positive_delta);
			count += native->positive_delta[delta++];
			cr_assert_geq(index, HIST_MIN_INDEX);
			cr_assert_leq(index, HIST_MAX_INDEX + 1);
			cells[index - HIST_MIN_INDEX + 1] = (uint64_t)count;
		}
	}
	cr_expect_eq(delta, native->n_positive_delta);
}

static void expect_same_buckets(const struct hist *hist)
{
	_cleanup_(exposition_free) struct exposition exposition;
	const pb_histogram *native;
	uint64_t cells[HIST_BUCKETS], count = 0;

	read_queue(&exposition, hist);
	native = queue_of(&exposition);
	unfold(native, cells);
	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		cr_expect_eq(cells[i], hist->bucket[i], "cell %zu", i);
		count += hist->bucket[i];
	}
	cr_expect_eq(native->sample_count, count);
	cr_expect_eq(native->schema, 2);
	cr_expect_eq(native->zero_threshold, ldexp(1, -20));
}

Test(protobuf, native_buckets_are_the_kernels)
{
	struct hist hist = { 0 };

	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		memset(&hist, 0, sizeof(hist));
		hist.bucket[i] = 7;
		expect_same_buckets(&hist);
	}
	for (size_t i = 0; i < HIST_BUCKETS; i++)
		hist.bucket[i] = i * i + 1;
	expect_same_buckets(&hist);
}

Test(protobuf, gaps_of_any_length_are_kept)
{
	srandom(1);
	for (int round = 0; round < 200; round++) {
		struct hist hist = { 0 };

		for (size_t i = (size_t)random() % 8; i < HIST_BUCKETS;
		     i += 1 + (size_t)random() % 8)
			hist.bucket[i] = (uint64_t)random();
		expect_same_buckets(&hist);
	}
	for (size_t step = 1; step < 8; step++) {
		struct hist hist = { 0 };

		for (size_t i = 0; i < HIST_BUCKETS; i += step)
			hist.bucket[i] = step;
		expect_same_buckets(&hist);
	}
}

/* Bucket i holds what is over 2^((i-1)/4) s and not over 2^(i/4) s. */
Test(protobuf, a_value_is_in_the_bucket_around_it)
{
	static const uint64_t values_ns[] = { 954,       1000,         1000000,
					      999999999, 1000000000,   1000000001,
					      50000000,  127999999999, 128000000000 };

	for (size_t i = 0; i < sizeof(values_ns) / sizeof(*values_ns); i++) {
		_cleanup_(exposition_free) struct exposition exposition;
		struct hist hist = { 0 };
		const pb_histogram *native;
		double seconds = (double)values_ns[i] / 1e9;
		int32_t index;

		observe(&hist, values_ns[i]);
		read_queue(&exposition, &hist);
		native = queue_of(&exposition);
		cr_assert_eq(native->n_positive_span, 1);
		index = native->positive_span[0]->offset;
		cr_expect_gt(seconds, exp2((index - 1) / 4.0));
		cr_expect_leq(seconds, exp2(index / 4.0));
	}
}

Test(protobuf, what_is_over_the_last_bucket_is_in_the_one_above)
{
	_cleanup_(exposition_free) struct exposition exposition;
	struct hist hist = { 0 };

	observe(&hist, 129000000000);
	observe(&hist, 100000000000000);
	read_queue(&exposition, &hist);
	cr_expect_eq(queue_of(&exposition)->positive_span[0]->offset, HIST_MAX_INDEX + 1);
	cr_expect_eq(queue_of(&exposition)->positive_delta[0], 2);
	cr_expect_eq(queue_of(&exposition)->sample_count, 2);
}

Test(protobuf, an_empty_histogram_is_still_a_native_one)
{
	_cleanup_(exposition_free) struct exposition exposition;
	struct hist hist = { 0 };

	read_queue(&exposition, &hist);
	cr_assert_eq(queue_of(&exposition)->n_positive_span, 1);
	cr_expect_eq(queue_of(&exposition)->positive_span[0]->offset, 0);
	cr_expect_eq(queue_of(&exposition)->positive_span[0]->length, 0);
	cr_expect_eq(queue_of(&exposition)->n_positive_delta, 0);
}

/* Text shows the waits of most pools without buckets: here they are native all the same. */
Test(protobuf, a_histogram_without_classic_buckets_is_a_native_one)
{
	_cleanup_(exposition_free) struct exposition exposition;
	struct pool_row row = { .workload = "w", .pool = "p", .role = "other" };
	struct snapshot snapshot = { .pools = &row, .pools_len = 1 };
	const pb_histogram *mutex;

	exposition_read(&exposition, &snapshot);
	mutex = find(&exposition, "workload_mutex_wait_seconds")->metric[0]->histogram;
	cr_expect_eq(mutex->n_bucket, 0);
	cr_expect_eq(mutex->n_positive_span, 1);
	cr_expect_eq(mutex->schema, 2);
}

Test(protobuf, labels_are_utf8_and_otherwise_what_they_were)
{
	_cleanup_(exposition_free) struct exposition exposition;
	struct workload_row row = { .workload = "a\xff\"\\\n\xc3\xa9\xc3",
				    .exe = "",
				    .unit = "\xe2\x82" };
	struct snapshot snapshot = { .workloads = &row, .workloads_len = 1 };
	const Io__Prometheus__Client__Metric *info;

	exposition_read(&exposition, &snapshot);
	info = find(&exposition, "workload_info")->metric[0];
	cr_expect_str_eq(info->label[0]->value,
			 "a\xef\xbf\xbd\"\\\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
	cr_expect_str_eq(info->label[1]->value, "");
	cr_expect_str_eq(info->label[3]->value, "\xef\xbf\xbd\xef\xbf\xbd");
}

Test(protobuf, nothing_is_nothing)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(100);
	struct snapshot snapshot = { 0 };

	cr_expect_eq(exposition_protobuf_render(&snapshot, &out), 0);
	cr_expect_eq(out.len, 0);
}

Test(protobuf, what_does_not_fit_is_an_error)
{
	struct snapshot snapshot = sample_snapshot();

	for (size_t max = 0; max < 2000; max += 100) {
		_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(max);

		cr_expect_eq(exposition_protobuf_render(&snapshot, &out), -ENOBUFS);
	}
}
