/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter's own process, from /proc/self and the boot time in /proc/stat.
 */
#ifndef WORKLOAD_COLLECT_SELF_H
#define WORKLOAD_COLLECT_SELF_H

#include "model/snapshot.h"

/*
 * CPU and start time have the resolution of a clock tick (10 ms). max_fds is the soft limit, and
 * UINT64_MAX if there is none. open_fds does not count the descriptors that reading takes.
 * 0 or -errno; @out untouched on failure.
 */
int self_read(const char *proc_root, struct process_row *out);

#endif
