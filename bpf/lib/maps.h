/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that all objects share: the loader creates them with the first object and lends them to
 * the others by name. Sizes marked "sized by the loader" depend on the machine.
 */
#ifndef WORKLOAD_LIB_MAPS_H
#define WORKLOAD_LIB_MAPS_H

#include "lib/kernel.h"
#include "abi/discovery.h"
#include "abi/drops.h"
#include "abi/limits.h"
#include "abi/requests.h"
#include "abi/threads.h"
#include "machine/requests.h"
#include "machine/threads.h"

/* Set by the loader before loading. */
const volatile __u32 cpus = 1; /* possible CPUs */
const volatile __u32 shards = 1; /* a power of two, at most SHARDS_MAX */
const volatile bool spares = true; /* are loaded: see lib/spares.h */

/*
 * State of a tracked socket. The kernel clones a listener's to each connection.
 *
 * Every event reads the first part, and few write it: with the 8 bytes that the kernel puts before
 * it (struct bpf_local_storage_data) it is a cache line, and so is the next one. An arrival is on
 * one CPU and its read on another, so only the line of arrivals moves between the two.
 */
struct tracked {
	__u32 slot; /* endpoint */
	__u32 generation; /* of that slot when it was looked up */
	__u32 tree; /* to which the endpoint belongs */
	__u32 port;
	__u32 accepted; /* counted by io_model */
	__u32 adopted; /* found open at start, nothing known of its present request */
	__u32 drops; /* listener: sk_drops already counted */
	__u32 waited; /* its accept wait is counted; syscall backend */
	__u32 arrived_seq; /* of the last event of each kind: see event_is_new() */
	__u32 read_seq;
	__u32 sent_seq;
	__u32 sought; /* listener: a walk was asked to find who holds it */
	__u64 established_ns; /* end of the handshake; syscall backend */
	struct conn conn;
};
_Static_assert(offsetof(struct tracked, conn) == 64 - 8, "struct tracked is not in cache lines");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct tracked);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TREES_MAX);
	__type(key, __u32);
	__type(value, struct tree);
} trees SEC(".maps");

/* Free slots: filled by user space, lowest on top; slot 0 (`other`) is never among them. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, TREES_MAX);
	__uint(value_size, sizeof(__u32));
} free_trees SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, ENDPOINTS_MAX);
	__uint(value_size, sizeof(__u32));
} free_endpoints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, POOLS_MAX);
	__uint(value_size, sizeof(__u32));
} free_pools SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ENDPOINTS_MAX);
	__type(key, struct endpoint_key);
	__type(value, __u32);
} endpoint_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ENDPOINTS_MAX);
	__type(key, __u32);
	__type(value, struct endpoint_info);
} endpoint_info SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ENDPOINTS_MAX); /* times shards: sized by the loader */
	__type(key, __u32);
	__type(value, struct endpoint_shard);
} endpoints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ENDPOINTS_MAX);
	__type(key, __u32);
	__type(value, struct endpoint_gauges);
} endpoint_gauges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, POOLS_MAX);
	__type(key, struct pool_key);
	__type(value, __u32);
} pool_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, POOLS_MAX);
	__type(key, __u32);
	__type(value, struct pool_info);
} pool_info SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, POOLS_MAX); /* times CPUs + 1: sized by the loader */
	__type(key, __u32);
	__type(value, struct pool_shard);
} pool_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, POOLS_MAX); /* times shards: sized by the loader */
	__type(key, __u32);
	__type(value, struct pool_waits);
} pool_waits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, DROP_REASONS);
	__type(key, __u32);
	__type(value, __u64);
} drops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

static inline void drop_add(__u32 reason, __u64 count)
{
	__u64 *cell = bpf_map_lookup_elem(&drops, &reason);

	if (cell)
		__sync_fetch_and_add(cell, count);
}

static inline void drop(__u32 reason)
{
	drop_add(reason, 1);
}

/* Wakes user space, which looks at all trees. */
static inline void doorbell_ring(void)
{
	__u64 bell = 0;

	if (bpf_ringbuf_output(&doorbell, &bell, sizeof(bell), 0))
		drop(DROP_DOORBELL);
}

static inline struct pool_waits *pool_waits_here(__u32 pool)
{
	__u32 index = pool * shards + (bpf_get_smp_processor_id() & (shards - 1));

	return bpf_map_lookup_elem(&pool_waits, &index);
}

static inline void hist_add(struct hist *hist, __u64 ns)
{
	__u32 index = hist_index(ns);

	if (index < HIST_BUCKETS)
		__sync_fetch_and_add(&hist->bucket[index], 1);
	__sync_fetch_and_add(&hist->sum_ns, ns);
}

#endif
