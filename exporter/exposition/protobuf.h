/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Prometheus protobuf format: each family an io.prometheus.client.MetricFamily behind its
 * length (metric_family.proto). It alone carries native histograms, and they are the kernel's own
 * buckets: schema 2, zero bucket up to 2^HIST_MIN_EXP s. The classic buckets are in the same
 * message.
 *
 * A native histogram has no bucket without an end, and its buckets must add up to its count. What
 * is over 2^HIST_MAX_EXP s is therefore in the first bucket above: a quantile that falls there
 * means "more than 128 s", as one in the +Inf bucket of a classic histogram means "more than its
 * last bound".
 *
 * Names are those of text 0.0.4. Values are doubles: counts above 2^53 are rounded. Bytes that are
 * not UTF-8 become U+FFFD.
 */
#ifndef WORKLOAD_EXPOSITION_PROTOBUF_H
#define WORKLOAD_EXPOSITION_PROTOBUF_H

#include "base/buffer.h"
#include "model/snapshot.h"

#define PROTOBUF_CONTENT_TYPE                                                        \
	"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; " \
	"encoding=delimited"

/* Appends all families of @snapshot to @out. 0 or the error of @out. */
int exposition_protobuf_render(const struct snapshot *snapshot, struct buffer *out);

#endif
