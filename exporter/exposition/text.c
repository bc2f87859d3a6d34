/* SPDX-License-Identifier: Apache-2.0 */
#include "exposition/text.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "metrics.h"

#define NS_PER_SECOND 1000000000ULL
#define DECIMAL_BYTES 24 /* a uint64_t, a point */

struct text_writer {
	struct buffer *out;
	char le[METRIC_BOUNDS_MAX][TEXT_LE_BYTES]; /* of the family at hand */
};

/* Writes the digits of @value backwards from @end; at least @width of them. Returns the start. */
static char *text_digits(uint64_t value, int width, char *end)
{
	while (value || width > 0) {
		*--end = (char)('0' + value % 10);
		value /= 10;
		width--;
	}
	return end;
}

/* 5^n / 10^n is 2^-n, digit for digit. */
static void text_format_negative_power(int n, char *le)
{
	char digits[DECIMAL_BYTES], *end = digits + sizeof(digits), *start;
	uint64_t five = 1;
	int len, exponent;

	for (int i = 0; i < n; i++)
		five *= 5;
	start = text_digits(five, 1, end);
	len = (int)(end - start);
	exponent = len - 1 - n;
	if (exponent < -4)
		snprintf(le, TEXT_LE_BYTES, "%c%s%.*se-%02d", *start, len > 1 ? "." : "", len - 1,
			 start + 1, -exponent);
	else
		snprintf(le, TEXT_LE_BYTES, "0.%.*s%.*s", -exponent - 1, "000", len, start);
}

void exposition_text_le(int exponent, char le[static TEXT_LE_BYTES])
{
	if (exponent < 0)
		text_format_negative_power(-exponent, le);
	else
		snprintf(le, TEXT_LE_BYTES, "%llu.0", 1ULL << exponent);
}

static void text_integer(struct buffer *out, uint64_t value)
{
	char digits[DECIMAL_BYTES], *end = digits + sizeof(digits);
	char *start = text_digits(value, 1, end);

	buffer_append(out, start, (size_t)(end - start));
}

/*
 * Nanoseconds as seconds: the exact decimal, which every reader rounds to the nearest double. Up to
 * 15 digits (11 days) it is also the shortest that reads back the same.
 */
static void text_seconds(struct buffer *out, uint64_t ns)
{
	char digits[10], *end = digits + sizeof(digits);
	uint64_t fraction = ns % NS_PER_SECOND;

	text_integer(out, ns / NS_PER_SECOND);
	if (!fraction)
		return;
	text_digits(fraction, 9, end);
	digits[0] = '.';
	while (end[-1] == '0')
		end--;
	buffer_append(out, digits, (size_t)(end - digits));
}

static void text_value(struct buffer *out, struct metric_value value)
{
	if (value.unit == METRIC_NANOSECONDS)
		text_seconds(out, value.amount);
	else
		text_integer(out, value.amount);
}

/* Length of the run at the start of @value that needs no escape. */
static size_t text_plain_length(const char *value)
{
	size_t len = 0;

	while (value[len] && !strchr("\\\"\n", value[len])) {
		size_t step = utf8_length(value + len);

		if (!step)
			break;
		len += step;
	}
	return len;
}

static void text_label_value(struct buffer *out, const char *value)
{
	for (;; value++) {
		size_t len = text_plain_length(value);

		buffer_append(out, value, len);
		value += len;
		if (!*value)
			return;
		if (*value == '\n')
			buffer_text(out, "\\n");
		else if (*value == '\\' || *value == '"')
			buffer_append(out, (const char[]){ '\\', *value }, 2);
		else
			buffer_text(out, UTF8_REPLACEMENT);
	}
}

/* {name="value",...} or nothing; @le, if not NULL, is one more label. */
static void text_labels(struct buffer *out, const struct metric_labels *labels, const char *le)
{
	const char *separator = "{";

	for (size_t i = 0; i < labels->len; i++) {
		buffer_text(out, separator);
		buffer_text(out, labels->label[i].name);
		buffer_text(out, "=\"");
		text_label_value(out, labels->label[i].value);
		buffer_char(out, '"');
		separator = ",";
	}
	if (le) {
		buffer_text(out, separator);
		buffer_text(out, "le=\"");
		buffer_text(out, le);
		buffer_char(out, '"');
	}
	if (le || labels->len)
		buffer_char(out, '}');
}

static void text_sample(struct buffer *out, const char *name, const char *suffix,
			const struct metric_labels *labels, const char *le,
			struct metric_value value)
{
	buffer_text(out, name);
	buffer_text(out, suffix);
	text_labels(out, labels, le);
	buffer_char(out, ' ');
	text_value(out, value);
	buffer_char(out, '\n');
}

static void text_on_family(void *arg, const struct metric_family *family)
{
	static const char *const types[] = {
		[METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_INFO] = "gauge", /* 0.0.4 has no info */
		[METRIC_HISTOGRAM] = "histogram",
	};
	struct text_writer *writer = arg;

	buffer_text(writer->out, "# HELP ");
	buffer_text(writer->out, family->name);
	buffer_char(writer->out, ' ');
	buffer_text(writer->out, family->help);
	buffer_text(writer->out, "\n# TYPE ");
	buffer_text(writer->out, family->name);
	buffer_char(writer->out, ' ');
	buffer_text(writer->out, types[family->type]);
	buffer_char(writer->out, '\n');
	for (size_t i = 0; i < family->bounds_len; i++)
		exposition_text_le(family->bounds[i], writer->le[i]);
}

static void text_on_sample(void *arg, const struct metric_family *family,
			   const struct metric_labels *labels, struct metric_value value)
{
	struct text_writer *writer = arg;

	text_sample(writer->out, family->name, "", labels, NULL, value);
}

static void text_on_histogram(void *arg, const struct metric_family *family,
			      const struct metric_labels *labels,
			      const struct metric_histogram *histogram)
{
	struct text_writer *writer = arg;
	struct metric_value count = { .amount = histogram->count, .unit = METRIC_ONES };
	struct metric_value sum = { .amount = histogram->hist->sum_ns, .unit = METRIC_NANOSECONDS };

	for (size_t i = 0; i < histogram->bounds_len; i++) {
		struct metric_value below = { .amount = histogram->cumulative[i] };

		text_sample(writer->out, family->name, "_bucket", labels, writer->le[i], below);
	}
	text_sample(writer->out, family->name, "_bucket", labels, "+Inf", count);
	text_sample(writer->out, family->name, "_sum", labels, NULL, sum);
	text_sample(writer->out, family->name, "_count", labels, NULL, count);
}

int exposition_text_render(const struct snapshot *snapshot, struct buffer *out)
{
	static const struct metrics_writer text = {
		.family = text_on_family,
		.sample = text_on_sample,
		.histogram = text_on_histogram,
	};
	struct text_writer writer = { .out = out };

	metrics_walk(snapshot, &text, &writer);
	return out->error;
}
