/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time namespace of this process (time_namespaces(7)): by how much what it is told of clocks is
 * ahead of what the kernel side is told, which knows no namespaces.
 */
#ifndef WORKLOAD_IDENTITY_TIMENS_H
#define WORKLOAD_IDENTITY_TIMENS_H

#include <stdint.h>

/* Negative: behind. */
struct timens {
	int64_t monotonic_ns; /* of CLOCK_MONOTONIC */
	int64_t boottime_ns; /* of CLOCK_BOOTTIME, and of times since boot in /proc */
};

/*
 * Of @proc_root's self. All 0 in the initial namespace, where there are none (before Linux 5.6),
 * and where they cannot be read. timens_offsets tells those of the children: up to Linux 6.2 a
 * process that has asked for a namespace and then executed another program is in none of its own
 * itself, so the initial one is told by its number. Wrong only for such a process in a nested
 * namespace.
 */
void timens_read(const char *proc_root, struct timens *out);

#endif
