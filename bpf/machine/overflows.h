/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose an overflow of an accept queue was. No hook, no helper, no map; the caller brings the
 * facts.
 *
 * A listener counts all that it drops in one number (sk_drops): an overflow once or twice (a SYN;
 * an ACK, after which the kernel drops the segment as well), with TCP_DEFER_ACCEPT an ACK of each
 * connection, and what is rare. How many of these were overflows, or deferred, is only known of its
 * network namespace. So a listener is given as many of the namespace's overflows as it has dropped,
 * and no overflow is given twice: exact for one that overflows at a time, and the sum always.
 */
#ifndef WORKLOAD_MACHINE_OVERFLOWS_H
#define WORKLOAD_MACHINE_OVERFLOWS_H

#include "abi/kernel_types.h"

/* TcpExt's ListenOverflows and TCPDeferAcceptDrop: of a namespace in all, or as given to listeners.
 */
struct listen_counts {
	__u64 overflows;
	__u64 deferred;
};

/* As many as there are left, but at most @most. If another caller takes some just now: none. */
static inline __u32 counts_take(__u64 *given, __u64 total, __u32 most)
{
	__u64 before = *given, left = total - before;

	if (left < most)
		most = left;
	if (total < before || !most)
		return 0;
	return __sync_val_compare_and_swap(given, before, before + most) == before ? most : 0;
}

/*
 * How many of the @drops that a listener has made since it was asked last were overflows. The
 * caller has read @drops before @total, as the kernel counts in the other order.
 */
static inline __u32 overflows_of(struct listen_counts *given, const struct listen_counts *total,
				 __u32 defers, __u32 drops)
{
	if (defers)
		drops -= counts_take(&given->deferred, total->deferred, drops);
	return counts_take(&given->overflows, total->overflows, drops);
}

#endif
