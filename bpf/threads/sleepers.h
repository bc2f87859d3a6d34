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

/* --- what it waits for ------------------------------------------------------------------------ */

/*
 * A listener, or a connection to one that is observed: only those have state of ours. With that of
 * another agent a socket is taken for such, and the wait for a wait for work.
 */
static inline int socket_brings_work(const struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN ||
	       BPF_CORE_READ(sk, sk_bpf_storage);
}

static inline __u32 file_target(struct file *file, __u64 client)
{
	struct socket *socket;

	if (!file)
		return TARGET_UNKNOWN;
	if ((__u64)file == client)
		return TARGET_CLIENT;
	if (!file_is_socket(file))
		return TARGET_OTHER;
	socket = BPF_CORE_READ(file, private_data);
	return socket_brings_work(BPF_CORE_READ(socket, sk)) ? TARGET_WORK : TARGET_SOCKET;
}

VERIFIED_ALONE int descriptor_target(__u32 fd, __u64 client)
{
	return (int)file_target(descriptor_file(bpf_get_current_task_btf(), fd), client);
}

static inline __u32 greater(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

/* include/uapi/asm-generic/poll.h */
struct pollfd {
	__u32 fd;
	__u16 events;
	__u16 revents;
};

/* Of several descriptors a few are looked at. */
#define LOOK_POLLED 8U
#define LOOK_WORDS 4U /* of a set of select(): 64 descriptors each, */
#define LOOK_BITS 4U /* and so many in each */

VERIFIED_ALONE int polled_target(struct sleeper *sleeper, __u64 client)
{
	struct pollfd polled[LOOK_POLLED] = {};
	__u32 target = TARGET_UNKNOWN, count;

	if (!sleeper)
		return 0;
	count = sleeper->args[1];
	if (count > LOOK_POLLED)
		count = LOOK_POLLED;
	if (bpf_probe_read_user(polled, count * sizeof(*polled), (const void *)sleeper->args[0]))
		return 0;
	sleeper->events = polled[0].events;
	for (__u32 i = 0; i < LOOK_POLLED && i < count; i++)
		target = greater(target, descriptor_target(polled[i].fd, client));
	return (int)target;
}

/* Those of @sleeper's sets that have a bit in their word number @index. */
static inline __u64 selected_word(const struct sleeper *sleeper, __u32 index)
{
	__u64 readable = 0, writable = 0;

	bpf_probe_read_user(&readable, sizeof(readable), (const __u64 *)sleeper->args[1] + index);
	bpf_probe_read_user(&writable, sizeof(writable), (const __u64 *)sleeper->args[2] + index);
	return readable | writable;
}

/* BPF has no instruction for it, and clang 14 none in place of that. */
VERIFIED_ALONE int first_bit(__u64 word)
{
	int bit = 0;

	for (int half = 32; half; half /= 2) {
		if (word << (64 - half))
			continue;
		word >>= half;
		bit += half;
	}
	return bit;
}

VERIFIED_ALONE int selected_target(const struct sleeper *sleeper, __u64 client)
{
	__u32 target = TARGET_UNKNOWN, fd;
	__u64 word;

	if (!sleeper)
		return 0;
	for (__u32 i = 0; i < LOOK_WORDS && i * 64 < (__u32)sleeper->args[0]; i++) {
		word = selected_word(sleeper, i);
		for (__u32 bits = 0; bits < LOOK_BITS && word; bits++) {
			fd = i * 64 + first_bit(word);
			target = greater(target, descriptor_target(fd, client));
			word &= word - 1;
		}
	}
	return (int)target;
}

/* In an epoll set (fs/eventpoll.c) a file is @node of a tree: an epitem begins with that. */
static inline __u32 node_target(struct rb_node *node, __u64 client)
{
	return file_target(BPF_CORE_READ((struct epitem *)node, ffd.file), client);
}

static inline int node_has_more(struct rb_node *node)
{
	return BPF_CORE_READ(node, rb_left) || BPF_CORE_READ(node, rb_right);
}

/* Whether its file is a set as well, as @set is. */
static inline int node_is_set(struct rb_node *node, struct file *set)
{
	return BPF_CORE_READ((struct epitem *)node, ffd.file, f_op) == BPF_CORE_READ(set, f_op);
}

#define EPOLL_MORE 0x100 /* beside a target: the set has more, is empty, or cannot be read */

/*
 * The root of that tree and what is below it. Where @whole, sets with more are not looked at: then
 * it matters only what there is in a small one.
 */
VERIFIED_ALONE int epoll_target(__u32 fd, __u64 client, __u32 whole)
{
	struct file *file = descriptor_file(bpf_get_current_task_btf(), fd);
	struct rb_node *root, *left, *right;
	struct eventpoll *set;
	__u32 target;
	int more;

	if (!file)
		return EPOLL_MORE;
	set = BPF_CORE_READ(file, private_data);
	root = BPF_CORE_READ(set, rbr.rb_root.rb_node);
	if (!root)
		return EPOLL_MORE;
	left = BPF_CORE_READ(root, rb_left);
	right = BPF_CORE_READ(root, rb_right);
	more = (left && node_has_more(left)) || (right && node_has_more(right));
	if (more && whole)
		return EPOLL_MORE;
	target = node_target(root, client);
	more |= node_is_set(root, file);
	if (left) {
		target = greater(target, node_target(left, client));
		more |= node_is_set(left, file);
	}
	if (right) {
		target = greater(target, node_target(right, client));
		more |= node_is_set(right, file);
	}
	return (int)target | (more ? EPOLL_MORE : 0);
}

/*
 * The only thread of a process that in the middle of a request waits for a few descriptors, none of
 * which brings work, is no event loop, also if nothing that it does blocks: it waits for something
 * (PostgreSQL, for a row that another client has locked). Of several threads one can have read the
 * request and taken its connection out of its set, until another one answers (Kafka, Thrift); and
 * a loop may do so until an upstream answers: then the connection is in no set at all.
 */
static inline void epoll_look(struct sleeper *sleeper, __u64 client)
{
	int found = epoll_target(sleeper->args[0], client, !sleeper->blocks);
	struct file *file = (struct file *)client;

	sleeper->target = found & ~EPOLL_MORE;
	if (!(found & EPOLL_MORE) && bpf_core_field_exists(file->f_ep) && BPF_CORE_READ(file, f_ep))
		sleeper->blocks = 1;
}

/* Notes what the current task waits for @where descriptor_of() says; @client: its client's file. */
VERIFIED_ALONE int target_find(struct sleeper *sleeper, __u32 where, __u64 client)
{
	if (!sleeper)
		return 0;
	switch (where) {
	case DESCRIPTOR_PASSED:
		sleeper->target = descriptor_target(sleeper->args[0], client);
		break;
	case DESCRIPTOR_POLLED:
	case DESCRIPTORS_POLLED:
		sleeper->target = polled_target(sleeper, client);
		break;
	case DESCRIPTORS_SELECTED:
		sleeper->target = selected_target(sleeper, client);
		break;
	case DESCRIPTORS_IN_EPOLL:
		epoll_look(sleeper, client);
		break;
	}
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

/* Whether it matters at which request @thread waits for any of several descriptors. */
static inline int thread_may_wait(const struct thread *thread, const struct sleeper *sleeper,
				  __u32 where)
{
	if (!thread->request)
		return 0;
	return thread->blocks || (where == DESCRIPTORS_IN_EPOLL && sleeper->alone);
}

/*
 * What the system call of @sleeper has to do with the request of @thread. Most threads block for
 * events, or for their own client, and are idle whatever their request: they are not asked for it,
 * unless thread_may_wait().
 */
static inline void sleeper_place(struct thread *thread, struct sleeper *sleeper)
{
	__u32 where = descriptor_of(sleeper);

	if (descriptors_are_many(where)) {
		if (!thread_may_wait(thread, sleeper, where))
			return;
		sleeper->blocks = thread->blocks;
		sleeper->in_request = thread_part(thread);
		if (sleeper->in_request == IN_SERVICE)
			target_find(sleeper, where, thread->client);
		return;
	}
	if (thread->request || syscall_writes(sleeper->syscall))
		target_find(sleeper, where, thread->client);
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
	parked = syscall_parks(sleeper.syscall) || descriptors_are_many(descriptor_of(&sleeper));
	if (parked && tree_runs_tasks(thread->tree))
		return 1;
	if (bpf_probe_read_kernel(&conn, CONN_HEAD_BYTES, (const void *)thread->request))
		return parked;
	return binding_over(thread, (__u64)thread, &conn, parked, end_ns);
}

#endif
