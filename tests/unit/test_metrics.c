/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "model/metrics.h"

/* Remembers the samples of one family. */
struct recorder {
	const char *family;
	int begun;
	size_t len;
	struct {
		struct metric_value value;
		char last_label[32];
		struct metric_histogram histogram;
	} sample[16];
	const signed char *bounds;
	size_t bounds_len;
};

static void record_family(void *arg, const struct metric_family *family)
{
	struct recorder *recorder = arg;

	if (strcmp(family->name, recorder->family) != 0)
		return;
	recorder->begun++;
	recorder->bounds = family->bounds;
	recorder->bounds_len = family->bounds_len;
}

static void record_sample(void *arg, const struct metric_family *family,
			  const struct metric_labels *labels, struct metric_value value)
{
	struct recorder *recorder = arg;
	size_t i = recorder->len;

	if (strcmp(family->name, recorder->family) != 0)
		return;
	recorder->sample[i].value = value;
	if (labels->len)
		snprintf(recorder->sample[i].last_label, sizeof(recorder->sample[i].last_label),
			 "%s=%s", labels->label[labels->len - 1].name,
			 labels->label[labels->len - 1].value);
	recorder->len++;
}

static void record_histogram(void *arg, const struct metric_family *family,
			     const struct metric_labels *labels,
			     const struct metric_histogram *histogram)
{
	struct recorder *recorder = arg;

	(void)labels;
	if (strcmp(family->name, recorder->family) == 0)
		recorder->sample[recorder->len++].histogram = *histogram;
}

static struct recorder record(const char *family, const struct snapshot *snapshot)
{
	static const struct metrics_writer writer = {
		.family = record_family,
		.sample = record_sample,
		.histogram = record_histogram,
	};
	struct recorder recorder = { .family = family };

	metrics_walk(snapshot, &writer, &recorder);
	return recorder;
}

/* floor(2^exponent * 1e9), without floating point. */
static uint64_t power_ns(int exponent)
{
	return exponent < 0 ? 1000000000ULL >> -exponent : 1000000000ULL << exponent;
}

static struct snapshot with_endpoint(const struct endpoint_row *row)
{
	return (struct snapshot){ .endpoints = row, .endpoints_len = 1 };
}

static struct snapshot with_pool(const struct pool_row *row)
{
	return (struct snapshot){ .pools = row, .pools_len = 1 };
}

Test(metrics, an_empty_snapshot_has_no_families)
{
	struct snapshot snapshot = { 0 };
	struct recorder recorder = record("process_open_fds", &snapshot);

	cr_expect_eq(recorder.begun, 0);
	cr_expect_eq(record("workload_connections", &snapshot).begun, 0);
}

Test(metrics, a_bucket_holds_what_is_not_above_its_bound)
{
	struct endpoint_row row = { .workload = "w", .port = "1" };
	struct snapshot snapshot = with_endpoint(&row);
	struct recorder recorder = record("workload_request_queue_seconds", &snapshot);

	cr_assert_gt(recorder.bounds_len, 0);
	for (size_t i = 0; i < recorder.bounds_len; i++) {
		uint64_t bound_ns = power_ns(recorder.bounds[i]);
		struct recorder at;

		memset(&row.queue, 0, sizeof(row.queue));
		row.queue.bucket[hist_index(bound_ns)] = 1;
		row.queue.bucket[hist_index(bound_ns + 1)] = 2;
		at = record("workload_request_queue_seconds", &snapshot);
		cr_expect_eq(at.sample[0].histogram.cumulative[i], 1, "2^%d s", at.bounds[i]);
		cr_expect_eq(at.sample[0].histogram.count, 3);
		if (i)
			cr_expect_eq(at.sample[0].histogram.cumulative[i - 1], 0);
	}
}

Test(metrics, count_includes_the_overflow_bucket)
{
	struct endpoint_row row = { .workload = "w", .port = "1" };
	struct snapshot snapshot = with_endpoint(&row);
	struct recorder recorder;

	row.service.bucket[0] = 1;
	row.service.bucket[HIST_BUCKETS - 1] = 5;
	recorder = record("workload_request_service_seconds", &snapshot);
	cr_expect_eq(recorder.sample[0].histogram.cumulative[0], 1);
	cr_expect_eq(recorder.sample[0].histogram.cumulative[recorder.bounds_len - 1], 1);
	cr_expect_eq(recorder.sample[0].histogram.count, 6);
}

Test(metrics, bounds_are_ascending_and_within_the_histogram)
{
	static const char *const families[] = {
		"workload_request_queue_seconds",    "workload_request_service_seconds",
		"workload_request_duration_seconds", "workload_mutex_wait_seconds",
		"workload_runqueue_wait_seconds",    "workload_disk_wait_seconds",
	};
	struct endpoint_row endpoint = { .workload = "w", .port = "1" };
	struct pool_row pool = { .workload = "w", .pool = "p", .role = "other" };
	struct snapshot snapshot = with_endpoint(&endpoint);

	snapshot.pools = &pool;
	snapshot.pools_len = 1;
	for (size_t f = 0; f < sizeof(families) / sizeof(*families); f++) {
		struct recorder recorder = record(families[f], &snapshot);

		cr_assert_eq(recorder.begun, 1, "%s", families[f]);
		cr_expect_geq(recorder.bounds[0], HIST_MIN_EXP);
		cr_expect_leq(recorder.bounds[recorder.bounds_len - 1], HIST_MAX_EXP);
		for (size_t i = 1; i < recorder.bounds_len; i++)
			cr_expect_lt(recorder.bounds[i - 1], recorder.bounds[i]);
	}
}

Test(metrics, waits_that_never_happened_have_no_buckets)
{
	struct pool_row row = { .workload = "w", .pool = "p", .role = "other" };
	struct snapshot snapshot = with_pool(&row);

	cr_expect_eq(
		record("workload_mutex_wait_seconds", &snapshot).sample[0].histogram.bounds_len, 0);
	row.mutex.bucket[HIST_BUCKETS - 1] = 1;
	cr_expect_gt(
		record("workload_mutex_wait_seconds", &snapshot).sample[0].histogram.bounds_len, 0);
}

Test(metrics, requests_that_never_happened_have_all_buckets)
{
	struct endpoint_row row = { .workload = "w", .port = "1" };
	struct snapshot snapshot = with_endpoint(&row);
	struct recorder recorder = record("workload_request_queue_seconds", &snapshot);

	cr_expect_eq(recorder.sample[0].histogram.bounds_len, recorder.bounds_len);
}

Test(metrics, every_state_is_shown_with_its_own_name)
{
	static const char *const labels[] = { "state=running", "state=runnable", "state=lock",
					      "state=disk",    "state=network",  "state=wait",
					      "state=sleep",   "state=idle" };
	struct pool_row row = { .workload = "w", .pool = "p", .role = "other" };
	struct snapshot snapshot = with_pool(&row);
	struct recorder recorder;

	for (size_t i = 0; i < STATES; i++)
		row.thread_ns[i] = i;
	recorder = record("workload_thread_seconds_total", &snapshot);
	cr_assert_eq(recorder.len, STATES);
	for (size_t i = 0; i < STATES; i++) {
		cr_expect_str_eq(recorder.sample[i].last_label, labels[i]);
		cr_expect_eq(recorder.sample[i].value.amount, i);
		cr_expect_eq(recorder.sample[i].value.unit, METRIC_NANOSECONDS);
	}
}

Test(metrics, both_stages_are_shown_at_zero)
{
	struct endpoint_row row = { .workload = "w", .port = "1", .abandoned = { 0, 3 } };
	struct snapshot snapshot = with_endpoint(&row);
	struct recorder recorder = record("workload_requests_abandoned_total", &snapshot);

	cr_assert_eq(recorder.len, 2);
	cr_expect_str_eq(recorder.sample[0].last_label, "stage=queued");
	cr_expect_str_eq(recorder.sample[1].last_label, "stage=service");
	cr_expect_eq(recorder.sample[1].value.amount, 3);
}

Test(metrics, only_io_models_that_were_seen_are_shown)
{
	struct endpoint_row row = { .workload = "w", .port = "1" };
	struct snapshot snapshot = with_endpoint(&row);
	struct recorder recorder;

	cr_expect_eq(record("workload_connections_accepted_total", &snapshot).begun, 0);
	row.accepted[IO_EPOLL] = 7;
	recorder = record("workload_connections_accepted_total", &snapshot);
	cr_assert_eq(recorder.len, 1);
	cr_expect_str_eq(recorder.sample[0].last_label, "io_model=epoll");
	cr_expect_eq(recorder.sample[0].value.amount, 7);
}

Test(metrics, an_info_is_one)
{
	struct workload_row row = { .workload = "w", .user = "1000" };
	struct snapshot snapshot = { .workloads = &row, .workloads_len = 1 };
	struct recorder recorder = record("workload_info", &snapshot);

	cr_assert_eq(recorder.len, 1);
	cr_expect_eq(recorder.sample[0].value.amount, 1);
	cr_expect_str_eq(recorder.sample[0].last_label, "user=1000");
}
