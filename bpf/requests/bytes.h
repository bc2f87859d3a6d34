/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When bytes are counted that TCP's sequence numbers tell of: as sweeps pass, when a connection
 * ends or is measured elsewhere, and before too many have come together. So a read or a send adds
 * to no shared cell, which costs 8 ns.
 */
#ifndef WORKLOAD_REQUESTS_BYTES_H
#define WORKLOAD_REQUESTS_BYTES_H

#include "core/endpoints.h"
#include "machine/bytes.h"

/*
 * The first bytes have the numbers of the next ones less how many there were, also if some came
 * with the SYN. The caller holds the socket's lock, or what comes meanwhile comes between.
 */
static inline void bytes_find_begin(struct bytes *bytes, const struct tcp_sock *tcp)
{
	if (bytes->counts == BYTES_NOT_BEGUN)
		bytes_begin(bytes, tcp->rcv_nxt - (__u32)tcp->bytes_received,
			    tcp->snd_una - (__u32)tcp->bytes_acked);
}

/* A FIN has a sequence number; a read to the end has taken it too, and it is no byte. */
static inline __u32 bytes_read_to(const struct sock *sk, const struct tcp_sock *tcp)
{
	__u32 read_seq = tcp->copied_seq;
	int ended = sk->__sk_common.skc_flags & (1UL << SOCK_DONE) && read_seq == tcp->rcv_nxt;

	return ended ? read_seq - 1 : read_seq;
}

/* Counts what was read up to @read_seq, and all that was sent; without @shard it stays to be
 * counted. */
static inline void bytes_count_to(struct tracked *tracked, struct endpoint_shard *shard,
				  const struct tcp_sock *tcp, __u32 read_seq)
{
	__s64 count;

	if (!shard)
		return;
	count = bytes_read(&tracked->bytes, read_seq);
	if (count)
		__sync_fetch_and_add(&shard->received_bytes, count);
	count = bytes_sent(&tracked->bytes, tcp->write_seq);
	if (count)
		__sync_fetch_and_add(&shard->sent_bytes, count);
}

static inline void bytes_count(struct tracked *tracked, struct endpoint_shard *shard,
			       const struct sock *sk, const struct tcp_sock *tcp)
{
	bytes_count_to(tracked, shard, tcp, bytes_read_to(sk, tcp));
}

#endif
