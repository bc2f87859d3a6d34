/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What sleepers wait for: facts of the task, its registers, its descriptors and its request. */
#ifndef WORKLOAD_THREADS_SLEEPERS_H
#define WORKLOAD_THREADS_SLEEPERS_H

#include "core/maps.h"
#include "lib/task.h"
#include "core/trees.h"
#include "machine/binding.h"

VERIFIED_ALONE int sleeper_state(const struct sleeper *sleeper);

VERIFIED_ALONE int sleeper_state(const struct sleeper *sleeper)
{
	return sleeper ? (int)classify(sleeper) : STATE_WAIT;
}

/*
 * A thread of a process that never leaves the kernel: of io_uring, since 6.4 also of vhost. The
 * flag of the latter meant something else before 5.17, and kernel_clone_args.user_worker is as old
 * as it.
 */
static inline __u32 kernel_worker(const struct task_struct *task)
{
	struct kernel_clone_args *args = NULL;
	__u32 flags = PF_IO_WORKER;

	if (bpf_core_field_exists(args->user_worker))
		flags |= PF_USER_WORKER;
	return task->flags & flags;
}

static __attribute__((noinline)) int sleeper_read(struct task_struct *task, struct sleeper *sleeper)
{
	struct pt_regs *regs;

	if (!task || !sleeper)
		return 0;
	sleeper->kernel_worker = kernel_worker(task);
	sleeper->compat = task_compat(task);
	sleeper->iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	sleeper->uninterruptible = task->__state & TASK_UNINTERRUPTIBLE;
	sleeper->alone = task->signal->live.counter == 1;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	sleeper->syscall = regs_syscall(regs);
	regs_args(regs, sleeper->args);
	sleeper->sp = regs->sp;
	sleeper->ip = regs_ip(regs);
	return 0;
}

/* include/uapi/asm-generic/poll.h */
struct pollfd {
	__u32 fd;
	__u16 events;
	__u16 revents;
};

/* What the current task waits for, as @sleeper says; @client: the file of its client. */
VERIFIED_ALONE int target_find(struct sleeper *sleeper, __u64 client)
{
	struct pollfd polled = {};
	struct file *file;
	__u32 where;

	if (!sleeper)
		return 0;
	where = descriptor_of(sleeper);
	polled.fd = sleeper->args[0];
	if (where == DESCRIPTOR_NONE ||
	    (where == DESCRIPTOR_POLLED &&
	     bpf_probe_read_user(&polled, sizeof(polled), (const void *)sleeper->args[0])))
		return 0;
	sleeper->events = polled.events;
	file = descriptor_file(bpf_get_current_task_btf(), polled.fd);
	if (!file)
		return 0;
	if ((__u64)file == client)
		sleeper->target = TARGET_CLIENT;
	else if (!syscall_takes_any(sleeper->syscall) || file_is_socket(file))
		sleeper->target = TARGET_SOCKET;
	else
		sleeper->target = TARGET_OTHER;
	return 0;
}

/*
 * How far the request of @thread is. The connection may be gone: then it was closed before, and
 * what has the address now has no request that was first read at that nanosecond.
 */
static inline __u32 thread_part(struct thread *thread)
{
	struct conn conn; /* its head is enough */

	if (bpf_probe_read_kernel(&conn, CONN_HEAD_BYTES, (const void *)thread->request) ||
	    !binding_lasts(thread, &conn)) {
		thread->request = 0;
		return IN_NOTHING;
	}
	return binding_part(thread, (__u64)thread, &conn);
}

/*
 * What the system call of @sleeper has to do with the request of @thread. Most who block wait for
 * events, or for their own client, and are idle whatever their request: they are not asked for it.
 */
static inline void sleeper_place(struct thread *thread, struct sleeper *sleeper)
{
	if (syscall_is_epoll(sleeper->syscall))
		return;
	if (thread->request || syscall_writes(sleeper->syscall))
		target_find(sleeper, thread->client);
	if (!thread->request || sleeper->target == TARGET_CLIENT)
		return;
	sleeper->in_request = thread_part(thread);
	if (sleeper->in_request == IN_SERVICE)
		sleeper->tasks = tree_runs_tasks(thread->tree);
}

/*
 * Whether @task sleeps on for what @thread was at, and only outside of it would be idle, while that
 * is over, at *end_ns (0: not known). As it is not the current task, its memory is out of reach.
 */
static inline int sleeper_is_over(struct task_struct *task, struct thread *thread, __u64 *end_ns)
{
	struct sleeper sleeper = {};
	struct conn conn = {};
	int parked;

	*end_ns = 0;
	sleeper_read(task, &sleeper);
	if (sleeper.syscall == SYS_RESTART_SYSCALL)
		sleeper.syscall = thread->syscall;
	if (sleeper_state(&sleeper) != STATE_IDLE)
		return 0;
	parked = syscall_parks(sleeper.syscall);
	if (parked && tree_runs_tasks(thread->tree))
		return 1;
	if (bpf_probe_read_kernel(&conn, CONN_HEAD_BYTES, (const void *)thread->request))
		return parked;
	return binding_over(thread, (__u64)thread, &conn, parked, end_ns);
}

#endif
