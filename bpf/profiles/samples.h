/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples: what is counted on the stack of the current task. Programs write to one of two sets, and
 * have room of their own to follow a stack: what interrupts them has other room.
 */
#ifndef WORKLOAD_PROFILES_SAMPLES_H
#define WORKLOAD_PROFILES_SAMPLES_H

#include "lib/kernel.h"
#include "core/maps.h"
#include "machine/paces.h"
#include "profiles/slots.h"
#include "profiles/stack_sets.h"

/* Of what threads leave to their CPU: of waits, and of faults. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PROFILED_ROWS);
	__type(key, __u32);
	__type(value, struct paces);
} cpu_paces SEC(".maps");

/*
 * Follows the stack of the current task, and counts @weight on it, for the state and the leaf that
 * @unwinding has, in @set, which has been entered. False: there is no room for it, and that is
 * counted.
 */
static inline int stack_sample(struct unwinding *unwinding, struct profiled *here, __u32 set,
			       const struct thread *thread, __u64 weight)
{
	struct stack *known;

	unwinding->key.tree = thread->tree;
	pool_name(thread, unwinding->stack.pool);
	stack_of(unwinding, bpf_get_current_task_btf());
	known = stack_known(set, unwinding);
	if (known)
		__sync_fetch_and_add(&known->samples, weight);
	else
		here->lost[set] += weight;
	return known != NULL;
}

/* The same once, of a thread that runs, by a program that writes to @row. */
static inline void sample_count(const struct thread *thread, __u32 row, __u32 state, __u64 leaf,
				__u64 weight)
{
	struct unwinding *unwinding = unwinding_here(row);
	struct profiled *here = profiled_here(row);
	__u32 set;

	if (!unwinding || !here)
		return;
	set = set_enter(here);
	unwinding->key.state = state;
	unwinding->leaf = leaf;
	stack_sample(unwinding, here, set, thread, weight);
	set_leave(here, set);
}

/* For how many events that one of a thread stands for which it has @pace, as a power of two;
 * negative: for none, it is left out. @cost: of a sample, in those of waits. */
static inline int sample_draw(struct pace *pace, __u32 row, __u32 cost, __u64 now)
{
	struct paces *cpu = bpf_map_lookup_elem(&cpu_paces, &row);

	return cpu ? pace_draw(pace, cpu, cost, now, bpf_get_prandom_u32()) : -1;
}

#endif
