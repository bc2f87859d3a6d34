/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of CPUs. */
#ifndef WORKLOAD_BASE_CPUS_H
#define WORKLOAD_BASE_CPUS_H

/*
 * How many numbers CPUs may have: the highest of @list, as the kernel writes it in
 * /sys/devices/system/cpu/possible ("0-3,8-11\n"), and one. Where numbers are missing that is more
 * than there are CPUs. -EINVAL if it is no such list, or has a number that no kernel has.
 */
int cpus_numbered(const char *list);

#endif
