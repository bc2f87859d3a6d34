/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Profiles: stacks, and what was seen on them. A frame is a file and an address in it as linked:
 * free of where a process has mapped it, so that stacks of several processes are one, and may be
 * named after they have ended.
 */
#ifndef WORKLOAD_ABI_PROFILES_H
#define WORKLOAD_ABI_PROFILES_H

#include "abi/kernel_types.h"
#include "abi/threads.h"
#include "abi/unwind.h"

#define FRAMES_MAX 127U
#define STACKS_MAX 4096U
#define STACK_SETS 2U

/* STACK_END(identifier, label): why a stack has no more frames. */
#define STACK_END_LIST(STACK_END)                                                           \
	STACK_END(COMPLETE, "complete")                                                     \
	STACK_END(TRUNCATED, "truncated") /* FRAMES_MAX */                                  \
	STACK_END(NO_CODE, "process_unknown") /* it is not known yet which files it runs */ \
	STACK_END(NO_FILE, "code_of_no_file") /* nothing is mapped there, or no file */     \
	STACK_END(NO_RULE, "no_rule")                                                       \
	STACK_END(UNREADABLE, "unreadable")                                                 \
	STACK_END(ASTRAY, "astray")                                                         \
	STACK_END(CHANGED, "code_changed") /* while the stack was followed */               \
	STACK_END(BEGAN_BEFORE, "began_before") /* a wait, whose stack is not known */

enum stack_end {
#define STACK_END(id, label) STACK_##id,
	STACK_END_LIST(STACK_END)
#undef STACK_END
		STACK_ENDS,
};

static inline __u64 frame_make(__u32 file, __u64 address)
{
	return (__u64)file << 48 | (address & 0xffffffffffffULL);
}

static inline __u32 frame_file(__u64 frame)
{
	return (__u32)(frame >> 48);
}

static inline __u64 frame_address(__u64 frame)
{
	return frame & 0xffffffffffffULL;
}

#define HASH_LATER 1ULL

/* The system call in which a thread waits is a frame of no file; 0: it is in none. */
#define FRAMES_OF_SYSCALLS (1ULL << 40)
#define SYSCALLS_MAX 1024

static inline __u64 frame_of_syscall(__s32 number)
{
	return number >= 0 && number < SYSCALLS_MAX ? FRAMES_OF_SYSCALLS + (__u64)number : 0;
}

/* Its number; negative: @frame is something else. */
static inline __s32 frame_syscall(__u64 frame)
{
	return frame >= FRAMES_OF_SYSCALLS && frame < FRAMES_OF_SYSCALLS + SYSCALLS_MAX
		       ? (__s32)(frame - FRAMES_OF_SYSCALLS)
		       : -1;
}

/* What a stack is of that no thread_state is: page faults, without and with a wait for what had to
 * be read, or was being read. */
enum fault_state {
	FAULT_MINOR = STATES + 1,
	FAULT_MAJOR,
	STACK_STATES,
};

/* Of so many minor faults of a CPU one is looked at: a prime, as code has rhythms. */
#define MINOR_FAULTS_EACH 31U

struct stack_key {
	__u64 hash; /* of the pool's name, the frames and the end */
	__u32 tree;
	__u32 state; /* enum thread_state, or fault_state */
};
_Static_assert(sizeof(struct stack_key) == 16, "struct stack_key has a hole");

/*
 * A frame is an address in code: where a call was made, that of the byte before it returns.
 *
 * With state RUNNING: samples of CPU time. With one of enum fault_state: page faults. With another
 * one: waits that were spent in it, and for a CPU behind that. Those that are not sampled are made
 * up for by the others, which stand for several. A wait can last longer than its stack is kept
 * here: what is told of it later has no frames, ends with STACK_BEGAN_BEFORE, and its hash is that
 * of the stack with HASH_LATER. So does what is told of one that began before the look, and its
 * hash is by pool.
 *
 * Hashes `stacks_0` and `stacks_1`: programs write the one that `profiling` names; user space reads
 * the other once no program is in it any more (struct profiled).
 */
struct stack {
	__u64 samples; /* or faults, or waits that began */
	__u64 ns; /* of waits, in the state of the key */
	__u64 woken; /* of waits that are over, */
	__u64 queued_ns; /* the time until a CPU was free */
	__u64 pool[2]; /* its name, as in struct pool_info */
	__u32 end; /* enum stack_end */
	__u32 len;
	__u64 frames[FRAMES_MAX]; /* innermost first */
};
_Static_assert(sizeof(struct stack) == 56 + 8 * FRAMES_MAX, "struct stack has a hole");

/* What the iterator profiles_waits writes: of a wait that lasts, what was not told yet. */
struct wait_told {
	struct stack_key key; /* of its stack */
	__u64 ns;
	__u64 pool[2]; /* as in struct stack */
	__u64 woken; /* whether it lasts for want of a CPU only */
};
_Static_assert(sizeof(struct wait_told) == 48, "struct wait_told has a hole");

/* Array `profiling`, of one, written by user space. */
struct profiling {
	__u64 set; /* of stacks, that is written to */
	__u64 looks; /* whether waits are looked at */
};
_Static_assert(sizeof(struct profiling) == 16, "struct profiling has a hole");

/* In the states of a look: also the time until a CPU is free, behind those that are looked at. */
#define LOOK_QUEUED (1ULL << 63)

/* Bits of states, as in a look. */
#define STATES_OF_WAITS (((1ULL << STATES) - 1) & ~(1ULL << STATE_RUNNING))
#define STATES_OF_FAULTS (1ULL << FAULT_MINOR | 1ULL << FAULT_MAJOR)

/* Array `looked_at`, by tree, written by user space: which waits and faults of its threads are
 * looked at. */
struct look {
	__u64 since_ns; /* CLOCK_MONOTONIC, another one for each look at waits; 0: there is none */
	__u64 states; /* 1 << the state of each that is; LOOK_QUEUED */
};
_Static_assert(sizeof(struct look) == 16, "struct look has a hole");

/* Of a process: which slot of `process_code` is its own. */
struct code_slot {
	__u32 slot; /* 0: none */
	__u32 exec_id; /* of the program that it was when that was read */
	__u64 owner; /* as in the slot, unless that is another's by now */
};
_Static_assert(sizeof(struct code_slot) == 16, "struct code_slot has a hole");

/* Array `profiled`: of each CPU PROFILED_ROWS, which it alone writes: one by programs that nothing
 * interrupts, and one by those of faults, which wakeups may interrupt. */
#define PROFILED_ROWS 2U
struct profiled {
	__u64 entered[STACK_SETS]; /* programs that write to a set, */
	__u64 left[STACK_SETS]; /* and those that have done so */
	__u64 lost[STACK_SETS]; /* samples that found no room there, ever */
};
_Static_assert(sizeof(struct profiled) == 48, "struct profiled has a hole");

#endif
