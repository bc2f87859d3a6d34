/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Profiles: on which stacks the threads of workloads spend CPU time, on which they wait, and on
 * which they touch memory that is not there. A clock of each CPU samples what runs there; waits are
 * told by the scheduler, behind the programs of threads, which say what is waited for; faults by
 * the kernel's counters of them. User space says when which of these are.
 *
 * All that count run with interrupts off, but those of faults, which have rows of their own: what a
 * CPU has of its own has one user.
 */
#include "lib/kernel.h"
#include "core/maps.h"
#include "core/pools.h"
#include "core/trees.h"
#include "profiles/faults.h"
#include "profiles/offcpu.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("perf_event")
int profiles_sample(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread;

	if (task->flags & (PF_KTHREAD | PF_EXITING))
		return 0;
	thread = thread_of(task);
	if (thread && thread->tree)
		sample_count(thread, ROW_QUIET, STATE_RUNNING, 0, 1);
	return 0;
}

SEC("perf_event")
int profiles_minor(void *ctx)
{
	return fault_sample(FAULT_MINOR, MINOR_FAULTS_EACH);
}

SEC("perf_event")
int profiles_major(void *ctx)
{
	return fault_sample(FAULT_MAJOR, 1);
}

/* --- waits ---------------------------------------------------------------------------------- */

/* NULL: it is none whose waits are looked at; else @look says which. */
static inline struct thread *thread_looked_at(struct task_struct *task, struct look *look)
{
	struct thread *thread = task->flags & PF_KTHREAD ? NULL : thread_of(task);
	__u32 tree = thread ? thread->tree : 0;
	struct look *at = tree ? bpf_map_lookup_elem(&looked_at, &tree) : NULL;

	if (!at)
		return NULL;
	look->since_ns = *(volatile __u64 *)&at->since_ns;
	look->states = *(volatile __u64 *)&at->states;
	/* Of a look that begins at this moment the thread is met by the walk. */
	return look->since_ns && look->since_ns == *(volatile __u64 *)&at->since_ns ? thread : NULL;
}

static inline int looks_now(void)
{
	struct profiling *now = profiling_now();

	return now && *(volatile __u64 *)&now->looks;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(profiles_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct thread *thread;
	struct look look;

	if (!looks_now())
		return 0;
	thread = thread_looked_at(prev, &look);
	if (thread)
		wait_begins(prev, thread, &look);
	thread = thread_looked_at(next, &look);
	if (thread)
		wait_ends(thread, &look);
	return 0;
}

/* One that wakes itself has not slept, and its interrupts are on. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(profiles_wakeup, struct task_struct *task)
{
	struct thread *thread;
	struct look look;

	if (!looks_now() || task == bpf_get_current_task_btf())
		return 0;
	thread = thread_looked_at(task, &look);
	if (thread && where_state(thread->where) == STATE_RUNNABLE)
		wait_is_woken(thread, &look);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(profiles_wakeup_new, struct task_struct *task)
{
	struct thread *thread;
	struct look look;

	if (!looks_now())
		return 0;
	thread = thread_looked_at(task, &look);
	if (thread && where_state(thread->where) == STATE_RUNNABLE)
		wait_is_first(thread, &look);
	return 0;
}

/* Of waits that last: what was not told yet. */
SEC("iter/task")
int profiles_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wait_piece piece = {};
	struct wait_told told = {};
	struct thread *thread;
	struct wait_seen seen;
	struct look look;

	if (!looks_now() || !task || task->exit_state)
		return 0;
	thread = thread_looked_at(task, &look);
	if (!thread)
		return 0;
	seen.since_ns = *(volatile __u64 *)&thread->since_ns;
	if (seen.since_ns < task->start_time)
		seen.since_ns = task->start_time;
	seen.state = where_state(*(volatile __u64 *)&thread->where);
	seen.pool = where_pool(thread->where);
	seen.tree = thread->tree;
	if (!wait_walk(thread_wait_of(thread), &look, &seen, bpf_ktime_get_ns(), &piece))
		return 0;
	told.key = piece.key;
	told.key.hash |= HASH_LATER;
	told.ns = piece.ns;
	told.woken = piece.woken;
	pool_name(thread, told.pool);
	bpf_seq_write(ctx->meta->seq, &told, sizeof(told));
	return 0;
}
