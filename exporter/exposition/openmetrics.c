/* SPDX-License-Identifier: Apache-2.0 */
#include "exposition/openmetrics.h"

#include <string.h>

#include "base/units.h"
#include "exposition/series.h"
#include "model/metrics.h"

/* Length of the name without @suffix, if it ends so. */
static size_t cut_suffix(const char *name, size_t len, const char *suffix)
{
	size_t suffix_len = strlen(suffix);

	return len > suffix_len && memcmp(name + len - suffix_len, suffix, suffix_len) == 0
		       ? len - suffix_len
		       : len;
}

/* Length of the family's name: what its samples are called without the suffix of their type. */
static size_t openmetrics_name_len(const struct metric_family *family)
{
	size_t len = strlen(family->name);

	if (family->type == METRIC_COUNTER)
		return cut_suffix(family->name, len, "_total");
	if (family->type == METRIC_INFO)
		return cut_suffix(family->name, len, "_info");
	return len;
}

static const char *openmetrics_unit(const char *name, size_t len)
{
	static const char *const suffixes[] = { "_seconds", "_bytes" };

	for (size_t i = 0; i < COUNT(suffixes); i++) {
		if (cut_suffix(name, len, suffixes[i]) < len)
			return suffixes[i] + 1;
	}
	return NULL;
}

/* One line of metadata: # @what name @text. */
static void openmetrics_meta(struct buffer *out, const char *what, const char *name, size_t len,
			     const char *text)
{
	buffer_text(out, what);
	buffer_append(out, name, len);
	buffer_char(out, ' ');
	buffer_text(out, text);
	buffer_char(out, '\n');
}

static void openmetrics_head(struct buffer *out, const struct metric_family *family)
{
	static const char *const types[] = {
		[METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_INFO] = "info",
		[METRIC_HISTOGRAM] = "histogram",
	};
	size_t len = openmetrics_name_len(family);
	const char *unit = openmetrics_unit(family->name, len);

	openmetrics_meta(out, "# TYPE ", family->name, len, types[family->type]);
	if (unit)
		openmetrics_meta(out, "# UNIT ", family->name, len, unit);
	openmetrics_meta(out, "# HELP ", family->name, len, family->help);
}

int exposition_openmetrics_render(const struct snapshot *snapshot, struct buffer *out)
{
	series_render(snapshot, openmetrics_head, out);
	buffer_text(out, "# EOF\n");
	return out->error;
}
