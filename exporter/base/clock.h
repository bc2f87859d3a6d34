/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of all dates inside the exporter: CLOCK_MONOTONIC. That of the kernel side, which knows
 * no time namespaces, may differ from it.
 */
#ifndef WORKLOAD_BASE_CLOCK_H
#define WORKLOAD_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

#endif
