/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of the system calls in which threads sleep, per architecture:
 * arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
 */
#ifndef WORKLOAD_MACHINE_SYSCALLS_H
#define WORKLOAD_MACHINE_SYSCALLS_H

#include "abi/kernel_types.h"

#if defined(__TARGET_ARCH_arm64) || (!defined(WORKLOAD_BPF) && defined(__aarch64__))

#define SYS_IO_GETEVENTS 4
#define SYS_EPOLL_PWAIT 22
#define SYS_FCNTL 25
#define SYS_FLOCK 32
#define SYS_READ 63
#define SYS_WRITE 64
#define SYS_READV 65
#define SYS_WRITEV 66
#define SYS_SENDFILE 71
#define SYS_PSELECT6 72
#define SYS_PPOLL 73
#define SYS_SPLICE 76
#define SYS_SYNC 81
#define SYS_FSYNC 82
#define SYS_FDATASYNC 83
#define SYS_SYNC_FILE_RANGE 84
#define SYS_WAITID 95
#define SYS_FUTEX 98
#define SYS_NANOSLEEP 101
#define SYS_CLOCK_NANOSLEEP 115
#define SYS_RESTART_SYSCALL 128
#define SYS_RT_SIGSUSPEND 133
#define SYS_RT_SIGTIMEDWAIT 137
#define SYS_MQ_TIMEDRECEIVE 183
#define SYS_MSGRCV 188
#define SYS_SEMTIMEDOP 192
#define SYS_SEMOP 193
#define SYS_ACCEPT 202
#define SYS_CONNECT 203
#define SYS_SENDTO 206
#define SYS_RECVFROM 207
#define SYS_SENDMSG 211
#define SYS_RECVMSG 212
#define SYS_MSYNC 227
#define SYS_ACCEPT4 242
#define SYS_RECVMMSG 243
#define SYS_WAIT4 260
#define SYS_SYNCFS 267
#define SYS_SENDMMSG 269
#define SYS_IO_PGETEVENTS 292

#else /* x86-64 */

#define SYS_READ 0
#define SYS_WRITE 1
#define SYS_POLL 7
#define SYS_READV 19
#define SYS_WRITEV 20
#define SYS_SELECT 23
#define SYS_MSYNC 26
#define SYS_PAUSE 34
#define SYS_NANOSLEEP 35
#define SYS_SENDFILE 40
#define SYS_CONNECT 42
#define SYS_ACCEPT 43
#define SYS_SENDTO 44
#define SYS_RECVFROM 45
#define SYS_SENDMSG 46
#define SYS_RECVMSG 47
#define SYS_WAIT4 61
#define SYS_SEMOP 65
#define SYS_MSGRCV 70
#define SYS_FCNTL 72
#define SYS_FLOCK 73
#define SYS_FSYNC 74
#define SYS_FDATASYNC 75
#define SYS_RT_SIGTIMEDWAIT 128
#define SYS_RT_SIGSUSPEND 130
#define SYS_SYNC 162
#define SYS_FUTEX 202
#define SYS_IO_GETEVENTS 208
#define SYS_RESTART_SYSCALL 219
#define SYS_SEMTIMEDOP 220
#define SYS_CLOCK_NANOSLEEP 230
#define SYS_EPOLL_WAIT 232
#define SYS_MQ_TIMEDRECEIVE 243
#define SYS_WAITID 247
#define SYS_PSELECT6 270
#define SYS_PPOLL 271
#define SYS_SPLICE 275
#define SYS_SYNC_FILE_RANGE 277
#define SYS_EPOLL_PWAIT 281
#define SYS_ACCEPT4 288
#define SYS_RECVMMSG 299
#define SYS_SYNCFS 306
#define SYS_SENDMMSG 307
#define SYS_IO_PGETEVENTS 333

#endif

/* The same everywhere since 5.1. */
#define SYS_IO_URING_ENTER 426
#define SYS_EPOLL_PWAIT2 441
#define SYS_FUTEX_WAITV 449
#define SYS_FUTEX_WAIT 455

static inline int syscall_is_epoll(__s64 number)
{
#ifdef SYS_EPOLL_WAIT
	if (number == SYS_EPOLL_WAIT)
		return 1;
#endif
	return number == SYS_EPOLL_PWAIT || number == SYS_EPOLL_PWAIT2;
}

/* What a system call does with the bytes of a socket, for the syscall backend. */
#define ROLE_READ 1U /* takes bytes from its first argument */
#define ROLE_SEND 2U /* gives bytes to its first argument */
#define ROLE_SPLICE 4U /* takes from its first and gives to its third */
#define ROLE_ACCEPT 8U /* returns a new descriptor */
#define ROLE_MESSAGES 16U /* with one of the above: returns messages, not bytes */

static inline __u32 syscall_role(__s64 number)
{
	switch (number) {
	case SYS_READ:
	case SYS_READV:
	case SYS_RECVFROM:
	case SYS_RECVMSG:
		return ROLE_READ;
	case SYS_RECVMMSG:
		return ROLE_READ | ROLE_MESSAGES;
	case SYS_WRITE:
	case SYS_WRITEV:
	case SYS_SENDTO:
	case SYS_SENDMSG:
	case SYS_SENDFILE:
		return ROLE_SEND;
	case SYS_SENDMMSG:
		return ROLE_SEND | ROLE_MESSAGES;
	case SYS_SPLICE:
		return ROLE_READ | ROLE_SPLICE;
	case SYS_ACCEPT:
	case SYS_ACCEPT4:
		return ROLE_ACCEPT;
	default:
		return 0;
	}
}

#endif
