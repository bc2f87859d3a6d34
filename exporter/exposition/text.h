/* SPDX-License-Identifier: Apache-2.0 */
/* The Prometheus text format, version 0.0.4: what every client reads. */
#ifndef WORKLOAD_EXPOSITION_TEXT_H
#define WORKLOAD_EXPOSITION_TEXT_H

#include "base/buffer.h"
#include "model/snapshot.h"

#define TEXT_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Appends all families of @snapshot to @out. 0 or the error of @out. */
int exposition_text_render(const struct snapshot *snapshot, struct buffer *out);

#endif
