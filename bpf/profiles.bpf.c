/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Profiles: on which stacks the threads of workloads spend CPU time. A clock of each CPU samples
 * what runs there; user space enables it while a profile is taken.
 */
#include "lib/kernel.h"
#include "core/maps.h"
#include "core/pools.h"
#include "core/trees.h"
#include "profiles/stacks.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

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
	__uint(max_entries, 1); /* CPUs: sized by the loader */
	__type(key, __u32);
	__type(value, struct profiled);
} profiled SEC(".maps");

/* Of a process, on its leader: written by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct code_slot);
} code_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct profiling);
} profiling SEC(".maps");

/* What was told of a process; NULL: nothing, or of what it was before exec. */
static inline struct code_slot *slot_told(struct task_struct *leader)
{
	struct code_slot *told = bpf_task_storage_get(&code_slots, leader, 0, 0);

	return told && told->exec_id == leader->self_exec_id ? told : NULL;
}

/*
 * What was told of the parent, if @task runs the same since a fork: a fork leaves both with one
 * open file of the program, and each exec opens its own before memory is replaced (the kernel's
 * fs/exec.c). NULL: nothing, or it does not.
 */
static inline struct code_slot *slot_of_parent(struct task_struct *task)
{
	struct task_struct *parent = task->group_leader->real_parent->group_leader;
	struct mm_struct *mine = task->mm, *other = parent->mm;

	if (!mine || !other || !mine->exe_file || mine->exe_file != other->exe_file)
		return NULL;
	return slot_told(parent);
}

/* One more on the stack of @unwinding. False: there is no room for it. */
static inline int stack_count(void *stacks, struct unwinding *unwinding)
{
	struct stack *known = bpf_map_lookup_elem(stacks, &unwinding->key);

	if (!known) {
		unwinding->stack.samples = 0;
		bpf_map_update_elem(stacks, &unwinding->key, &unwinding->stack, BPF_NOEXIST);
		known = bpf_map_lookup_elem(stacks, &unwinding->key);
	}
	if (!known)
		return 0;
	__sync_fetch_and_add(&known->samples, 1);
	return 1;
}

static inline __u32 set_now(void)
{
	__u32 zero = 0;
	struct profiling *now = bpf_map_lookup_elem(&profiling, &zero);

	return now ? *(volatile __u64 *)&now->set & 1 : 0;
}

/* Of this CPU's own. An exchange orders what is before and behind it, on each machine. */
static inline void step(__u64 *counter)
{
	__sync_lock_test_and_set(counter, *counter + 1);
}

/* The set that is to be written to. User space sees that it is entered before it is read. */
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

static inline void pool_name(const struct thread *thread, struct stack *stack)
{
	__u32 pool = where_pool(thread->where);
	struct pool_info *info = bpf_map_lookup_elem(&pool_info, &pool);

	if (info)
		__builtin_memcpy(stack->pool, info->name, sizeof(stack->pool));
}

SEC("perf_event")
int profiles_sample(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id(), set, zero = 0;
	struct profiled *here = bpf_map_lookup_elem(&profiled, &cpu);
	struct unwinding *unwinding = bpf_map_lookup_elem(&unwindings, &zero);
	struct code_slot *told;
	struct thread *thread;

	if (task->flags & (PF_KTHREAD | PF_EXITING) || !here || !unwinding)
		return 0;
	thread = thread_of(task);
	if (!thread || !thread->tree)
		return 0;
	set = set_enter(here);
	unwinding->key.tree = thread->tree;
	unwinding->key.state = STATE_RUNNING;
	pool_name(thread, &unwinding->stack);
	told = slot_told(task->group_leader);
	unwinding->of_parent = !told;
	stack_follow(unwinding, task, told ? told : slot_of_parent(task));
	stack_hash(unwinding);
	if (!stack_count(set ? (void *)&stacks_1 : (void *)&stacks_0, unwinding))
		step(&here->lost[set]);
	step(&here->left[set]);
	return 0;
}
