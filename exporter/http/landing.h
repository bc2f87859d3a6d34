/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The landing page: what is attached and what is watched, as one HTML page without scripts or
 * anything from elsewhere. Names of processes are escaped; bytes that are not UTF-8 become U+FFFD.
 */
#ifndef WORKLOAD_HTTP_LANDING_H
#define WORKLOAD_HTTP_LANDING_H

#include "base/buffer.h"
#include "http/routes.h"
#include "model/snapshot.h"

/* Appends the page to @out, with links to those of @routes that have a title. 0 or its error. */
int landing_render(const struct snapshot *snapshot, const struct http_routes *routes,
		   struct buffer *out);

#endif
