/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Prometheus text format, version 0.0.4.
 *
 * Numbers are written from integers: exact decimals, no floating point, no locale. Label values are
 * escaped, and each byte that is not UTF-8 becomes U+FFFD: names that differ only in such bytes
 * read alike, so who makes the rows of a snapshot must merge them first (base/utf8.h).
 */
#ifndef WORKLOAD_EXPOSITION_TEXT_H
#define WORKLOAD_EXPOSITION_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "snapshot.h"

#define TEXT_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

#define TEXT_LE_BYTES 24

/* Appends all families of @snapshot to @out. 0 or the error of @out. */
int exposition_text_render(const struct snapshot *snapshot, struct buffer *out);

/*
 * Writes 2^@exponent (HIST_MIN_EXP to HIST_MAX_EXP) as the value of an `le` label: the shortest
 * decimal that reads back the same, with ".0" if it is an integer, with an exponent below 0.0001.
 */
void exposition_text_le(int exponent, char le[static TEXT_LE_BYTES]);

#endif
