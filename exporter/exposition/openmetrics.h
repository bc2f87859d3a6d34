/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenMetrics 1.0.0, the text format. The samples are the same lines as in text 0.0.4. What
 * differs: a counter's family is named without _total and an info's without _info, units are told,
 * and the end is marked. There are no _created series, which would double the number of series.
 */
#ifndef WORKLOAD_EXPOSITION_OPENMETRICS_H
#define WORKLOAD_EXPOSITION_OPENMETRICS_H

#include "base/buffer.h"
#include "model/snapshot.h"

#define OPENMETRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Appends all families of @snapshot, and the end, to @out. 0 or the error of @out. */
int exposition_openmetrics_render(const struct snapshot *snapshot, struct buffer *out);

#endif
