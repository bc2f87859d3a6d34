/* SPDX-License-Identifier: Apache-2.0 */
#include "exposition/text.h"

#include "base/cleanup.h"
#include "exposition/series.h"
#include "model/metrics.h"

/* Help texts are our own (metrics.def): without backslashes and line ends, so nothing is escaped.
 */
static void text_family(void *arg, const struct metric_family *family)
{
	static const char *const types[] = {
		[METRIC_COUNTER] = " counter\n",
		[METRIC_GAUGE] = " gauge\n",
		[METRIC_INFO] = " gauge\n", /* 0.0.4 has no info */
		[METRIC_HISTOGRAM] = " histogram\n",
	};
	struct series *series = arg;

	series_begin(series, family);
	buffer_text(series->out, "# HELP ");
	buffer_text(series->out, family->name);
	buffer_char(series->out, ' ');
	buffer_text(series->out, family->help);
	buffer_text(series->out, "\n# TYPE ");
	buffer_text(series->out, family->name);
	buffer_text(series->out, types[family->type]);
}

int exposition_text_render(const struct snapshot *snapshot, struct buffer *out)
{
	static const struct metrics_writer text = {
		.family = text_family,
		.sample = series_sample,
		.histogram = series_histogram,
	};
	_cleanup_(series_free) struct series series;

	series_init(&series, out);
	metrics_walk(snapshot, &text, &series);
	return out->error;
}
