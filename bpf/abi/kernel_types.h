/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * __u32 and __u64 for both sides: from the kernel's headers in user space, from lib/kernel.h in BPF
 * programs (which define WORKLOAD_BPF).
 */
#ifndef WORKLOAD_ABI_KERNEL_TYPES_H
#define WORKLOAD_ABI_KERNEL_TYPES_H

#ifndef WORKLOAD_BPF
#include <linux/types.h>
#include <stddef.h>
#endif

#endif
