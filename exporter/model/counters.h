/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of structs that consist of 64-bit counters only, histograms included. */
#ifndef WORKLOAD_MODEL_COUNTERS_H
#define WORKLOAD_MODEL_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

/* Adds each counter of @from, which has @bytes, to the one of @to in its place. */
static inline void counters_merge(void *to, const void *from, size_t bytes)
{
	typedef uint64_t __attribute__((may_alias)) counter;
	counter *sums = to;
	const counter *parts = from;

	for (size_t i = 0; i < bytes / sizeof(*sums); i++)
		sums[i] += parts[i];
}

#endif
