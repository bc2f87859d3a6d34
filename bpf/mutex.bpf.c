/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mutexes, observed at the functions of libpthread: every acquisition, free ones included, and
 * waits with their spinning. User space attaches the two programs to the processes of trees, and
 * only to those: others pay nothing (exporter/features/mutexes.h).
 *
 * Costly: each call traps twice. Never loaded by default.
 */
#include "lib/kernel.h"
#include "core/maps.h"
#include "core/pools.h"
#include "lib/histogram.h"
#include "lib/task.h"
#include "core/trees.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The id by which a thread knows itself. */
static inline __u32 own_thread_id(struct task_struct *task)
{
	struct pid *pid = task->thread_pid;
	__u32 level = BPF_CORE_READ(pid, level);
	int id = 0;

	bpf_core_read(&id, sizeof(id), &pid->numbers[level].nr);
	return id;
}

/*
 * A page that is not there cannot be read. That is a mutex no thread has touched yet, or one that
 * was swapped out: either way no thread is in a hurry for it.
 */
static inline __u32 mutex_held_now(struct task_struct *task, __u64 mutex, __u32 layout)
{
	__u32 words[3] = {};

	if (bpf_probe_read_user(words, sizeof(words), (const void *)mutex))
		return 0;
	return mutex_is_held(layout, words, own_thread_id(task));
}

/* Only watched processes are probed, so their threads have a state; where it is busy, see there. */
static inline struct thread *thread_probed(struct task_struct *task)
{
	struct thread *thread = thread_of(task);

	return thread && thread->tree ? thread : NULL;
}

SEC("uprobe")
int mutex_entry(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_probed(task);
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 held;

	if (!thread)
		return 0;
	held = mutex_held_now(task, regs_argument(ctx), mutex_cookie_layout(cookie));
	mutex_enter(&thread->mutex, mutex_cookie_function(cookie), regs_sp_at_return(ctx), held,
		    bpf_ktime_get_ns());
	return 0;
}

SEC("uretprobe")
int mutex_return(struct pt_regs *ctx)
{
	struct thread *thread = thread_probed(bpf_get_current_task_btf());
	struct pool_waits *waits;
	__u64 waited = 0;
	__u32 what;

	if (!thread)
		return 0;
	what = mutex_leave(&thread->mutex, ctx->sp, regs_result(ctx), bpf_ktime_get_ns(), &waited);
	if (!what)
		return 0;
	waits = pool_waits_here(where_pool(thread->where));
	if (!waits)
		return 0;
	if (what & MUTEX_ACQUIRED)
		__sync_fetch_and_add(&waits->acquisitions, 1);
	if (what & MUTEX_WAITED)
		hist_add(&waits->mutex, waited);
	return 0;
}
