/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages below /debug/pprof: take a profile for a client that waits, and tell it as pprof
 * (https://github.com/google/pprof, proto/profile.proto) or folded.
 */
#ifndef WORKLOAD_PROFILES_PAGE_H
#define WORKLOAD_PROFILES_PAGE_H

#include "http/page.h"
#include "profiles/profiler.h"

/* That wait at the same time, of all kinds: each service of a machine may be asked for. */
#define PROFILE_PAGES_MAX 32U
#define PROFILE_PAGE_LATE_MS ((PROFILE_SECONDS_MAX + 30) * 1000) /* to an answer, all in all */

/*
 * As http_page_fn, of the arguments `seconds`, `workload` and `format`; others are ignored. Its
 * clients are sent away before the profiler is freed.
 */
int profile_page(struct profiler *profiler, enum profile_kind kind,
		 const struct http_request *request, struct http_page *page);

#endif
