/* SPDX-License-Identifier: Apache-2.0 */
#include "exposition/series.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"

#define DECIMAL_BYTES 24 /* a uint64_t, a point */
#define VALUE_BYTES (2 * DECIMAL_BYTES) /* seconds, a point, nanoseconds */
#define LABELS_MAX_BYTES 65536 /* of one row; paths and names are far shorter */
#define INF_LE "+Inf"

struct series {
	struct buffer *out;
	void (*head)(struct buffer *out, const struct metric_family *family);
	struct buffer labels; /* of the row at hand, as written between the braces */
	size_t name_len; /* of the family at hand, as below */
	struct {
		char text[SERIES_LE_BYTES];
		size_t len;
	} le[METRIC_BOUNDS_MAX];
};

/* Writes the digits of @value backwards from @end; at least @width of them. Returns the start. */
static char *series_digits(uint64_t value, int width, char *end)
{
	while (value || width > 0) {
		*--end = (char)('0' + value % 10);
		value /= 10;
		width--;
	}
	return end;
}

/* 5^n / 10^n is 2^-n, digit for digit. */
static void series_format_negative_power(int n, char *le)
{
	char digits[DECIMAL_BYTES], *end = digits + sizeof(digits), *start;
	uint64_t five = 1;
	int len, exponent;

	for (int i = 0; i < n; i++)
		five *= 5;
	start = series_digits(five, 1, end);
	len = (int)(end - start);
	exponent = len - 1 - n;
	if (exponent < -4)
		snprintf(le, SERIES_LE_BYTES, "%c%s%.*se-%02d", *start, len > 1 ? "." : "", len - 1,
			 start + 1, -exponent);
	else
		snprintf(le, SERIES_LE_BYTES, "0.%.*s%.*s", -exponent - 1, "000", len, start);
}

void series_format_le(int exponent, char le[static SERIES_LE_BYTES])
{
	if (exponent < 0)
		series_format_negative_power(-exponent, le);
	else
		snprintf(le, SERIES_LE_BYTES, "%llu.0", 1ULL << exponent);
}

/* The put functions write at @at, where there is room, and return what is behind it. */
static char *put_bytes(char *at, const char *bytes, size_t len)
{
	memcpy(at, bytes, len);
	return at + len;
}

static char *put_integer(char *at, uint64_t value)
{
	char digits[DECIMAL_BYTES], *end = digits + sizeof(digits);
	char *start = series_digits(value, 1, end);

	return put_bytes(at, start, (size_t)(end - start));
}

/*
 * Nanoseconds as seconds: the exact decimal, which every reader rounds to the nearest double. Up to
 * 15 digits (11 days) it is also the shortest that reads back the same.
 */
static char *put_seconds(char *at, uint64_t ns)
{
	uint64_t fraction = ns % NS_PER_S;

	at = put_integer(at, ns / NS_PER_S);
	if (!fraction)
		return at;
	*at++ = '.';
	series_digits(fraction, 9, at + 9);
	for (at += 9; at[-1] == '0';)
		at--;
	return at;
}

static char *put_value(char *at, struct metric_value value)
{
	return value.unit == METRIC_NANOSECONDS ? put_seconds(at, value.amount)
						: put_integer(at, value.amount);
}

/* Length of the run at the start of @value that needs no escape. */
static size_t series_plain_length(const char *value)
{
	size_t len = 0, step;

	for (; value[len]; len += step) {
		if (value[len] == '"' || value[len] == '\\')
			break;
		step = utf8_length(value + len);
		if (!step)
			break;
	}
	return len;
}

static void series_label_value(struct buffer *out, const char *value)
{
	for (;; value++) {
		size_t len = series_plain_length(value);

		buffer_append(out, value, len);
		value += len;
		if (!*value)
			return;
		if (*value == '\\' || *value == '"')
			buffer_append(out, (const char[]){ '\\', *value }, 2);
		else
			buffer_text(out, UTF8_REPLACEMENT);
	}
}

/* Once for all lines of a row, of which a histogram has many. */
static void series_labels(struct series *series, const struct metric_labels *labels)
{
	struct buffer *out = &series->labels;

	out->len = 0;
	for (size_t i = 0; i < labels->len; i++) {
		if (i)
			buffer_char(out, ',');
		buffer_text(out, labels->label[i].name);
		buffer_append(out, "=\"", 2);
		series_label_value(out, labels->label[i].value);
		buffer_char(out, '"');
	}
	if (out->error && !series->out->error)
		series->out->error = out->error;
}

/* {name="value",...} or nothing; @le, if @le_len is not 0, is one more label. */
static char *series_put_labels(const struct series *series, char *at, const char *le, size_t le_len)
{
	if (!series->labels.len && !le_len)
		return at;
	*at++ = '{';
	if (series->labels.len)
		at = put_bytes(at, series->labels.data, series->labels.len);
	if (le_len) {
		at = series->labels.len ? put_bytes(at, ",le=\"", 5) : put_bytes(at, "le=\"", 4);
		at = put_bytes(at, le, le_len);
		*at++ = '"';
	}
	*at++ = '}';
	return at;
}

static void series_line(struct series *series, const char *name, const char *suffix, const char *le,
			size_t le_len, struct metric_value value)
{
	size_t suffix_len = strlen(suffix);
	size_t max = series->name_len + suffix_len + series->labels.len + le_len + VALUE_BYTES +
		     sizeof("{,le=\"\"} \n");
	char *at = buffer_reserve(series->out, max);

	if (!at)
		return;
	at = put_bytes(at, name, series->name_len);
	at = put_bytes(at, suffix, suffix_len);
	at = series_put_labels(series, at, le, le_len);
	*at++ = ' ';
	at = put_value(at, value);
	*at++ = '\n';
	series->out->len = (size_t)(at - series->out->data);
}

static void series_family(void *arg, const struct metric_family *family)
{
	struct series *series = arg;

	series->name_len = strlen(family->name);
	for (size_t i = 0; i < family->bounds_len; i++) {
		series_format_le(family->bounds[i], series->le[i].text);
		series->le[i].len = strlen(series->le[i].text);
	}
	series->head(series->out, family);
}

static void series_sample(void *arg, const struct metric_family *family,
			  const struct metric_labels *labels, struct metric_value value)
{
	struct series *series = arg;

	series_labels(series, labels);
	series_line(series, family->name, "", NULL, 0, value);
}

static void series_histogram(void *arg, const struct metric_family *family,
			     const struct metric_labels *labels,
			     const struct metric_histogram *histogram)
{
	struct metric_value count = { .amount = histogram->count, .unit = METRIC_ONES };
	struct metric_value sum = { .amount = histogram->hist->sum_ns, .unit = METRIC_NANOSECONDS };
	struct series *series = arg;

	series_labels(series, labels);
	for (size_t i = 0; i < histogram->bounds_len; i++) {
		struct metric_value below = { .amount = histogram->cumulative[i] };

		series_line(series, family->name, "_bucket", series->le[i].text, series->le[i].len,
			    below);
	}
	series_line(series, family->name, "_bucket", INF_LE, sizeof(INF_LE) - 1, count);
	series_line(series, family->name, "_sum", NULL, 0, sum);
	series_line(series, family->name, "_count", NULL, 0, count);
}

int series_render(const struct snapshot *snapshot,
		  void (*head)(struct buffer *out, const struct metric_family *family),
		  struct buffer *out)
{
	static const struct metrics_writer writer = {
		.family = series_family,
		.sample = series_sample,
		.histogram = series_histogram,
	};
	struct series series = { out, head, .labels = BUFFER_INIT(LABELS_MAX_BYTES) };

	metrics_walk(snapshot, &writer, &series);
	buffer_free(&series.labels);
	return out->error;
}
