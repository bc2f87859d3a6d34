/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads: where the time of a workload's threads goes, told by the scheduler.
 *
 * sched_switch, sched_wakeup and sched_wakeup_new run with interrupts off, so each CPU's shard of a
 * pool has one writer. The other hooks only mark; the walk over tasks writes a shard of its own.
 */
#include "lib/kernel.h"
#include "core/maps.h"
#include "threads/holders.h"
#include "threads/pools.h"
#include "threads/sleepers.h"
#include "lib/spares.h"
#include "lib/histogram.h"
#include "lib/task.h"
#include "core/trees.h"
#include "threads/turns.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SHARD_OF_WALKS cpus
#define SHARD_NONE (~0U)

static inline struct pool_shard *pool_shard_at(__u32 pool, __u32 shard)
{
	__u32 index = pool * (cpus + 1) + shard;

	return shard > SHARD_OF_WALKS ? NULL : bpf_map_lookup_elem(&pool_states, &index);
}

/* Where the hooks on this CPU write. One whose number was not possible must not write another's. */
static inline __u32 shard_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	if (cpu < cpus)
		return cpu;
	drop(DROP_CPU_UNKNOWN);
	return SHARD_NONE;
}

/* --- accounting ----------------------------------------------------------------------------- */

/*
 * Every CPU sees what is written before a step, then the step, then what is written after it. x86
 * writes in this order by itself, so that the compiler is all that must keep it; elsewhere it takes
 * the only barrier that BPF has, an exchange: its JITs make it a full one.
 */
static inline void shard_step(struct pool_shard *shard)
{
#if defined(__TARGET_ARCH_x86)
	__asm__ __volatile__("" ::: "memory");
	*(volatile __u64 *)&shard->seq = shard->seq + 1;
	__asm__ __volatile__("" ::: "memory");
#else
	__sync_lock_test_and_set(&shard->seq, shard->seq + 1);
#endif
}

static inline void shard_open(struct pool_shard *shard)
{
	shard_step(shard);
}

static inline void shard_close(struct pool_shard *shard)
{
	shard_step(shard);
}

/* Leaves the old place for the new one, at @now; the caller has exchanged `where`. */
VERIFIED_ALONE int account(__u64 old, __u64 new, __u64 now, __u32 writer)
{
	__u32 from = where_pool(old), to = where_pool(new);
	struct pool_shard *shard;

	if (where_state(old) != STATE_NONE) {
		shard = pool_shard_at(from, writer);
		if (!shard)
			return 0;
		shard_open(shard);
		shard_leave(shard, where_state(old), now);
		if (where_state(new) == STATE_NONE || from != to)
			shard->exited++;
		else
			shard_enter(shard, where_state(new), now);
		shard_close(shard);
		if (where_state(new) == STATE_NONE || from == to)
			return 0;
	} else if (where_state(new) == STATE_NONE) {
		return 0;
	}
	shard = pool_shard_at(to, writer);
	if (!shard)
		return 0;
	shard_open(shard);
	shard_enter(shard, where_state(new), now);
	if (where_state(old) != STATE_NONE)
		shard->started++;
	shard_close(shard);
	return 0;
}

/* Puts @thread into @state; what the state was before matters only for what is left. */
static inline void thread_set(struct task_struct *task, struct thread *thread, __u32 state,
			      __u64 now)
{
	__u32 pool = where_pool(thread->where);
	__u64 old, new;
	__u32 moved = thread->stale;

	if (moved) {
		thread->stale = moved - 1;
		pool = pool_find(thread->tree, thread->role, task);
		if (!thread->tree)
			state = STATE_NONE;
	}
	new = thread_where(pool, state);
	old = __sync_lock_test_and_set(&thread->where, new);
	account(old, new, now, shard_here());
	if (moved)
		thread_count(thread, thread->tree);
	thread->since_ns = now;
}

static inline void thread_gone(struct thread *thread, __u64 now, __u32 writer)
{
	__u64 none = thread_where(SLOT_OTHER, STATE_NONE);
	__u64 old = __sync_lock_test_and_set(&thread->where, none);

	account(old, none, now, writer);
	/* `tree` stays: a leader can end long before its process, whose tree is its. */
	thread_count(thread, 0);
}

static inline int thread_watched(const struct thread *thread)
{
	return thread && (thread->tree || where_state(thread->where) != STATE_NONE);
}

/* --- hooks ---------------------------------------------------------------------------------- */

static inline void switch_out(struct task_struct *task, struct thread *thread, bool preempt,
			      __u64 now)
{
	__u32 run_state = task->__state, state;
	__u32 pool = where_pool(thread->where);
	struct sleeper sleeper = {};
	struct pool_waits *waits;
	__u64 waited, lock, ran = 0;

	if (thread_is_missed(thread, 0))
		drop_of(thread->tree, DROP_SWITCH_UNSEEN);
	lock_released(thread, thread->where,
		      now); /* neither was its wakeup seen, nor that it came */
	if (where_state(thread->where) == STATE_RUNNING) {
		thread_ran(thread, now);
		ran = now - thread->since_ns;
	} else {
		thread_ran_unseen(thread);
	}
	state = classify_run_state(run_state, preempt);
	if (state != STATE_NONE) {
		thread_set(task, thread, state, now);
		return;
	}
	sleeper_read(task, &sleeper);
	if (sleeper.syscall == SYS_RESTART_SYSCALL)
		sleeper.syscall = thread->syscall;
	thread->syscall = sleeper.syscall;
	sleeper_place(thread, &sleeper);
	if (thread->word.address && !(run_state & TASK_DEAD))
		word_review(thread, &sleeper, ran);
	if (sleeper.syscall == SYS_FUTEX && !sleeper.compat)
		sleeper.lock = futex_lock(thread, &sleeper);
	state = run_state & TASK_DEAD ? STATE_NONE : sleeper_state(&sleeper);
	if (state != STATE_NONE && turn_matters(thread, &sleeper))
		state = turn_take(thread, &sleeper, state);
	lock = mutex_block(&thread->mutex, state, sleeper.sp) ? 0 : sleeper.lock;
	if (state == STATE_IDLE)
		thread->left_ns = now;
	if (thread_block(thread, state, lock, now, &waited) && !(thread->turns & TURN_TAKEN)) {
		waits = pool_waits_here(pool);
		if (waits)
			hist_add(&waits->mutex, waited);
	}
	if (state == STATE_NONE)
		thread_gone(thread, now, shard_here());
	else
		thread_set(task, thread, state, now);
}

/* The wait that ends now, by the state it was spent in; 0 since: it began before we looked. */
static inline void wait_record(const struct thread *thread, __u64 now)
{
	__u32 state = where_state(thread->where);
	struct pool_waits *waits;
	__u64 waited;

	if (!thread->since_ns || (state != STATE_DISK && state != STATE_RUNNABLE))
		return;
	waits = pool_waits_here(where_pool(thread->where));
	waited = now > thread->since_ns ? now - thread->since_ns : 0;
	if (waits)
		hist_add(state == STATE_DISK ? &waits->disk : &waits->runqueue, waited);
}

static inline void switch_in(struct task_struct *task, struct thread *thread, __u64 now)
{
	if (thread_is_missed(thread, 1))
		drop_of(thread->tree, DROP_SWITCH_UNSEEN);
	wait_record(thread, now);
	lock_released(thread, thread->where, now); /* its wakeup was not seen */
	thread->releaser = SLOT_OTHER;
	if (thread->turns & TURN_SLEPT && thread->blocked != STATE_RUNNING)
		turn_pass(thread);
	thread_resume(thread, now);
	thread_set(task, thread, STATE_RUNNING, now);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(threads_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct thread *thread;
	__u64 now = 0;

	if (!(prev->flags & PF_KTHREAD)) {
		thread = thread_of(prev);
		if (thread_watched(thread)) {
			now = bpf_ktime_get_ns();
			switch_out(prev, thread, preempt, now);
		}
	}
	if (!(next->flags & PF_KTHREAD)) {
		thread = thread_of(next);
		if (thread_watched(thread))
			switch_in(next, thread, now ? now : bpf_ktime_get_ns());
	}
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(threads_waking, struct task_struct *task)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct thread *thread;

	if (task->flags & PF_KTHREAD || task == current || !task_releases(current))
		return 0;
	thread = thread_of(task);
	if (thread_watched(thread))
		thread->releaser = releaser_pool(current, thread->tree);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(threads_wakeup, struct task_struct *task)
{
	struct thread *thread;
	__u32 state;
	__u64 now;

	if (task->flags & PF_KTHREAD)
		return 0;
	thread = thread_of(task);
	/* A task that wakes itself, before it has slept, runs. */
	if (!thread_watched(thread) || task == bpf_get_current_task_btf())
		return 0;
	state = where_state(thread->where);
	/* A task that has not slept yet stays on its CPU. */
	if (state == STATE_RUNNING || state == STATE_RUNNABLE) {
		thread->releaser = SLOT_OTHER; /* of this wakeup, and not of the next */
		return 0;
	}
	now = bpf_ktime_get_ns();
	wait_record(thread, now);
	lock_released(thread, thread->where, now);
	thread_set(task, thread, STATE_RUNNABLE, now);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(threads_wakeup_new, struct task_struct *task)
{
	struct thread *thread = thread_of(task);
	struct pool_shard *shard;

	if (!thread_watched(thread))
		return 0;
	thread_set(task, thread, STATE_RUNNABLE, bpf_ktime_get_ns());
	shard = pool_shard_at(where_pool(thread->where), shard_here());
	if (!shard)
		return 0;
	shard_open(shard);
	shard->started++;
	shard_close(shard);
	return 0;
}

/*
 * The name is read at the next three events: this hook runs before the kernel has changed it, and a
 * preemption in between is two.
 */
SPARED_PROG("tp_btf/task_rename", threads_rename, struct task_struct *task)
{
	struct thread *thread = thread_of(task);

	if (thread)
		thread->stale = 3;
	return 0;
}

/* --- the walk ------------------------------------------------------------------------------- */

static inline __u32 task_state(struct task_struct *task)
{
	struct sleeper sleeper = {};
	__u32 state;

	state = classify_run_state(task->__state, 0);
	if (state != STATE_NONE)
		return state == STATE_RUNNABLE && task->on_cpu ? STATE_RUNNING : state;
	sleeper_read(task, &sleeper);
	if (sleeper.syscall == SYS_FUTEX && !sleeper.compat)
		sleeper.lock = futex_lock_of_other(&sleeper);
	return sleeper_state(&sleeper);
}

/*
 * Counts @thread in the tree of its process. The state is read after the storage exists: an event
 * that comes later finds it and exchanges `where`, which makes the swap below fail, and is right.
 * The thread stays marked, so that its next event finds the pool once more: it may have exchanged
 * `where` with the old pool in mind, just after the swap.
 */
static inline void thread_adopt(struct task_struct *task, struct thread *thread, __u32 tree)
{
	__u64 old, new;
	__u32 state;

	thread->tree = tree;
	thread->stale = 1;
	old = thread->where;
	state = where_state(old) == STATE_NONE ? task_state(task) : where_state(old);
	new = thread_where(pool_find(tree, thread->role, task), state);
	if (__sync_val_compare_and_swap(&thread->where, old, new) != old)
		return;
	account(old, new, bpf_ktime_get_ns(), SHARD_OF_WALKS);
	thread_count(thread, tree);
	/* It may have switched for the last time just before: exit_state is set before that. */
	if (task->exit_state)
		thread_gone(thread, bpf_ktime_get_ns(), SHARD_OF_WALKS);
}

/*
 * The tree of @task, whose process joins that of its parent if it is in no other and in the same
 * cgroup: as if we had been there when it was born.
 */
static inline __u32 walk_tree(struct task_struct *task)
{
	struct task_struct *leader_task = task->group_leader;
	__u32 index = tree_of(task);
	struct thread *leader;
	struct tree *tree;

	if (index)
		return index;
	index = tree_of(leader_task->real_parent);
	tree = tree_at(index);
	if (!tree || !tree_has_place_of(tree, leader_task))
		return 0;
	leader = thread_make(leader_task, index);
	if (leader)
		process_join(leader_task, leader, index);
	else
		tree_refuse(index);
	return leader ? index : 0;
}

/*
 * Whether @thread is in no pool, or in an `other` for want of room while there may be some by now.
 * What it has spent there stays there.
 */
static inline int thread_seeks(const struct thread *thread, __u32 index)
{
	__u32 slot = where_pool(thread->where);
	struct pool_info *info = bpf_map_lookup_elem(&pool_info, &slot);
	struct tree *tree = tree_at(index);

	if (slot == SLOT_OTHER)
		return 1;
	return info && tree && pool_is_other(info->name) && pools_left(tree) &&
	       !bpf_map_peek_elem(&free_pools, &slot);
}

/* All threads of processes that belong to a tree and are not counted in it, or in `other`. */
SEC("iter/task")
int threads_walk(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *thread;
	__u32 tree;

	if (!task || task->flags & PF_KTHREAD || task->exit_state)
		return 0;
	tree = walk_tree(task);
	if (!tree)
		return 0;
	thread = thread_make(task, tree);
	if (!thread)
		tree_refuse(tree);
	else if (thread->counted != tree || thread_seeks(thread, tree))
		thread_adopt(task, thread, tree);
	return 0;
}

/* --- judging -------------------------------------------------------------------------------- */

/*
 * What a thread waits for is judged when it goes to sleep, by the request that it is at. That can
 * end while it sleeps on, as another thread answers, and where tasks wait and not threads user
 * space tells so a moment later. Then it has been idle since: the walk says so, for no hook of a
 * send may write a pool's shard.
 */
__u64 judging_ns, judged_ns; /* when the walk in progress began, and the last that has ended */

static inline int thread_is_over(struct task_struct *task, struct thread *thread, __u32 state,
				 __u64 *end_ns)
{
	*end_ns = 0;
	switch (state) {
	case STATE_LOCK:
		return turn_is_known(thread);
	case STATE_WAIT:
	case STATE_NETWORK:
		return thread->request && sleeper_is_over(task, thread, end_ns);
	default:
		return 0;
	}
}

static inline void thread_judge(struct task_struct *task, struct thread *thread)
{
	__u64 old = thread->where, now = bpf_ktime_get_ns(), end, new;

	if (!thread_is_over(task, thread, where_state(old), &end))
		return;
	new = thread_where(where_pool(old), STATE_IDLE);
	end = binding_end(end, thread->since_ns, judged_ns, now);
	if (__sync_val_compare_and_swap(&thread->where, old, new) != old)
		return;
	account(old, new, end, cpus);
	lock_released(thread, old, end); /* by none */
}

SEC("iter/task")
int threads_judge(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *thread;

	if (!task) {
		judged_ns = judging_ns;
		return 0;
	}
	if (!ctx->meta->seq_num)
		judging_ns = bpf_ktime_get_ns();
	if (task->flags & PF_KTHREAD || task->exit_state)
		return 0;
	thread = thread_of(task);
	if (thread_watched(thread))
		thread_judge(task, thread);
	return 0;
}
