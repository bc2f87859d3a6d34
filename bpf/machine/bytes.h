/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes of one connection, as TCP's own sequence numbers tell them: how far they are counted, and
 * how many more there are. No hook, no helper, no map; the caller brings the numbers.
 *
 * A caller that counts takes the number up to which it was counted before in exchange for its own.
 * So all that is ever added comes to the last number less the first, whichever passes the other:
 * the slow one takes back what the faster one has added too much.
 */
#ifndef WORKLOAD_MACHINE_BYTES_H
#define WORKLOAD_MACHINE_BYTES_H

#include "abi/kernel_types.h"

/* So many at most are left uncounted: a difference of sequence numbers tells up to twice of that.
 */
#define BYTES_LEFT_MAX (1U << 30)

/* Values of counts. */
#define BYTES_NOT_BEGUN 0U
#define BYTES_COUNTED 1U
#define BYTES_READ_ONLY 2U /* nothing is sent any more but a FIN, which takes a number too */
#define BYTES_AS_TOLD 3U /* the numbers mean nothing (any more): what reads tell is counted */

struct bytes {
	__u32 counts;
	__u32 read_seq; /* copied_seq, up to which they are counted */
	__u32 sent_seq; /* write_seq, up to which they are counted */
};

static inline int bytes_are_many(__u32 seq, __u32 counted_seq)
{
	return seq - counted_seq >= BYTES_LEFT_MAX;
}

/* The next byte of each direction has these numbers. One caller at a time. */
static inline void bytes_begin(struct bytes *bytes, __u32 read_seq, __u32 sent_seq)
{
	bytes->read_seq = read_seq;
	bytes->sent_seq = sent_seq;
	__sync_lock_test_and_set(&bytes->counts, BYTES_COUNTED);
}

/* All that will be sent is counted. */
static inline void bytes_all_sent(struct bytes *bytes)
{
	__sync_val_compare_and_swap(&bytes->counts, BYTES_COUNTED, BYTES_READ_ONLY);
}

/* How many more there are since the last count; fewer than none to take back. */
static inline __s64 bytes_read(struct bytes *bytes, __u32 read_seq)
{
	if (bytes->counts != BYTES_COUNTED && bytes->counts != BYTES_READ_ONLY)
		return 0;
	if (bytes->read_seq == read_seq)
		return 0;
	return (__s32)(read_seq - __sync_lock_test_and_set(&bytes->read_seq, read_seq));
}

static inline __s64 bytes_sent(struct bytes *bytes, __u32 sent_seq)
{
	if (bytes->counts != BYTES_COUNTED || bytes->sent_seq == sent_seq)
		return 0;
	return (__s32)(sent_seq - __sync_lock_test_and_set(&bytes->sent_seq, sent_seq));
}

#endif
