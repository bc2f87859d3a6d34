/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The two sets of stacks, one of which is written to while user space reads the other. */
#ifndef WORKLOAD_PROFILES_STACK_SETS_H
#define WORKLOAD_PROFILES_STACK_SETS_H

#include "lib/kernel.h"
#include "core/pools.h"
#include "machine/threads.h"
#include "profiles/stacks.h"

#define STACK_MAP(name)                          \
	struct {                                 \
		__uint(type, BPF_MAP_TYPE_HASH); \
		__uint(max_entries, STACKS_MAX); \
		__type(key, struct stack_key);   \
		__type(value, struct stack);     \
	} name SEC(".maps")
STACK_MAP(stacks_0);
STACK_MAP(stacks_1);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PROFILED_ROWS); /* of each CPU: sized by the loader */
	__type(key, __u32);
	__type(value, struct profiled);
} profiled SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct profiling);
} profiling SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TREES_MAX);
	__type(key, __u32);
	__type(value, struct look);
} looked_at SEC(".maps");

static inline struct profiled *profiled_here(__u32 row)
{
	__u32 index = bpf_get_smp_processor_id() * PROFILED_ROWS + row;

	return bpf_map_lookup_elem(&profiled, &index);
}

static inline struct profiling *profiling_now(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&profiling, &zero);
}

static inline __u32 set_now(void)
{
	struct profiling *now = profiling_now();

	return now ? *(volatile __u64 *)&now->set & 1 : 0;
}

/* Of this CPU's own. An exchange orders what is before and behind it, on each machine. */
static inline void step(__u64 *counter)
{
	__sync_lock_test_and_set(counter, *counter + 1);
}

/* The set that is to be written to, until set_leave(). User space sees that it is entered before it
 * is read. */
static inline __u32 set_enter(struct profiled *here)
{
	__u32 set = set_now();

	step(&here->entered[set]);
	if (set == set_now())
		return set;
	step(&here->left[set]); /* it may have been read already */
	set ^= 1;
	step(&here->entered[set]);
	return set;
}

static inline void set_leave(struct profiled *here, __u32 set)
{
	step(&here->left[set]);
}

static inline void *set_stacks(__u32 set)
{
	return set ? (void *)&stacks_1 : (void *)&stacks_0;
}

/* What is counted on the stack of @unwinding in @set; NULL: there is no room for it. */
static inline struct stack *stack_known(__u32 set, struct unwinding *unwinding)
{
	struct stack *known = bpf_map_lookup_elem(set_stacks(set), &unwinding->key);

	if (known)
		return known;
	bpf_map_update_elem(set_stacks(set), &unwinding->key, &unwinding->stack, BPF_NOEXIST);
	return bpf_map_lookup_elem(set_stacks(set), &unwinding->key);
}

static inline void pool_name(const struct thread *thread, __u64 name[2])
{
	__u32 pool = where_pool(thread->where);
	struct pool_info *info = bpf_map_lookup_elem(&pool_info, &pool);

	if (info)
		__builtin_memcpy(name, info->name, sizeof(info->name));
}

#endif
