/* SPDX-License-Identifier: Apache-2.0 */
#include "exposition/protobuf.h"

#include <math.h>
#include <string.h>

#include "metric_family.pb-c.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "model/metrics.h"

typedef Io__Prometheus__Client__MetricFamily pb_family;
typedef Io__Prometheus__Client__Metric pb_metric;
typedef Io__Prometheus__Client__LabelPair pb_label;
typedef Io__Prometheus__Client__Gauge pb_gauge;
typedef Io__Prometheus__Client__Counter pb_counter;
typedef Io__Prometheus__Client__Bucket pb_bucket;
typedef Io__Prometheus__Client__BucketSpan pb_span;
typedef Io__Prometheus__Client__Histogram pb_histogram;

#define VARINT_BYTES_MAX 10
/* Up to so many empty buckets cost less as zeros in a span than as the beginning of another. */
#define GAP_MAX 2
#define SPANS_MAX (HIST_BUCKETS / (GAP_MAX + 2) + 1)

/*
 * One message of each kind, linked once and filled again for each metric. A family is written as
 * many messages, its description and one for each metric: concatenated they are one, because a
 * message's fields may come in any order and repeated ones add up.
 */
struct protobuf {
	struct buffer *out;
	struct buffer family; /* the family at hand: its length comes before it */
	struct buffer text; /* label values that had to be repaired */
	pb_family message;
	pb_metric metric, *metrics[1];
	pb_gauge gauge;
	pb_counter counter;
	pb_histogram histogram;
	pb_label label[METRIC_LABELS_MAX], *labels[METRIC_LABELS_MAX];
	pb_bucket bucket[METRIC_BOUNDS_MAX], *buckets[METRIC_BOUNDS_MAX];
	pb_span span[SPANS_MAX], *spans[SPANS_MAX];
	int64_t deltas[HIST_BUCKETS];
};

static void protobuf_init(struct protobuf *protobuf, struct buffer *out)
{
	protobuf->out = out;
	protobuf->family = (struct buffer)BUFFER_INIT(out->max);
	protobuf->text = (struct buffer)BUFFER_INIT(out->max);
	io__prometheus__client__metric__init(&protobuf->metric);
	io__prometheus__client__gauge__init(&protobuf->gauge);
	io__prometheus__client__counter__init(&protobuf->counter);
	io__prometheus__client__histogram__init(&protobuf->histogram);
	protobuf->metrics[0] = &protobuf->metric;
	protobuf->metric.label = protobuf->labels;
	protobuf->histogram.bucket = protobuf->buckets;
	protobuf->histogram.positive_span = protobuf->spans;
	protobuf->histogram.positive_delta = protobuf->deltas;
	protobuf->histogram.schema = HIST_SCHEMA;
	protobuf->histogram.zero_threshold = ldexp(1, HIST_MIN_EXP);
	for (size_t i = 0; i < METRIC_LABELS_MAX; i++) {
		io__prometheus__client__label_pair__init(&protobuf->label[i]);
		protobuf->labels[i] = &protobuf->label[i];
	}
	for (size_t i = 0; i < METRIC_BOUNDS_MAX; i++) {
		io__prometheus__client__bucket__init(&protobuf->bucket[i]);
		protobuf->buckets[i] = &protobuf->bucket[i];
	}
	for (size_t i = 0; i < SPANS_MAX; i++) {
		io__prometheus__client__bucket_span__init(&protobuf->span[i]);
		protobuf->spans[i] = &protobuf->span[i];
	}
}

static void protobuf_free(struct protobuf *protobuf)
{
	buffer_free(&protobuf->family);
	buffer_free(&protobuf->text);
}

static void protobuf_varint(struct buffer *out, size_t value)
{
	char bytes[VARINT_BYTES_MAX];
	size_t len = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[len++] = (char)(value | 0x80);
	bytes[len++] = (char)value;
	buffer_append(out, bytes, len);
}

/* Writes the family at hand, if there is one, and forgets it. */
static void protobuf_flush(struct protobuf *protobuf)
{
	struct buffer *family = &protobuf->family;

	if (!protobuf->out->error)
		protobuf->out->error = family->error ? family->error : protobuf->text.error;
	if (!family->len)
		return;
	protobuf_varint(protobuf->out, family->len);
	buffer_append(protobuf->out, family->data, family->len);
	family->len = 0;
}

static void protobuf_pack(struct protobuf *protobuf, const pb_family *message)
{
	size_t len = io__prometheus__client__metric_family__get_packed_size(message);
	char *at = buffer_reserve(&protobuf->family, len);

	if (at)
		protobuf->family.len += io__prometheus__client__metric_family__pack(message,
										    (uint8_t *)at);
}

static void protobuf_family(void *arg, const struct metric_family *family)
{
	static const Io__Prometheus__Client__MetricType types[] = {
		[METRIC_COUNTER] = IO__PROMETHEUS__CLIENT__METRIC_TYPE__COUNTER,
		[METRIC_GAUGE] = IO__PROMETHEUS__CLIENT__METRIC_TYPE__GAUGE,
		[METRIC_INFO] = IO__PROMETHEUS__CLIENT__METRIC_TYPE__GAUGE,
		[METRIC_HISTOGRAM] = IO__PROMETHEUS__CLIENT__METRIC_TYPE__HISTOGRAM,
	};
	struct protobuf *protobuf = arg;
	pb_family description = IO__PROMETHEUS__CLIENT__METRIC_FAMILY__INIT;

	protobuf_flush(protobuf);
	description.name = (char *)(uintptr_t)family->name;
	description.help = (char *)(uintptr_t)family->help;
	description.type = types[family->type];
	protobuf_pack(protobuf, &description);
	for (size_t i = 0; i < family->bounds_len; i++)
		protobuf->bucket[i].upper_bound = ldexp(1, family->bounds[i]);
}

static size_t labels_repaired_max(const struct metric_labels *labels)
{
	size_t max = 0;

	for (size_t i = 0; i < labels->len; i++)
		max += strlen(labels->label[i].value) * (sizeof(UTF8_REPLACEMENT) - 1) + 1;
	return max;
}

/* Values that are UTF-8 are used where they are; others are copied to @text, which has room. */
static char *label_text(char **text, const char *value)
{
	char *copy = *text;

	if (utf8_is_valid(value))
		return (char *)(uintptr_t)value;
	utf8_copy(copy, strlen(value) * (sizeof(UTF8_REPLACEMENT) - 1) + 1, value);
	*text += strlen(copy) + 1;
	return copy;
}

static void protobuf_labels(struct protobuf *protobuf, const struct metric_labels *labels)
{
	char *text = buffer_reserve(&protobuf->text, labels_repaired_max(labels));

	protobuf->metric.n_label = text ? labels->len : 0;
	for (size_t i = 0; i < protobuf->metric.n_label; i++) {
		protobuf->label[i].name = (char *)(uintptr_t)labels->label[i].name;
		protobuf->label[i].value = label_text(&text, labels->label[i].value);
	}
}

/* Up to 2^53 ns (104 days) the double nearest to the exact decimal, as a reader of text has it. */
static double protobuf_value(struct metric_value value)
{
	return value.unit == METRIC_NANOSECONDS ? (double)value.amount / 1e9 : (double)value.amount;
}

/* Writes one metric, which has the value that is given, with @labels. */
static void protobuf_metric(struct protobuf *protobuf, const struct metric_labels *labels,
			    pb_gauge *gauge, pb_counter *counter, pb_histogram *histogram)
{
	pb_family message = IO__PROMETHEUS__CLIENT__METRIC_FAMILY__INIT;

	protobuf_labels(protobuf, labels);
	protobuf->metric.gauge = gauge;
	protobuf->metric.counter = counter;
	protobuf->metric.histogram = histogram;
	message.n_metric = 1;
	message.metric = protobuf->metrics;
	protobuf_pack(protobuf, &message);
}

static void protobuf_sample(void *arg, const struct metric_family *family,
			    const struct metric_labels *labels, struct metric_value value)
{
	struct protobuf *protobuf = arg;

	if (family->type == METRIC_COUNTER) {
		protobuf->counter.value = protobuf_value(value);
		protobuf_metric(protobuf, labels, NULL, &protobuf->counter, NULL);
	} else {
		protobuf->gauge.value = protobuf_value(value);
		protobuf_metric(protobuf, labels, &protobuf->gauge, NULL, NULL);
	}
}

static void native_add_bucket(pb_histogram *native, uint64_t count, uint64_t *before)
{
	native->positive_delta[native->n_positive_delta++] = (int64_t)(count - *before);
	native->positive_span[native->n_positive_span - 1]->length++;
	*before = count;
}

/*
 * The cells of @hist but the first, as runs of buckets. Cell i is native bucket HIST_MIN_INDEX +
 * i - 1, also the last one, of what is over the maximum. Without any bucket there is an empty run:
 * it tells a native histogram from a classic one.
 */
static void native_set_buckets(pb_histogram *native, const struct hist *hist)
{
	uint64_t before = 0;
	size_t next = 1; /* the cell behind the last run */

	native->n_positive_span = 0;
	native->n_positive_delta = 0;
	for (size_t cell = 1; cell < HIST_BUCKETS; cell++) {
		if (!hist->bucket[cell])
			continue;
		if (!native->n_positive_span || cell - next > GAP_MAX) {
			pb_span *span = native->positive_span[native->n_positive_span];

			span->offset = (int32_t)(cell - next) +
				       (native->n_positive_span ? 0 : HIST_MIN_INDEX);
			span->length = 0;
			native->n_positive_span++;
			next = cell;
		}
		for (; next <= cell; next++)
			native_add_bucket(native, hist->bucket[next], &before);
	}
	if (native->n_positive_span)
		return;
	native->n_positive_span = 1;
	native->positive_span[0]->offset = 0;
	native->positive_span[0]->length = 0;
}

static void protobuf_histogram(void *arg, const struct metric_family *family,
			       const struct metric_labels *labels,
			       const struct metric_histogram *histogram)
{
	struct protobuf *protobuf = arg;
	pb_histogram *message = &protobuf->histogram;

	(void)family;
	message->sample_count = histogram->count;
	message->sample_sum = protobuf_value(
		(struct metric_value){ histogram->hist->sum_ns, METRIC_NANOSECONDS });
	message->n_bucket = histogram->bounds_len;
	for (size_t i = 0; i < histogram->bounds_len; i++)
		protobuf->bucket[i].cumulative_count = histogram->cumulative[i];
	message->zero_count = histogram->hist->bucket[0];
	native_set_buckets(message, histogram->hist);
	protobuf_metric(protobuf, labels, NULL, NULL, message);
}

int exposition_protobuf_render(const struct snapshot *snapshot, struct buffer *out)
{
	static const struct metrics_writer writer = {
		.family = protobuf_family,
		.sample = protobuf_sample,
		.histogram = protobuf_histogram,
	};
	_cleanup_(protobuf_free) struct protobuf protobuf;

	protobuf_init(&protobuf, out);
	metrics_walk(snapshot, &writer, &protobuf);
	protobuf_flush(&protobuf);
	return out->error;
}
