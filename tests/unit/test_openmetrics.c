/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "exposition/openmetrics.h"
#include "exposition/text.h"
#include "sample.h"

#define GOLDEN "tests/golden/exposition.openmetrics"

/* The sample snapshot, NUL-terminated. */
static void render_sample(int (*render)(const struct snapshot *snapshot, struct buffer *out),
			  struct buffer *out)
{
	struct snapshot snapshot = sample_snapshot();

	cr_assert_eq(render(&snapshot, out), 0);
	buffer_char(out, '\0');
	cr_assert_eq(out->error, 0);
	out->len--;
}

Test(openmetrics, a_snapshot_renders_as_in_the_golden_file)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(EXPOSITION_MAX_BYTES);

	render_sample(exposition_openmetrics_render, &out);
	expect_golden(&out, "exposition.openmetrics");
}

Test(openmetrics, the_official_parser_reads_it)
{
	expect_silent("/usr/bin/python3 -c 'from prometheus_client.openmetrics.parser import "
		      "text_string_to_metric_families as parse; import sys; "
		      "assert list(parse(sys.stdin.read()))' < " GOLDEN " 2>&1");
}

/* Appends the lines of @text that are samples. */
static void samples_of(const char *text, struct buffer *out)
{
	size_t len;

	for (; *text; text += len) {
		len = strcspn(text, "\n") + 1;
		if (*text != '#')
			buffer_append(out, text, len);
	}
	buffer_char(out, '\0');
}

Test(openmetrics, samples_are_those_of_the_text_format)
{
	_cleanup_(buffer_free) struct buffer openmetrics = BUFFER_INIT(EXPOSITION_MAX_BYTES);
	_cleanup_(buffer_free) struct buffer text = BUFFER_INIT(EXPOSITION_MAX_BYTES);
	_cleanup_(buffer_free) struct buffer openmetrics_samples =
		BUFFER_INIT(EXPOSITION_MAX_BYTES);
	_cleanup_(buffer_free) struct buffer text_samples = BUFFER_INIT(EXPOSITION_MAX_BYTES);

	render_sample(exposition_openmetrics_render, &openmetrics);
	render_sample(exposition_text_render, &text);
	samples_of(openmetrics.data, &openmetrics_samples);
	samples_of(text.data, &text_samples);
	cr_expect_gt(text_samples.len, 10000);
	cr_expect_str_eq(openmetrics_samples.data, text_samples.data);
}

/* Unlike the other text format it knows a third escape in help texts: ours need none. */
Test(openmetrics, help_needs_no_escapes)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(EXPOSITION_MAX_BYTES);
	const char *line;

	render_sample(exposition_openmetrics_render, &out);
	for (line = strstr(out.data, "# HELP "); line; line = strstr(line + 1, "# HELP ")) {
		size_t len = strcspn(line, "\n");

		cr_expect_geq(strcspn(line, "\"\\"), len, "%.*s", (int)len, line);
	}
}

Test(openmetrics, nothing_is_an_end)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(100);
	struct snapshot snapshot = { 0 };

	cr_assert_eq(exposition_openmetrics_render(&snapshot, &out), 0);
	cr_expect_eq(out.len, 6);
	cr_expect_arr_eq(out.data, "# EOF\n", 6);
}

Test(openmetrics, what_does_not_fit_is_an_error)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(100);
	struct snapshot snapshot = sample_snapshot();

	cr_expect_eq(exposition_openmetrics_render(&snapshot, &out), -ENOBUFS);
}
