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

#include "base/buffer.h"
#include "model/metrics.h"

#define SERIES_LE_BYTES 24

/*
 * Appends all families of @snapshot to @out, each with what @head writes above its samples. 0 or
 * the error of @out.
 */
int series_render(const struct snapshot *snapshot,
		  void (*head)(struct buffer *out, const struct metric_family *family),
		  struct buffer *out);

/*
 * Writes 2^@exponent (HIST_MIN_EXP to HIST_MAX_EXP) as the value of an `le` label: the shortest
 * decimal that reads back the same, with ".0" if it is an integer, with an exponent below 0.0001.
 */
void series_format_le(int exponent, char le[static SERIES_LE_BYTES]);

#endif
