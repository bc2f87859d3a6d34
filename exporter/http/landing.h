/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The landing page: what is attached and what is watched, as one HTML page without scripts or
 * anything from elsewhere. Names of processes are escaped; bytes that are not UTF-8 become U+FFFD.
 */
#ifndef WORKLOAD_HTTP_LANDING_H
#define WORKLOAD_HTTP_LANDING_H

#include "base/buffer.h"
#include "model/snapshot.h"

/* Appends the page to @out. @telemetry_path is linked to. 0 or the error of @out. */
int landing_render(const struct snapshot *snapshot, const char *telemetry_path, struct buffer *out);

#endif
