/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints: what the kernel side adds up per (tree, port). Array `endpoints` holds
 * shards copies of each slot, slot * shards + shard, written with atomic additions only;
 * user space adds the copies. Without the feature `requests` it is empty but for one.
 */
#ifndef WORKLOAD_ABI_REQUESTS_H
#define WORKLOAD_ABI_REQUESTS_H

#include "abi/histogram.h"
#include "abi/kernel_types.h"

/* How a server drives its sockets, seen at the first read or send on a connection. */
#define IO_BLOCKING 0
#define IO_NONBLOCKING 1
#define IO_EPOLL 2
#define IO_URING 3
#define IO_MODELS 4

#define STAGE_QUEUED 0
#define STAGE_SERVICE 1
#define STAGES 2

/* What the kernel side has learned of an endpoint: bits. */
#define LEARNED_ANSWERS 1U /* a request has been answered */
#define LEARNED_SERVER_FIRST 2U /* the server has sent before it had read anything */
#define LEARNED_CLIENT_FIRST 4U /* or has answered before it had sent anything else */
#define LEARNED_FIRST (LEARNED_SERVER_FIRST | LEARNED_CLIENT_FIRST)

struct endpoint_key {
	__u32 tree;
	__u32 port;
};

/* Values of used. */
#define ENDPOINT_FREE 0U
#define ENDPOINT_USED 1U
#define ENDPOINT_CLOSED 2U /* by user space: what was measured there is stale */

/* Array `endpoint_info`, one per slot; used is set last. That of SLOT_OTHER stays free. */
struct endpoint_info {
	__u32 tree;
	__u32 port;
	__u32 generation; /* bumped by user space when the slot is given back */
	__u32 used; /* ENDPOINT_ */
	__u32 sought; /* set by the kernel side: its port was looked for; user space clears it */
	__u32 learned; /* set by the kernel side: LEARNED_ */
};
_Static_assert(sizeof(struct endpoint_info) == 24, "struct endpoint_info has a hole");

/*
 * What is counted of an endpoint, and shown as it is: 64-bit cells, added up one by one. So one
 * that is added here is merged, kept over restarts and never falls back without more being said.
 */
struct endpoint_counts {
	__u64 abandoned[STAGES];
	__u64 accepted[IO_MODELS];
	__u64 received_bytes;
	__u64 sent_bytes;
	__u64 unrequested_sends; /* sends with no request in service */
	__u64 goodbyes; /* turns that end a connection and want no answer */
	__u64 unanswered_reads; /* of what nothing answers */
	__u64 multiplexed; /* connections that carry many requests at a time */
	__u64 one_way; /* connections that bring messages without answers */
	__u64 accept_queue_overflows; /* shard 0 only */
	struct hist queue;
	struct hist service;
	struct hist accept_wait; /* handshake done until accepted; syscall backend only */
};

struct endpoint_shard {
	__u32 generation; /* as endpoint_info's: a socket that remembers another one is stale */
	__u32 tree; /* to which the endpoint belongs */
	struct endpoint_counts;
	__u64 duration[HIST_BUCKETS]; /* its sum is that of queue and service */
};
_Static_assert(sizeof(struct endpoint_shard) ==
		       8 + sizeof(struct endpoint_counts) + 8 * HIST_BUCKETS,
	       "struct endpoint_shard has a hole");

/* Array `endpoint_gauges`, one per slot: zeroed by user space, filled by one sweep. */
struct endpoint_gauges {
	__u64 oldest_ns; /* arrival (CLOCK_MONOTONIC) of the oldest unread request; 0 if none */
	__u64 oldest_read_ns; /* first read of the oldest request in service; 0 if none */
	__u32 queued;
	__u32 in_service;
	__u32 connections;
	__u32 sockets; /* listeners and connections in any state: what names the slot still */
	__u32 accept_queue;
	__u32 accept_queue_limit;
};
_Static_assert(sizeof(struct endpoint_gauges) == 40, "struct endpoint_gauges has a hole");

/* Array `sweeps` of one: a sweep over all sockets that have state. */
struct sweep {
	__u64 next; /* place where its next step begins, set to 1 by user space; 0: it is through */
};

#endif
