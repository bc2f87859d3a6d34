/* SPDX-License-Identifier: Apache-2.0 */
/* Units of time, as numbers and as text; and of arrays, how long they are. */
#ifndef WORKLOAD_BASE_UNITS_H
#define WORKLOAD_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Reads a duration as Go writes it, as in 5m, 1h30m, 1.5s or 500ms, with the units ns, us, ms, s,
 * m and h; or a plain 0; with @days the unit d as well. 0, or -EINVAL with @ns untouched: it is
 * none, or more than @most_ns, which is at most half of what @ns can be.
 */
int duration_parse(const char *text, bool days, uint64_t most_ns, uint64_t *ns);

#endif
