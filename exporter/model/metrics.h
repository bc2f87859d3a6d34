/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshot to metric families: walks the table in metrics.def and hands each family, sample and
 * histogram to a writer, which knows one exposition format and nothing about what is measured.
 */
#ifndef WORKLOAD_MODEL_METRICS_H
#define WORKLOAD_MODEL_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

#define METRIC_LABELS_MAX 7
#define METRIC_BOUNDS_MAX 16

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_INFO, METRIC_HISTOGRAM };

/* Amounts stay integers up to the writer: nanoseconds are written as seconds, without rounding. */
enum metric_unit { METRIC_ONES, METRIC_NANOSECONDS };

struct metric_family {
	const char *name; /* as in text 0.0.4: counters with _total, info with _info */
	const char *help;
	enum metric_type type;
	const signed char
		*bounds; /* of a histogram: exponents e, ascending; buckets end at 2^e s */
	size_t bounds_len;
};

/* Values are arbitrary bytes up to their NUL, as processes chose them; never NULL. */
struct metric_labels {
	size_t len;
	struct {
		const char *name;
		const char *value;
	} label[METRIC_LABELS_MAX];
};

struct metric_value {
	uint64_t amount;
	enum metric_unit unit;
};

/* A histogram as classic buckets, with the native one they are a view of. */
struct metric_histogram {
	const struct hist *hist;
	size_t bounds_len; /* the family's, or 0 for a histogram shown without buckets below +Inf */
	uint64_t cumulative[METRIC_BOUNDS_MAX]; /* observations up to each bound, inclusive */
	uint64_t count; /* all observations: the +Inf bucket */
};

/*
 * What a format provides. family comes before the samples of a family, once, and only for a family
 * that has a sample. Pointers are valid during the call; the names live for ever. Errors are the
 * writer's to remember.
 */
struct metrics_writer {
	void (*family)(void *arg, const struct metric_family *family);
	void (*sample)(void *arg, const struct metric_family *family,
		       const struct metric_labels *labels, struct metric_value value);
	void (*histogram)(void *arg, const struct metric_family *family,
			  const struct metric_labels *labels,
			  const struct metric_histogram *histogram);
};

/* Calls @writer with @arg for all of @snapshot, in the order of metrics.def. */
void metrics_walk(const struct snapshot *snapshot, const struct metrics_writer *writer, void *arg);

#endif
