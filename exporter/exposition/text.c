/* SPDX-License-Identifier: Apache-2.0 */
#include "exposition/text.h"

#include "exposition/series.h"
#include "model/metrics.h"

/* Help texts are our own (metrics.def): without backslashes and line ends, so nothing is escaped.
 */
static void text_head(struct buffer *out, const struct metric_family *family)
{
	static const char *const types[] = {
		[METRIC_COUNTER] = " counter\n",
		[METRIC_GAUGE] = " gauge\n",
		[METRIC_INFO] = " gauge\n", /* 0.0.4 has no info */
		[METRIC_HISTOGRAM] = " histogram\n",
	};

	buffer_text(out, "# HELP ");
	buffer_text(out, family->name);
	buffer_char(out, ' ');
	buffer_text(out, family->help);
	buffer_text(out, "\n# TYPE ");
	buffer_text(out, family->name);
	buffer_text(out, types[family->type]);
}

int exposition_text_render(const struct snapshot *snapshot, struct buffer *out)
{
	return series_render(snapshot, text_head, out);
}
