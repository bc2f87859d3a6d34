/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a thread is doing, read from its saved registers and its task: facts, no judgement. */
#ifndef WORKLOAD_LIB_TASK_H
#define WORKLOAD_LIB_TASK_H

#include "lib/kernel.h"
#include "machine/classify.h"

#if defined(__TARGET_ARCH_x86)

static inline __s64 regs_syscall(const struct pt_regs *regs)
{
	return (__s64)regs->orig_ax;
}

static inline void regs_args(const struct pt_regs *regs, __u64 args[4])
{
	args[0] = regs->di;
	args[1] = regs->si;
	args[2] = regs->dx;
	args[3] = regs->r10;
}

static inline __u64 regs_ip(const struct pt_regs *regs)
{
	return regs->ip;
}

static inline __u64 regs_fp(const struct pt_regs *regs)
{
	return regs->bp;
}

static inline __u64 regs_lr(const struct pt_regs *regs)
{
	(void)regs;
	return 0; /* there is none */
}

static inline __u32 task_compat(const struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT;
}

/* At the entry of a function. */
static inline __u64 regs_argument(const struct pt_regs *regs)
{
	return regs->di;
}

/* There the return address is on the stack still. */
static inline __u64 regs_sp_at_return(const struct pt_regs *regs)
{
	return regs->sp + sizeof(__u64);
}

static inline __s32 regs_result(const struct pt_regs *regs)
{
	return (__s32)regs->ax;
}

#elif defined(__TARGET_ARCH_arm64)

static inline __s64 regs_syscall(const struct pt_regs *regs)
{
	return regs->syscallno;
}

static inline void regs_args(const struct pt_regs *regs, __u64 args[4])
{
	args[0] = regs->orig_x0;
	args[1] = regs->regs[1];
	args[2] = regs->regs[2];
	args[3] = regs->regs[3];
}

static inline __u64 regs_ip(const struct pt_regs *regs)
{
	return regs->pc;
}

static inline __u64 regs_fp(const struct pt_regs *regs)
{
	return regs->regs[29];
}

static inline __u64 regs_lr(const struct pt_regs *regs)
{
	return regs->regs[30];
}

static inline __u32 task_compat(const struct task_struct *task)
{
	return (task->thread_info.flags & TIF_32BIT) != 0;
}

static inline __u64 regs_argument(const struct pt_regs *regs)
{
	return regs->regs[0];
}

static inline __u64 regs_sp_at_return(const struct pt_regs *regs)
{
	return regs->sp;
}

static inline __s32 regs_result(const struct pt_regs *regs)
{
	return (__s32)regs->regs[0];
}

#endif

/* An address; another task's may be gone already. */
static inline struct file *descriptor_file(struct task_struct *task, __u32 fd)
{
	struct fdtable *table = task->files->fdt;
	struct file *file = NULL;

	if (fd < table->max_fds)
		bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	return file;
}

static inline int file_is_socket(struct file *file)
{
	return (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK;
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

static inline __s64 task_syscall(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return regs ? regs_syscall(regs) : -1;
}

/*
 * Whether the current task ends, and not well: by a signal, or with a status. do_exit() notes which
 * before it closes the files (kernel/exit.c).
 */
static inline int task_fails(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->flags & PF_EXITING && task->exit_code;
}

#endif
