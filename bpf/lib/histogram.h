/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cells of histograms that several CPUs add to. */
#ifndef WORKLOAD_LIB_HISTOGRAM_H
#define WORKLOAD_LIB_HISTOGRAM_H

#include "lib/kernel.h"
#include "abi/histogram.h"

static inline void bucket_add(__u64 bucket[HIST_BUCKETS], __u64 ns)
{
	__u32 index = hist_index(ns);

	if (index < HIST_BUCKETS)
		__sync_fetch_and_add(&bucket[index], 1);
}

static inline void hist_add(struct hist *hist, __u64 ns)
{
	bucket_add(hist->bucket, ns);
	__sync_fetch_and_add(&hist->sum_ns, ns);
}

#endif
