/* SPDX-License-Identifier: Apache-2.0 */
/* What a client wants of a profile: the arguments of its page. */
#ifndef WORKLOAD_PROFILES_WANTED_H
#define WORKLOAD_PROFILES_WANTED_H

#include <stdbool.h>
#include <stdint.h>

#include "http/page.h"

#define PROFILE_SECONDS_MAX 60U

struct wanted {
	uint64_t seconds; /* 1 to PROFILE_SECONDS_MAX */
	const char *workload; /* borrowed from the request; "": all */
	bool folded; /* else pprof */
};

/* Others than `seconds`, `workload` and `format` are ignored. What is wrong, as a line to be told
 * to the client; NULL: nothing. */
const char *wanted_read(const struct http_request *request, struct wanted *wanted);

#endif
