/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Segments as tcp_probe tells of them, before TCP has taken them (net/ipv4/tcp_input.c). */
#ifndef WORKLOAD_REQUESTS_SEGMENTS_H
#define WORKLOAD_REQUESTS_SEGMENTS_H

#include "lib/spares.h"
#include "requests/requests.h"

#define TCP_FLAG_SYN 2 /* RFC 9293, 3.1 */
#define TCP_FLAG_RST 4

/* What TCP knows as a segment comes: its rcv_nxt, rcv_wup + rcv_wnd and write_seq. */
struct receiver {
	__u32 next, window_end, sent_seq;
};

/*
 * Whether a segment brings new bytes in order that TCP takes: what has come before or comes too
 * early is none, nor what comes while there is no room (tcp_data_queue()). *end becomes the
 * sequence number after its last byte, *acked that of the last byte of ours that it tells to have
 * come.
 */
static inline int segment_readable(const struct receiver *receiver, struct sk_buff *skb, __u32 *end,
				   __u32 *acked)
{
	struct {
		__be32 sequence, acked;
		__u8 offset, flags;
	} header = {};
	__u32 length, begin;

	/* The header of TCP begins at skb->data (net/ipv4/tcp_input.c, tcp_rcv_established). */
	bpf_probe_read_kernel(&header, sizeof(header), skb->data + 4);
	length = skb->len - (header.offset >> 4) * 4;
	if ((__s32)length <= 0 || header.flags & (TCP_FLAG_SYN | TCP_FLAG_RST) ||
	    (__s32)(receiver->window_end - receiver->next) <= 0)
		return 0;
	begin = __builtin_bswap32(header.sequence);
	*end = begin + length;
	*acked = __builtin_bswap32(header.acked);
	return (__s32)(begin - receiver->next) <= 0 && (__s32)(*end - receiver->next) > 0;
}

/* Stamps the bytes that a segment brings; not again if TCP had no room and it is sent again. */
static inline void segment_stamp(struct tracked *tracked, const struct receiver *receiver,
				 struct sk_buff *skb)
{
	__u32 end, acked = 0;

	/* event_is_new() notes the segment before its stamp is there: see segment_comes(). */
	if (segment_readable(receiver, skb, &end, &acked) &&
	    event_is_new(1, &tracked->arrived_seq, end))
		connection_readable(tracked, end, bpf_ktime_get_ns(), acked != receiver->sent_seq);
}

/*
 * Whether a segment that has been told of is not among what TCP has (@rcv_nxt) yet: in between,
 * what has been stamped is not there yet, and not gone for that. To be asked before what is unread,
 * or a segment that TCP takes between the two questions is in neither answer.
 */
static inline int segment_comes(const struct tracked *tracked, __u32 rcv_nxt)
{
	__u32 told = tracked->arrived_seq;

	return told && (__s32)(told - rcv_nxt) > 0;
}

#endif
