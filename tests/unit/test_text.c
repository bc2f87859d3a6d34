/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "exposition/series.h"
#include "exposition/text.h"
#include "sample.h"

#define GOLDEN "tests/golden/exposition.prom"

/* Renders @snapshot, NUL-terminated; to be freed. */
static char *render(const struct snapshot *snapshot)
{
	struct buffer out = BUFFER_INIT(EXPOSITION_MAX_BYTES);

	cr_assert_eq(exposition_text_render(snapshot, &out), 0);
	buffer_char(&out, '\0');
	cr_assert_eq(out.error, 0);
	return out.data;
}

Test(text, a_snapshot_renders_as_in_the_golden_file)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(EXPOSITION_MAX_BYTES);
	struct snapshot snapshot = sample_snapshot();

	cr_assert_eq(exposition_text_render(&snapshot, &out), 0);
	expect_golden(&out, "exposition.prom");
}

Test(text, promtool_finds_nothing_to_say)
{
	expect_silent("promtool check metrics < " GOLDEN " 2>&1");
}

Test(text, the_official_parser_reads_it)
{
	expect_silent("/usr/bin/python3 -c 'from prometheus_client.parser import "
		      "text_string_to_metric_families as parse; import sys; "
		      "assert list(parse(sys.stdin.read()))' < " GOLDEN " 2>&1");
}

/* How @byte of a thread name appears in a label value. */
static void append_escaped(struct buffer *out, int byte)
{
	if (byte < ' ' || byte == 0x7f)
		buffer_text(out, UTF8_REPLACEMENT);
	else if (byte == '"' || byte == '\\')
		buffer_printf(out, "\\%c", byte);
	else if (byte >= 0x80)
		buffer_text(out, UTF8_REPLACEMENT);
	else
		buffer_char(out, (char)byte);
}

Test(text, label_values_hold_any_byte)
{
	char name[256];
	struct workload_row row = { .workload = name };
	struct snapshot snapshot = { .workloads = &row, .workloads_len = 1 };
	_cleanup_(buffer_free) struct buffer expected = BUFFER_INIT(4096);
	_cleanup_(cleanup_free) char *text = NULL;

	buffer_text(&expected, "\nworkload_processes{workload=\"");
	for (int byte = 1; byte < 256; byte++) {
		name[byte - 1] = (char)byte;
		append_escaped(&expected, byte);
	}
	name[255] = '\0';
	buffer_append(&expected, "\"} 0\n", sizeof("\"} 0\n"));
	text = render(&snapshot);
	cr_expect_not_null(strstr(text, expected.data));
}

static void expect_utf8(const char *text, size_t length)
{
	cr_expect_eq(utf8_length(text), length, "%02x %02x", (unsigned char)text[0],
		     (unsigned char)text[1]);
}

Test(utf8, knows_what_is_a_character)
{
	expect_utf8("", 1);
	expect_utf8("a", 1);
	expect_utf8("\xc3\xa9", 2);
	expect_utf8("\xe2\x82\xac", 3);
	expect_utf8("\xed\x9f\xbf", 3);
	expect_utf8("\xf0\x9f\x92\xa9", 4);
	expect_utf8("\xf4\x8f\xbf\xbf", 4);
}

Test(utf8, knows_what_is_none)
{
	expect_utf8("\x80", 0);
	expect_utf8("\xc0\xaf", 0); /* overlong */
	expect_utf8("\xe0\x80\xaf", 0);
	expect_utf8("\xf0\x80\x80\xaf", 0);
	expect_utf8("\xed\xa0\x80", 0); /* a surrogate */
	expect_utf8("\xf4\x90\x80\x80", 0); /* above U+10FFFF */
	expect_utf8("\xf5\x80\x80\x80", 0);
	expect_utf8("\xe2\x82", 0); /* cut */
	expect_utf8("\xf0\x9f\x92", 0);
	expect_utf8("\xff", 0);
}

Test(utf8, a_control_character_is_none)
{
	expect_utf8("\x1b[31m", 0);
	expect_utf8("\n", 0);
	expect_utf8("\x7f", 0);
	expect_utf8(" ", 1);
	expect_utf8("~", 1);
	expect_utf8("\xc2\x9b", 0); /* what a terminal takes for ESC [ */
	expect_utf8("\xc2\x80", 0);
	expect_utf8("\xc2\x9f", 0);
	expect_utf8("\xc2\xa0", 2);
}

Test(text, le_is_the_shortest_that_reads_back_the_same)
{
	static const struct {
		int exponent;
		const char *le;
	} known[] = {
		{ 7, "128.0" },
		{ 0, "1.0" },
		{ -1, "0.5" },
		{ -4, "0.0625" },
		{ -10, "0.0009765625" },
		{ -13, "0.0001220703125" },
		{ -14, "6.103515625e-05" },
		{ -20, "9.5367431640625e-07" },
	};
	char le[SERIES_LE_BYTES];

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		series_format_le(known[i].exponent, le);
		cr_expect_str_eq(le, known[i].le);
	}
	for (int e = HIST_MIN_EXP; e <= HIST_MAX_EXP; e++) {
		series_format_le(e, le);
		cr_expect_eq(strtod(le, NULL), ldexp(1, e), "2^%d: %s", e, le);
	}
}

static void expect_seconds(uint64_t ns, const char *expected)
{
	struct process_row process = { .cpu_ns = ns };
	struct snapshot snapshot = { .process = &process };
	_cleanup_(cleanup_free) char *text = render(&snapshot);
	char line[128];

	snprintf(line, sizeof(line), "\nprocess_cpu_seconds_total %s\n", expected);
	cr_expect_not_null(strstr(text, line), "%" PRIu64, ns);
}

Test(text, seconds_are_exact)
{
	expect_seconds(0, "0");
	expect_seconds(1, "0.000000001");
	expect_seconds(100000000, "0.1");
	expect_seconds(1000000000, "1");
	expect_seconds(12000000340, "12.00000034");
	expect_seconds(UINT64_MAX, "18446744073.709551615");
}

Test(text, an_exposition_that_does_not_fit_is_an_error)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(100);
	struct process_row process = { 0 };
	struct snapshot snapshot = { .process = &process };

	cr_expect_eq(exposition_text_render(&snapshot, &out), -ENOBUFS);
}

static size_t count_series(const char *text)
{
	size_t lines = 0;

	for (; *text; text = strchr(text, '\n') + 1)
		lines += *text != '#';
	return lines;
}

/* A JVM with 25 pools, nine services with two: all with run-queue waits, a third with others. */
Test(text, ten_ordinary_services_stay_under_3000_series)
{
	static struct endpoint_row endpoints[12];
	static struct pool_row pools[25 + 9 * 2];
	static struct workload_row workloads[10];
	static struct drop_row drops[DROP_REASONS];
	struct snapshot snapshot = {
		.endpoints = endpoints,
		.endpoints_len = 12,
		.pools = pools,
		.pools_len = 43,
		.workloads = workloads,
		.workloads_len = 10,
		.drops = drops,
		.drops_len = DROP_REASONS,
	};
	_cleanup_(cleanup_free) char *text = NULL;

	for (size_t i = 0; i < 12; i++)
		endpoints[i].accepted[IO_EPOLL] = endpoints[i].accepted[IO_BLOCKING] = 1;
	for (size_t i = 0; i < 43; i++) {
		observe(&pools[i].runqueue, 1000);
		if (i % 3 == 0)
			observe(&pools[i].mutex, 1000);
		if (i % 3 == 1)
			observe(&pools[i].disk, 1000);
	}
	text = render(&snapshot);
	cr_expect_lt(count_series(text), 2850, "%zu", count_series(text));
}
