/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a thread sleeps, told from the system call it sleeps in. The order of the rules and the
 * meaning of the futex operations were measured; see "What threads do" in bpf/README.md.
 */
#ifndef WORKLOAD_MACHINE_CLASSIFY_H
#define WORKLOAD_MACHINE_CLASSIFY_H

#include "abi/threads.h"
#include "machine/futex.h"
#include "machine/syscalls.h"

/* How far the request is that a thread is in, if any: of its answer nothing was sent, or a part. */
enum { IN_NOTHING, IN_SERVICE, IN_ANSWER };

/*
 * What a thread waits for, see descriptor_of(): of several descriptors the last of these. WORK is a
 * listener, or the connection of a client that is not its own.
 */
enum { TARGET_UNKNOWN, TARGET_OTHER, TARGET_CLIENT, TARGET_SOCKET, TARGET_WORK };

/* include/linux/sched.h */
#define TASK_DEAD 0x0080U
#define TASK_RTLOCK_WAIT 0x1000U

/*
 * The state of a thread that leaves its CPU, where its run state alone tells; STATE_NONE: it is
 * gone, or sleeps, and what for is another question. With PREEMPT_RT it also sleeps on the kernel's
 * own spinlocks, on its way to whatever it was about to do: a futex included, so no wait ends here.
 */
static inline __u32 classify_run_state(__u32 run_state, int preempt)
{
	if (run_state & TASK_DEAD)
		return STATE_NONE;
	if (preempt || !run_state)
		return STATE_RUNNABLE;
	return run_state & TASK_RTLOCK_WAIT ? STATE_WAIT : STATE_NONE;
}

/* What is known of a thread that has just gone to sleep. */
struct sleeper {
	__s64 syscall; /* number; negative: none (a page fault) */
	__u64 args[4];
	__u64 sp; /* user stack pointer */
	__u64 ip; /* and where it goes on */
	__u64 lock; /* in futex(2): the address of the lock that it waits for; 0: for none */
	__u32 kernel_worker; /* of io_uring or vhost: its registers tell nothing */
	__u32 compat; /* a 32-bit system call: other numbers, not looked at */
	__u32 iowait;
	__u32 uninterruptible;
	__u32 in_request; /* IN_ */
	__u32 blocks; /* that request's connection, or the wait shows it: it is no event loop */
	__u32 target; /* TARGET_: CLIENT is the connection of that request */
	__u32 events; /* that it polls for */
	__u32 alone; /* the only thread of its process */
	__u32 tasks; /* of a runtime that runs tasks: none of them is this thread */
};

#define POLLOUT 4U /* include/uapi/asm-generic/poll.h */

/*
 * At a lock that is not private the only thread of a process waits for another process: outside of
 * a request for its turn to accept (Apache, uWSGI), which is no contention.
 */
static inline __u32 classify_lock(const struct sleeper *sleeper, __u32 flags)
{
	int turn = sleeper->alone && sleeper->in_request != IN_SERVICE &&
		   !(flags & FUTEX_PRIVATE_FLAG);

	return turn ? STATE_IDLE : STATE_LOCK;
}

/*
 * Whether @lock, which is or may be the one that @sleeper waits for (0: none), may be held by a
 * thread that waits for work, so that all others wait for their turn. Only where the lock is the
 * word slept on, without a timeout, and of one process: what becomes of another is not seen.
 */
static inline int sleeper_may_take_turns(const struct sleeper *sleeper, __u64 lock, __u32 state)
{
	return lock && lock == sleeper->args[0] && !sleeper->args[3] &&
	       sleeper->args[1] & FUTEX_PRIVATE_FLAG && sleeper->in_request != IN_SERVICE &&
	       (state == STATE_LOCK || state == STATE_IDLE);
}

/*
 * Before its answer has begun a request waits with the thread that has read it; after that the
 * thread goes back to where it waits for work. Where tasks wait, a thread of theirs is free.
 */
static inline __u32 classify_park(const struct sleeper *sleeper)
{
	return sleeper->in_request == IN_SERVICE && !sleeper->tasks ? STATE_WAIT : STATE_IDLE;
}

static inline __u32 classify_futex(const struct sleeper *sleeper)
{
	if (sleeper->lock)
		return classify_lock(sleeper, sleeper->args[1]);
	return classify_park(sleeper);
}

static inline int syscall_syncs(__s64 number)
{
	switch (number) {
	case SYS_SYNC:
	case SYS_SYNCFS:
	case SYS_FSYNC:
	case SYS_FDATASYNC:
	case SYS_MSYNC:
	case SYS_SYNC_FILE_RANGE:
		return 1;
	default:
		return 0;
	}
}

static inline int target_is_socket(const struct sleeper *sleeper)
{
	return sleeper->target == TARGET_SOCKET || sleeper->target == TARGET_WORK;
}

/* In the middle of a request on something other than its client, whatever else that is. */
static inline __u32 classify_target(const struct sleeper *sleeper)
{
	if (!sleeper->in_request)
		return STATE_IDLE;
	return target_is_socket(sleeper) ? STATE_NETWORK : STATE_WAIT;
}

/* A thread that reads from its client, or from a socket outside of a request, waits for work. */
static inline __u32 classify_read(const struct sleeper *sleeper)
{
	return sleeper->target == TARGET_CLIENT ? STATE_IDLE : classify_target(sleeper);
}

static inline __u32 classify_receive(const struct sleeper *sleeper)
{
	if (sleeper->target == TARGET_CLIENT)
		return STATE_IDLE;
	return sleeper->in_request ? STATE_NETWORK : STATE_IDLE;
}

/* No thread waits for work by writing. */
static inline __u32 classify_write(const struct sleeper *sleeper)
{
	if (sleeper->target == TARGET_CLIENT || target_is_socket(sleeper))
		return STATE_NETWORK;
	return classify_target(sleeper);
}

/*
 * A wait for any of several descriptors. An event loop is free meanwhile, whatever it has in hand.
 * A thread that has read a request from a connection that blocks it is none: before it answers it
 * calls another service (libcurl), unless its client or another one can end the wait. Nor is one
 * whose descriptors show it (epoll_look()).
 */
static inline __u32 classify_any(const struct sleeper *sleeper)
{
	if (!sleeper->blocks || sleeper->in_request != IN_SERVICE)
		return STATE_IDLE;
	switch (sleeper->target) {
	case TARGET_CLIENT:
	case TARGET_WORK:
		return STATE_IDLE;
	case TARGET_SOCKET:
		return STATE_NETWORK;
	default:
		return STATE_WAIT;
	}
}

/*
 * Without descriptors it is a sleep. With one, in the middle of a request, it is a client library
 * that waits for its answer (libpq, JDBC, sockets with a timeout), or an answer that waits for its
 * client; or else a server that waits for the next client.
 */
static inline __u32 classify_poll(const struct sleeper *sleeper)
{
	__u32 descriptors = sleeper->args[1];

	if (!descriptors)
		return STATE_SLEEP;
	if (descriptors > 1)
		return classify_any(sleeper);
	if (sleeper->target == TARGET_CLIENT && sleeper->events & POLLOUT)
		return STATE_NETWORK;
	if (sleeper->target == TARGET_WORK)
		return STATE_IDLE;
	return sleeper->target == TARGET_OTHER ? classify_target(sleeper)
					       : classify_receive(sleeper);
}

static inline __u32 classify_syscall(const struct sleeper *sleeper)
{
	switch (sleeper->syscall) {
	case SYS_FUTEX:
		return classify_futex(sleeper);
	case SYS_FUTEX_WAIT: /* no library's lock does so */
	case SYS_FUTEX_WAITV:
		return classify_park(sleeper);
#ifdef SYS_POLL
	case SYS_POLL:
		return classify_poll(sleeper);
	case SYS_SELECT:
		return (__u32)sleeper->args[0] ? classify_any(sleeper) : STATE_SLEEP;
	case SYS_EPOLL_WAIT:
		return classify_any(sleeper);
	case SYS_PAUSE:
#endif
	case SYS_ACCEPT:
	case SYS_ACCEPT4:
	case SYS_RT_SIGTIMEDWAIT:
	case SYS_RT_SIGSUSPEND:
		return STATE_IDLE;
	case SYS_PPOLL:
		return classify_poll(sleeper);
	case SYS_PSELECT6:
		return (__u32)sleeper->args[0] ? classify_any(sleeper) : STATE_SLEEP;
	case SYS_EPOLL_PWAIT:
	case SYS_EPOLL_PWAIT2:
	case SYS_IO_GETEVENTS:
	case SYS_IO_PGETEVENTS:
		return classify_any(sleeper);
	case SYS_NANOSLEEP:
	case SYS_CLOCK_NANOSLEEP:
		return STATE_SLEEP;
	case SYS_RECVFROM:
	case SYS_RECVMSG:
	case SYS_RECVMMSG:
		return classify_receive(sleeper);
	case SYS_CONNECT:
	case SYS_SENDTO:
	case SYS_SENDMSG:
	case SYS_SENDMMSG:
		return STATE_NETWORK;
	case SYS_READ:
	case SYS_READV:
	case SYS_SPLICE:
		return classify_read(sleeper);
	case SYS_WRITE:
	case SYS_WRITEV:
	case SYS_SENDFILE:
		return classify_write(sleeper);
	/* For other processes: a master for its children, */
	case SYS_WAIT4:
	case SYS_WAITID:
		return sleeper->in_request ? STATE_WAIT : STATE_IDLE;
	/* a worker for its turn to accept. */
	case SYS_FCNTL:
	case SYS_FLOCK:
	case SYS_SEMOP:
	case SYS_SEMTIMEDOP:
	case SYS_MSGRCV:
	case SYS_MQ_TIMEDRECEIVE:
		return sleeper->in_request == IN_SERVICE ? STATE_WAIT : STATE_IDLE;
	default:
		return STATE_WAIT;
	}
}

static inline __u32 classify(const struct sleeper *sleeper)
{
	if (sleeper->kernel_worker)
		return sleeper->iowait || sleeper->uninterruptible ? STATE_DISK : STATE_IDLE;
	if (sleeper->compat)
		return sleeper->iowait ? STATE_DISK : STATE_WAIT;
	if (sleeper->syscall == SYS_IO_URING_ENTER)
		return classify_any(sleeper); /* before iowait: it sleeps with iowait set */
	if (sleeper->iowait)
		return STATE_DISK;
	if (sleeper->uninterruptible)
		return syscall_syncs(sleeper->syscall) ? STATE_DISK : STATE_WAIT;
	return classify_syscall(sleeper);
}

/*
 * Where the descriptors are that a call waits for, if it names any: the only one in its first
 * argument, or in the struct pollfd in user memory to which that points; any of several in an array
 * of those, in sets of bits, in an epoll set; or what it waits for cannot be told.
 */
enum {
	DESCRIPTOR_NONE,
	DESCRIPTOR_PASSED,
	DESCRIPTOR_POLLED,
	DESCRIPTORS_POLLED,
	DESCRIPTORS_SELECTED,
	DESCRIPTORS_IN_EPOLL,
	DESCRIPTORS_UNKNOWN,
};

static inline __u32 descriptor_of(const struct sleeper *sleeper)
{
	switch (sleeper->syscall) {
#ifdef SYS_POLL
	case SYS_POLL:
#endif
	case SYS_PPOLL:
		if ((__u32)sleeper->args[1] > 1)
			return DESCRIPTORS_POLLED;
		return (__u32)sleeper->args[1] ? DESCRIPTOR_POLLED : DESCRIPTOR_NONE;
#ifdef SYS_SELECT
	case SYS_SELECT:
#endif
	case SYS_PSELECT6:
		return (__u32)sleeper->args[0] ? DESCRIPTORS_SELECTED : DESCRIPTOR_NONE;
#ifdef SYS_EPOLL_WAIT
	case SYS_EPOLL_WAIT:
#endif
	case SYS_EPOLL_PWAIT:
	case SYS_EPOLL_PWAIT2:
		return DESCRIPTORS_IN_EPOLL;
	case SYS_IO_URING_ENTER:
	case SYS_IO_GETEVENTS:
	case SYS_IO_PGETEVENTS:
		return DESCRIPTORS_UNKNOWN;
	case SYS_RECVFROM:
	case SYS_RECVMSG:
	case SYS_RECVMMSG:
	case SYS_READ:
	case SYS_READV:
	case SYS_SPLICE:
	case SYS_WRITE:
	case SYS_WRITEV:
	case SYS_SENDFILE:
		return DESCRIPTOR_PASSED;
	default:
		return DESCRIPTOR_NONE;
	}
}

/*
 * Whether a thread that is idle in the call waits for work, or only for its turn to do so. A worker
 * that another thread has given its request waits for a database just as one without a request
 * would: a socket or a pipe that brings no work is one that it works with.
 */
static inline int sleeper_waits_for_work(const struct sleeper *sleeper, __u32 where)
{
	switch (where) {
	case DESCRIPTOR_PASSED:
	case DESCRIPTOR_POLLED:
	case DESCRIPTORS_POLLED:
	case DESCRIPTORS_SELECTED:
		return sleeper->target == TARGET_CLIENT || sleeper->target == TARGET_WORK;
	default:
		return 1;
	}
}

/* Whether a call waits for any of several descriptors; @where: its descriptor_of(). */
static inline int descriptors_are_many(__u32 where)
{
	return where >= DESCRIPTORS_POLLED;
}

static inline int syscall_parks(__s64 number)
{
	return number == SYS_FUTEX || number == SYS_FUTEX_WAIT || number == SYS_FUTEX_WAITV;
}

/* By these no thread waits for work. */
static inline int syscall_writes(__s64 number)
{
	return number == SYS_WRITE || number == SYS_WRITEV || number == SYS_SENDFILE;
}

#endif
