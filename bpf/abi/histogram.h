/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one histogram layout of the project: buckets of a Prometheus native histogram, schema 2.
 *
 * Native bucket j holds durations in (2^((j-1)/4), 2^(j/4)] seconds, for j from HIST_MIN_INDEX to
 * HIST_MAX_INDEX. Below lies one zero bucket (everything up to 2^-20 s), above one overflow bucket
 * (everything over 2^7 s). Cell i of struct hist is native bucket HIST_MIN_INDEX + i - 1.
 *
 * The count of a histogram is the sum of its buckets: there is no second place that could differ.
 */
#ifndef WORKLOAD_ABI_HISTOGRAM_H
#define WORKLOAD_ABI_HISTOGRAM_H

#include "abi/kernel_types.h"

#define HIST_SCHEMA 2
#define HIST_MIN_EXP (-20) /* the zero bucket ends at 2^HIST_MIN_EXP seconds */
#define HIST_MAX_EXP 7 /* the overflow bucket begins above 2^HIST_MAX_EXP seconds */
#define HIST_PER_OCTAVE (1 << HIST_SCHEMA)
#define HIST_MIN_INDEX (HIST_MIN_EXP * HIST_PER_OCTAVE + 1)
#define HIST_MAX_INDEX (HIST_MAX_EXP * HIST_PER_OCTAVE)
#define HIST_BUCKETS (HIST_MAX_INDEX - HIST_MIN_INDEX + 3)

#define HIST_ZERO_MAX_NS 953ULL /* floor(2^-20 * 1e9) */
#define HIST_MAX_NS 128000000000ULL /* 2^7 * 1e9 */

struct hist {
	__u64 sum_ns;
	__u64 bucket[HIST_BUCKETS];
};
_Static_assert(sizeof(struct hist) == 8 * (1 + 110), "struct hist changed its layout");

/*
 * The cell of @ns: the smallest one whose upper bound, floor(2^(j/4) * 1e9) ns, is not below it.
 *
 * Without branches between the guards: normalise to 63 bits (k becomes the exponent of the top
 * bit), then count which of the three fourth roots, and the power of two itself, the mantissa
 * exceeds. The constants are floor(2^(q/4) * 1e9) scaled to the same 63 bits; tests/unit compares
 * every boundary with integer fourth roots.
 */
static inline __u32 hist_index(__u64 ns)
{
	__u64 v = ns, k = 62, s;

	if (ns <= HIST_ZERO_MAX_NS)
		return 0;
	if (ns > HIST_MAX_NS)
		return HIST_BUCKETS - 1;
	s = (((v >> 31) - 1) >> 63) << 5;
	v <<= s;
	k -= s;
	s = (((v >> 47) - 1) >> 63) << 4;
	v <<= s;
	k -= s;
	s = (((v >> 55) - 1) >> 63) << 3;
	v <<= s;
	k -= s;
	s = (((v >> 59) - 1) >> 63) << 2;
	v <<= s;
	k -= s;
	s = (((v >> 61) - 1) >> 63) << 1;
	v <<= s;
	k -= s;
	s = ((v >> 62) - 1) >> 63;
	v <<= s;
	k -= s;
	return (__u32)(4 * k - 119 + ((5107605667107197932ULL - v) >> 63) +
		       ((6074000999952099384ULL - v) >> 63) + ((7223245205676679009ULL - v) >> 63) +
		       ((8589934592000000000ULL - v) >> 63) - HIST_MIN_INDEX + 1);
}

#endif
