/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page /debug/targets: each workload as a target of profiles, in the format of HTTP service
 * discovery (https://prometheus.io/docs/prometheus/latest/http_sd/).
 */
#ifndef WORKLOAD_PROFILES_TARGETS_H
#define WORKLOAD_PROFILES_TARGETS_H

#include "http/page.h"
#include "profiles/profiler.h"

/*
 * As http_page_fn. The address of a target is that by which the client has asked (Host); its label
 * __param_workload is what scrapers add to the query of a page, service_name is its name in
 * Pyroscope.
 */
int targets_page(const struct profiler *profiler, const struct http_request *request,
		 struct http_page *page);

#endif
