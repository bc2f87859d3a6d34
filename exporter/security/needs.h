/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a part of the exporter goes on doing after the start, beyond serving and reading maps: as
 * data, by which capabilities are kept and the sandbox is widened. An attacker that takes the
 * process over can do the same, so each part asks for the least (security/README.md).
 */
#ifndef WORKLOAD_SECURITY_NEEDS_H
#define WORKLOAD_SECURITY_NEEDS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAPABILITY(number) (1ULL << (number))
#define NEEDS_SETS_MAX 2U
#define SANDBOX_CONDITIONS_MAX 3U

/* What is asked of an argument: a register; where it is an int, the kernel takes 32 bits. */
struct sandbox_condition {
	unsigned int argument;
	uint64_t mask, value;
};

/* A system call that is allowed where all conditions hold; several rows of a call: one of them. */
struct sandbox_call {
	int number; /* SYS_, as syscall(2) takes it */
	unsigned int len;
	struct sandbox_condition conditions[SANDBOX_CONDITIONS_MAX];
};

#define IS(argument, value)                 \
	{                                   \
		argument, UINT64_MAX, value \
	}
#define INT_IS(argument, value)                         \
	{                                               \
		argument, UINT32_MAX, (uint32_t)(value) \
	}
#define WITHOUT(argument, bits)   \
	{                         \
		argument, bits, 0 \
	}
#define NONE_BUT(argument, bits)               \
	{                                      \
		argument, ~(uint64_t)(bits), 0 \
	}
#define INT_NONE_BUT(argument, bits)            \
	{                                       \
		argument, (uint32_t) ~(bits), 0 \
	}

#define SANDBOX_CONDITIONS(...)                                      \
	(sizeof((const struct sandbox_condition[]){ __VA_ARGS__ }) / \
	 sizeof(struct sandbox_condition))
/* SANDBOX_CALL(number, conditions...), and without any. */
#define SANDBOX_CALL(number, ...)                        \
	{                                                \
		number, SANDBOX_CONDITIONS(__VA_ARGS__), \
		{                                        \
			__VA_ARGS__                      \
		}                                        \
	}
#define SANDBOX_ANY(number)       \
	{                         \
		number, 0,        \
		{                 \
			{         \
				0 \
			}         \
		}                 \
	}

/* What pthread_create(3) asks for, as a condition on the flags of clone(2): no process. */
#define SANDBOX_THREAD_FLAGS                                                                \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)
#define A_THREAD(argument)                                                             \
	{                                                                              \
		argument, ~(uint64_t)SANDBOX_THREAD_FLAGS | CLONE_THREAD, CLONE_THREAD \
	}

struct needs {
	/* Sets of capabilities: each is enough on some kernels. They are tried in this order. */
	uint64_t capabilities[NEEDS_SETS_MAX];
	size_t capabilities_len;
	const struct sandbox_call *calls;
	size_t calls_len;
	unsigned int descriptors; /* that it may have open at the same time, if they are many */
	bool threads; /* it starts threads, which RLIMIT_NPROC counts */
	bool files; /* it opens files of other processes by path, which Landlock forbids */
};

#endif
