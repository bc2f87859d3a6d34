/* SPDX-License-Identifier: Apache-2.0 */
/* A token bucket: so many at once, and one more each interval, as Go's time/rate counts them. */
#ifndef WORKLOAD_WEB_BUCKET_H
#define WORKLOAD_WEB_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint64_t interval_ns; /* 0: no limit; at most an hour */
	uint64_t burst; /* 1 to a million */
	uint64_t full_ns; /* CLOCK_MONOTONIC, when it will be full again if nothing is taken */
};

/* Takes one if there is one. */
static inline bool bucket_take(struct bucket *bucket, uint64_t now_ns)
{
	uint64_t full_ns = bucket->full_ns > now_ns ? bucket->full_ns : now_ns;

	if (!bucket->interval_ns)
		return true;
	/* Each that is missing takes an interval to come back; the last must be there whole. */
	if (full_ns - now_ns > (bucket->burst - 1) * bucket->interval_ns)
		return false;
	bucket->full_ns = full_ns + bucket->interval_ns;
	return true;
}

#endif
