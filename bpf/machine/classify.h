/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a thread sleeps, told from the system call it sleeps in. The order of the rules and the
 * meaning of the futex operations were measured; see the README's section on states.
 */
#ifndef WORKLOAD_MACHINE_CLASSIFY_H
#define WORKLOAD_MACHINE_CLASSIFY_H

#include "abi/threads.h"
#include "machine/syscalls.h"

/* What is known of a thread that has just gone to sleep. */
struct sleeper {
	__s64 syscall; /* number; negative: none (a page fault) */
	__u64 args[4];
	__u64 sp; /* user stack pointer */
	__u32 io_worker; /* PF_IO_WORKER */
	__u32 compat; /* a 32-bit system call: other numbers, not looked at */
	__u32 iowait;
	__u32 uninterruptible;
	__u32 in_request;
	__u32 alone; /* the only thread of its process */
};

/* include/uapi/linux/futex.h */
#define FUTEX_PRIVATE_FLAG 0x80U
#define FUTEX_CMD_MASK 0x7fU /* without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME (0x100) */
#define FUTEX_WAIT 0U
#define FUTEX_LOCK_PI 6U
#define FUTEX_WAIT_BITSET 9U
#define FUTEX_LOCK_PI2 13U

#define FUTEX_WAITERS 0x80000000U

#define OWN_FRAME_BYTES 512ULL

/*
 * The word's expected value tells a lock from a park: 2 is glibc's, Go's and Rust's "locked, with
 * waiters", 3 glibc's rwlock, FUTEX_WAITERS with an owner is musl's mutex and glibc's robust one;
 * whoever waits for something to do expects 0 (condition variables, semaphores, Java's and Go's
 * parking) or -1 (musl's semaphores).
 */
static inline int futex_is_lock(__u32 op, __u32 expected)
{
	if ((op & FUTEX_CMD_MASK) == FUTEX_WAIT && expected > FUTEX_WAITERS && expected != ~0U)
		return 1;
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return 1;
	case FUTEX_WAIT:
		return expected == 2;
	case FUTEX_WAIT_BITSET:
		/* Shared, it is pthread_join, and 2 or 3 a thread of a container. */
		return op & FUTEX_PRIVATE_FLAG && (expected == 2 || expected == 3);
	default:
		return 0;
	}
}

/*
 * At a lock that is not private the only thread of a process waits for another process: outside of
 * a request for its turn to accept (Apache, uWSGI), which is no contention.
 */
static inline __u32 classify_lock(const struct sleeper *sleeper, __u32 flags)
{
	int turn = sleeper->alone && !sleeper->in_request && !(flags & FUTEX_PRIVATE_FLAG);

	return turn ? STATE_IDLE : STATE_LOCK;
}

static inline __u32 classify_futex(const struct sleeper *sleeper)
{
	/* musl's condition variable waits for a 2 in the frame of pthread_cond_wait itself. */
	if (sleeper->args[0] - sleeper->sp >= OWN_FRAME_BYTES &&
	    futex_is_lock(sleeper->args[1], sleeper->args[2]))
		return classify_lock(sleeper, sleeper->args[1]);
	return sleeper->in_request ? STATE_WAIT : STATE_IDLE;
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

/*
 * Without descriptors it is a sleep. With one, in the middle of a request, it is a client library
 * that waits for its answer (libpq, JDBC, sockets with a timeout); an event loop waits for more.
 */
static inline __u32 classify_poll(const struct sleeper *sleeper)
{
	__u32 descriptors = sleeper->args[1];

	if (!descriptors)
		return STATE_SLEEP;
	return descriptors == 1 && sleeper->in_request ? STATE_NETWORK : STATE_IDLE;
}

static inline __u32 classify_syscall(const struct sleeper *sleeper)
{
	switch (sleeper->syscall) {
	case SYS_FUTEX:
		return classify_futex(sleeper);
	case SYS_FUTEX_WAIT:
		/* futex_wait(2): the expected value is the second argument, flags the fourth. */
		if (sleeper->args[1] == 2)
			return classify_lock(sleeper, sleeper->args[3]);
		return sleeper->in_request ? STATE_WAIT : STATE_IDLE;
	case SYS_FUTEX_WAITV:
		return sleeper->in_request ? STATE_WAIT : STATE_IDLE;
#ifdef SYS_POLL
	case SYS_POLL:
		return classify_poll(sleeper);
	case SYS_SELECT:
		return (__u32)sleeper->args[0] ? STATE_IDLE : STATE_SLEEP;
	case SYS_EPOLL_WAIT:
	case SYS_PAUSE:
#endif
	case SYS_EPOLL_PWAIT:
	case SYS_EPOLL_PWAIT2:
	case SYS_ACCEPT:
	case SYS_ACCEPT4:
	case SYS_IO_GETEVENTS:
	case SYS_IO_PGETEVENTS:
	case SYS_RT_SIGTIMEDWAIT:
	case SYS_RT_SIGSUSPEND:
		return STATE_IDLE;
	case SYS_PPOLL:
		return classify_poll(sleeper);
	case SYS_PSELECT6:
		return (__u32)sleeper->args[0] ? STATE_IDLE : STATE_SLEEP;
	case SYS_NANOSLEEP:
	case SYS_CLOCK_NANOSLEEP:
		return STATE_SLEEP;
	case SYS_RECVFROM:
	case SYS_RECVMSG:
	case SYS_RECVMMSG:
		return sleeper->in_request ? STATE_NETWORK : STATE_IDLE;
	case SYS_CONNECT:
	case SYS_SENDTO:
	case SYS_SENDMSG:
	case SYS_SENDMMSG:
		return STATE_NETWORK;
	case SYS_READ:
	case SYS_READV:
	case SYS_WRITE:
	case SYS_WRITEV:
	case SYS_SENDFILE:
	case SYS_SPLICE:
	/* For other processes: a master for its children, a worker for its turn to accept. */
	case SYS_WAIT4:
	case SYS_WAITID:
	case SYS_FCNTL:
	case SYS_FLOCK:
	case SYS_SEMOP:
	case SYS_SEMTIMEDOP:
	case SYS_MSGRCV:
	case SYS_MQ_TIMEDRECEIVE:
		return sleeper->in_request ? STATE_WAIT : STATE_IDLE;
	default:
		return STATE_WAIT;
	}
}

static inline __u32 classify(const struct sleeper *sleeper)
{
	if (sleeper->io_worker)
		return sleeper->iowait || sleeper->uninterruptible ? STATE_DISK : STATE_IDLE;
	if (sleeper->compat)
		return sleeper->iowait ? STATE_DISK : STATE_WAIT;
	if (sleeper->syscall == SYS_IO_URING_ENTER)
		return STATE_IDLE; /* before iowait: it sleeps with iowait set */
	if (sleeper->iowait)
		return STATE_DISK;
	if (sleeper->uninterruptible)
		return syscall_syncs(sleeper->syscall) ? STATE_DISK : STATE_WAIT;
	return classify_syscall(sleeper);
}

/* The lock that a thread in STATE_LOCK waits for. */
static inline __u64 sleeper_lock(const struct sleeper *sleeper)
{
	return sleeper->args[0];
}

#endif
