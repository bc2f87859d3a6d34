/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Overflows of accept queues: from what a listener drops and what its network namespace counts. */
#ifndef WORKLOAD_CORE_OVERFLOWS_H
#define WORKLOAD_CORE_OVERFLOWS_H

#include "core/endpoints.h"
#include "machine/overflows.h"

/* Of a network namespace with tracked listeners. */
struct namespace
{
	struct listen_counts given;
	__u32 listeners;
	__u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ENDPOINTS_MAX);
	__type(key, __u64); /* address of its struct net */
	__type(value, struct namespace);
} namespaces SEC(".maps");

/* Of its one value each CPU has a copy, which tells where the memory of a CPU is. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} places SEC(".maps");

static inline __u64 namespace_key(const struct sock *sk)
{
	return (__u64)BPF_CORE_READ(sk, __sk_common.skc_net.net); /* copied as in cgroup_of() */
}

/* A pointer becomes a number on its way through memory. */
static inline __u64 place_number(volatile __u64 *cell, const void *pointer)
{
	*cell = (__u64)pointer;
	return *cell;
}

/*
 * Adds up a counter of which each CPU has its part, @part bytes from where the kernel counts such
 * memory from: the map's own is as far from its origin on each CPU. 0 where the kernel cannot tell
 * (before 5.19).
 */
static __attribute__((noinline)) __u64 statistic_sum(__u64 part)
{
	__u64 sum = 0, value, origin = 0, *place;
	__u32 none = 0;
	volatile __u64 *cell = bpf_map_lookup_elem(&places, &none);

	if (!cell || !mib_overflows)
		return 0;
	bpf_probe_read_kernel(&origin, sizeof(origin),
			      (void *)(place_number(cell, &places) +
				       bpf_core_field_offset(struct bpf_array, pptrs)));
	for (__u32 cpu = 0; cpu < cpus; cpu++) {
		place = bpf_map_lookup_percpu_elem(&places, &none, cpu);
		if (!place)
			break;
		value = 0;
		bpf_probe_read_kernel(&value, sizeof(value),
				      (void *)(place_number(cell, place) - origin + part));
		sum += value;
	}
	return sum;
}

static inline void namespace_count(const struct sock *sk, struct listen_counts *totals)
{
	struct net *net = BPF_CORE_READ(sk, __sk_common.skc_net.net);
	__u64 statistics = (__u64)BPF_CORE_READ(net, mib.net_statistics);

	totals->overflows = statistic_sum(statistics + mib_overflows * sizeof(unsigned long));
	totals->deferred = statistic_sum(statistics + mib_deferred * sizeof(unsigned long));
}

static const struct namespace namespace_empty;

/* @sk is tracked from now on: what its namespace counted before the first one is no listener's. */
static inline void namespace_enter(const struct sock *sk)
{
	__u64 key = namespace_key(sk);
	struct namespace *namespace;

	bpf_map_update_elem(&namespaces, &key, &namespace_empty, BPF_NOEXIST);
	namespace = bpf_map_lookup_elem(&namespaces, &key);
	if (!namespace) {
		drop(DROP_NAMESPACES_FULL);
		return;
	}
	if (!namespace->listeners)
		namespace_count(sk, &namespace->given);
	__sync_fetch_and_add(&namespace->listeners, 1);
}

static inline void namespace_leave(const struct sock *sk)
{
	__u64 key = namespace_key(sk);
	struct namespace *namespace = bpf_map_lookup_elem(&namespaces, &key);

	if (namespace && __sync_fetch_and_add(&namespace->listeners, -1) == 1)
		bpf_map_delete_elem(&namespaces, &key);
}

static inline __u32 listener_defers(const struct sock *sk)
{
	const struct inet_connection_sock *listener = (const void *)sk;

	return BPF_CORE_READ(listener, icsk_accept_queue.rskq_defer_accept);
}

/* Overflows of a listener's accept queue since they were last counted. */
static inline void listener_count_overflows(const struct sock *sk, struct tracked *tracked)
{
	__u32 now = BPF_CORE_READ(sk, sk_drops.counter), since = now - tracked->drops, overflows;
	__u64 key = namespace_key(sk);
	struct namespace *namespace;
	struct endpoint_shard *shard;
	struct listen_counts totals;

	if (!since)
		return;
	shard = endpoint_shard_at(tracked->slot, 0);
	namespace = bpf_map_lookup_elem(&namespaces, &key);
	if (!namespace || !namespace->listeners || !shard ||
	    shard->generation != tracked->generation)
		return;
	namespace_count(sk, &totals);
	overflows = overflows_of(&namespace->given, &totals, listener_defers(sk), since);
	tracked->drops = now;
	if (overflows)
		__sync_fetch_and_add(&shard->accept_queue_overflows, overflows);
}

#endif
