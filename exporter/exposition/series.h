/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples as lines of text: `name{label="value"} 1.5`, the same in text 0.0.4 and in OpenMetrics,
 * which differ only in what stands above the samples of a family and at the end.
 *
 * Numbers are written from integers: exact decimals, no floating point, no locale. Label values are
 * escaped, and each byte that is not UTF-8 or a control character becomes U+FFFD: names that differ
 * only in such bytes read alike, so the maker of a snapshot's rows must merge them first
 * (base/utf8.h).
 */
#ifndef WORKLOAD_EXPOSITION_SERIES_H
#define WORKLOAD_EXPOSITION_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "model/metrics.h"

#define SERIES_LE_BYTES 24

/* A writer of series: the argument of series_sample() and series_histogram(). */
struct series {
	struct buffer *out;
	struct buffer labels; /* of the row at hand, as written between the braces */
	size_t name_len; /* of the family at hand */
	struct {
		char text[SERIES_LE_BYTES];
		size_t len;
	} le[METRIC_BOUNDS_MAX]; /* of the family at hand */
};

/* @out takes the lines and, in its error, whatever goes wrong. */
void series_init(struct series *series, struct buffer *out);
void series_free(struct series *series);

/* To be called before the first sample of @family, in a writer's own family. */
void series_begin(struct series *series, const struct metric_family *family);

/* For struct metrics_writer; @arg is a struct series. */
void series_sample(void *arg, const struct metric_family *family,
		   const struct metric_labels *labels, struct metric_value value);
void series_histogram(void *arg, const struct metric_family *family,
		      const struct metric_labels *labels, const struct metric_histogram *histogram);

/*
 * Writes 2^@exponent (HIST_MIN_EXP to HIST_MAX_EXP) as the value of an `le` label: the shortest
 * decimal that reads back the same, with ".0" if it is an integer, with an exponent below 0.0001.
 */
void series_format_le(int exponent, char le[static SERIES_LE_BYTES]);

#endif
