/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A look at a few bytes of what the current task reads by a system call: they are in its memory,
 * and its saved registers tell where. Nothing is kept of them.
 */
#ifndef WORKLOAD_REQUESTS_LOOK_H
#define WORKLOAD_REQUESTS_LOOK_H

#include "lib/task.h"
#include "machine/protocol.h"
#include "machine/syscalls.h"

struct user_iovec { /* include/uapi/linux/uio.h */
	__u64 base;
	__u64 length;
};

#define MSGHDR_IOV 16 /* offset of msg_iov in struct user_msghdr, include/linux/socket.h */

/* Where @vector, in user memory, puts its first @bytes; 0 if they are not in one piece. */
static inline __u64 vector_first(__u64 vector, __u32 bytes)
{
	struct user_iovec first;

	if (bpf_probe_read_user(&first, sizeof(first), (const void *)vector))
		return 0;
	return first.length >= bytes ? first.base : 0;
}

/* The buffer of the current system call, if its first @bytes are in one piece; else 0. */
static inline __u64 call_buffer(__s64 number, const __u64 args[4], __u32 bytes)
{
	__u64 vector;

	switch (number) {
	case SYS_READ:
	case SYS_RECVFROM:
		return args[1];
	case SYS_READV:
		return vector_first(args[1], bytes);
	case SYS_RECVMSG:
		if (bpf_probe_read_user(&vector, sizeof(vector),
					(const void *)(args[1] + MSGHDR_IOV)))
			return 0;
		return vector_first(vector, bytes);
	default:
		return 0;
	}
}

/* The number of the current system call, and its arguments; -1: there is none, or of a 32-bit one.
 */
static inline __s64 call_read(__u64 args[4])
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	if (!regs || task_compat(task))
		return -1;
	regs_args(regs, args);
	return regs_syscall(regs);
}

/* The address of the socket that a descriptor of the current task is; 0: it is none. */
static inline __u64 descriptor_socket(struct task_struct *task, __u32 fd)
{
	struct file *file = descriptor_file(task, fd);
	struct socket *socket;

	if (!file || !file_is_socket(file))
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	return (__u64)BPF_CORE_READ(socket, sk);
}

/*
 * Whether the current system call is about the socket whose address is at @socket; 0: it is for
 * sure. What io_uring has waited for is done at the end of whatever its task is in (task work), be
 * it a call that reads a file, or in no call at all.
 */
VERIFIED_ALONE int call_is_about(const __u64 *socket)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 args[4];
	__s64 number;

	if (!socket || !*socket)
		return 1;
	number = call_read(args);
	if (number < 0)
		return 0;
	return descriptor_socket(task, args[0]) == *socket ||
	       (number == SYS_SPLICE && descriptor_socket(task, args[2]) == *socket);
}

/* Where the current system call has put its first @bytes; 0 if that is not known. */
static inline __u64 call_memory(__u32 bytes)
{
	__u64 args[4];
	__s64 number = call_read(args);

	return number < 0 ? 0 : call_buffer(number, args, bytes);
}

/* From @at on, up to @size of the @bytes that the current system call reads. */
static inline int call_bytes(__u32 at, __u32 bytes, void *to, __u32 size)
{
	__u32 length = bytes < at + size ? bytes - at : size;
	__u64 buffer;

	if (bytes <= at)
		return 0;
	buffer = call_memory(at + length);
	barrier_var(length); /* the verifier is to see this test of what is passed */
	if (!buffer || length > size)
		return 0;
	return !bpf_probe_read_user(to, length, (const void *)(buffer + at));
}

#endif
