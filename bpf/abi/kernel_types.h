/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * __u32, __u64 and VERIFIED_ALONE for both sides: for BPF programs (which define WORKLOAD_BPF) they
 * are in lib/kernel.h.
 */
#ifndef WORKLOAD_ABI_KERNEL_TYPES_H
#define WORKLOAD_ABI_KERNEL_TYPES_H

#ifndef WORKLOAD_BPF
#include <linux/types.h>
#include <stddef.h>

#define VERIFIED_ALONE static inline /* nothing verifies them here */
#endif

#endif
