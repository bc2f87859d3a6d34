/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables of thread pools. Sizes marked "sized by the loader" depend on the machine. */
#ifndef WORKLOAD_CORE_POOLS_H
#define WORKLOAD_CORE_POOLS_H

#include "lib/kernel.h"
#include "abi/limits.h"
#include "abi/threads.h"
#include "lib/knobs.h"

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, POOLS_MAX);
	__uint(value_size, sizeof(__u32));
} free_pools SEC(".maps");

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

static inline struct pool_waits *pool_waits_here(__u32 pool)
{
	__u32 index = pool * shards + (bpf_get_smp_processor_id() & (shards - 1));

	return bpf_map_lookup_elem(&pool_waits, &index);
}

#endif
