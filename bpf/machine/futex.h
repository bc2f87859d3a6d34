/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a futex wait is one for a lock. The value that is waited for does not tell: a counter
 * takes every value once. So it is told by evidence: by the code that waits, by what lies around
 * the word, and for what shows neither by what became of the word (machine/words.h). What remains
 * ambiguous is a park. Which libraries wait how was recorded; see tests/unit/test_futex.c.
 */
#ifndef WORKLOAD_MACHINE_FUTEX_H
#define WORKLOAD_MACHINE_FUTEX_H

#include "abi/kernel_types.h"

/* include/uapi/linux/futex.h */
#define FUTEX_PRIVATE_FLAG 0x80U
#define FUTEX_CLOCK_REALTIME 0x100U
#define FUTEX_CMD_MASK 0x7fU /* without the two flags above */
#define FUTEX_WAIT 0U
#define FUTEX_LOCK_PI 6U
#define FUTEX_WAIT_BITSET 9U
#define FUTEX_LOCK_PI2 13U

#define FUTEX_TID_MAX 0x400000U /* include/linux/threads.h: PID_MAX_LIMIT */
#define FUTEX_TID_MASK 0x3fffffffU

#define FUTEX_OWN_FRAME_BYTES 512ULL

/* A word that a thread waits for to change. */
struct futex_wait {
	__u64 word; /* its address */
	__u32 op;
	__u32 expected;
	__u32 timed;
	__u32 own_frame; /* the word is in the frame of the function that waits */
};

/* What there is to see in the memory of a thread that waits; what cannot be read is 0. */
struct futex_sight {
	union { /* one of them, as is asked */
		__u64 code[4]; /* up to the end of the instruction that made the system call */
		__u64 before[4]; /* up to the word */
		__u32 rwlock[8]; /* from futex_rwlock() on */
	};
	__u32 words[10]; /* from the word on */
	__u64 key; /* at the address that is the first of `before` */
	__u64 pointer; /* and that is an address */
};

enum futex_question {
	FUTEX_PARK, /* nothing to look at */
	FUTEX_LOCK,
	FUTEX_ASK_CODE, /* glibc's mutexes and other locks; Go's locks; musl's rwlocks */
	FUTEX_ASK_OWNER, /* glibc's robust mutexes; musl's mutexes, streams and own locks */
	FUTEX_ASK_RWLOCK, /* glibc's rwlocks, and its mutexes with a timeout */
	FUTEX_ASK_KEY, /* parking_lot */
	FUTEX_ASK_WORD, /* Rust's standard library */
};

static inline int futex_is_tid(__u32 value)
{
	return value && value <= FUTEX_TID_MAX;
}

/*
 * An owner's thread id, with a bit that says that others wait: glibc's robust mutexes, musl's
 * mutexes (FUTEX_WAITERS; of a normal one the owner is EBUSY) and streams, and the locks that musl
 * itself uses, where it is a number of threads.
 */
static inline int futex_has_owner(__u32 expected)
{
	return expected & ~FUTEX_TID_MASK && futex_is_tid(expected & FUTEX_TID_MASK);
}

static inline __u32 futex_ask_wait(const struct futex_wait *wait)
{
	switch (wait->expected) {
	case 1:
		return wait->op & FUTEX_PRIVATE_FLAG ? FUTEX_ASK_KEY : FUTEX_PARK;
	case 2:
	case ~0U:
		return FUTEX_ASK_CODE;
	default:
		return futex_has_owner(wait->expected) ? FUTEX_ASK_OWNER : FUTEX_PARK;
	}
}

/*
 * glibc waits with a bitset wherever there may be a timeout, against CLOCK_REALTIME if there is
 * none; Rust waits so always, and has no clock where it has no timeout.
 */
static inline __u32 futex_ask_bitset(const struct futex_wait *wait)
{
	__u32 flags = wait->op & (FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);

	if (!wait->timed && flags == FUTEX_PRIVATE_FLAG)
		return FUTEX_ASK_WORD;
	if (futex_has_owner(wait->expected))
		return FUTEX_ASK_OWNER;
	if (wait->expected == 2 || wait->expected == 3 || (wait->expected & 6) == 6)
		return FUTEX_ASK_RWLOCK;
	return FUTEX_PARK;
}

static inline __u32 futex_ask(const struct futex_wait *wait)
{
	/* musl's condition variable waits for a 2 in the frame of pthread_cond_wait itself. */
	if (wait->own_frame)
		return FUTEX_PARK;
	switch (wait->op & FUTEX_CMD_MASK) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return FUTEX_LOCK;
	case FUTEX_WAIT:
		return futex_ask_wait(wait);
	case FUTEX_WAIT_BITSET:
		return futex_ask_bitset(wait);
	default:
		return FUTEX_PARK;
	}
}

/* --- by the code ------------------------------------------------------------------------------ */

#if defined(__TARGET_ARCH_arm64) || (!defined(WORKLOAD_BPF) && defined(__aarch64__))

/* mov x2, #2 or mov w2, #2 among the last eight instructions */
static inline int code_waits_for_two(const __u64 code[4])
{
	int found = 0;

	for (int i = 0; i < 4; i++) {
		found |= ((__u32)code[i] | 0x80000000U) == 0xd2800042U;
		found |= ((__u32)(code[i] >> 32) | 0x80000000U) == 0xd2800042U;
	}
	return found;
}

/* ldr x4, [sp, #32]; ldrsw x5, [sp, #40]; mov x8, #SYS_futex; svc #0 */
static inline int code_is_go(const __u64 code[4])
{
	return code[2] == 0xb9802be5f94013e4ULL && code[3] == 0xd4000001d2800c48ULL;
}

/* glibc: mov x6, x7; svc #0 */
static inline int code_is_syscall(const __u64 code[4])
{
	return code[3] == 0xd4000001aa0703e6ULL;
}

#else

/*
 * mov $2, %edx somewhere among the last 32 bytes. No decision but the loop's, and a compiler that
 * knew what is shifted would make one: the verifier follows every path (as in machine/names.h).
 */
static inline int code_waits_for_two(const __u64 code[4])
{
	__u64 window = 0, found = 0, difference;

	for (int i = 0; i < 32; i++) {
		window = (window << 8 | (code[i / 8] >> i % 8 * 8 & 0xff)) & 0xffffffffffULL;
		difference = (window ^ 0xba02000000ULL) - 1;
		__asm__("" : "+r"(difference));
		found |= difference >> 63;
	}
	return (int)found;
}

/* mov 0x20(%rsp), %r8; mov 0x28(%rsp), %r9d; mov $SYS_futex, %eax; syscall */
static inline int code_is_go(const __u64 code[4])
{
	return code[2] == 0x244c8b442024448bULL && code[3] == 0x050f000000cab828ULL;
}

/* glibc: mov 8(%rsp), %r9; syscall. musl: mov 0x10(%rdx), %rsi; mov 0x18(%rdx), %rdx; syscall */
static inline int code_is_syscall(const __u64 code[4])
{
	return code[3] >> 8 == 0x050f08244c8b4cULL || code[3] == 0x050f18528b481072ULL;
}

#endif

/*
 * glibc (sysdeps/nptl/bits/struct_mutex.h): lock, count, owner, nusers, kind, spins, list. The
 * owner is another thread, or it would not be waited for.
 */
static inline int mutex_is_owned(const struct futex_wait *wait, const __u32 words[10])
{
	__u32 kind = words[4], shared = !(wait->op & FUTEX_PRIVATE_FLAG);
	__u32 adapts = (kind & 3) == 3 || kind & 0x300; /* PTHREAD_MUTEX_ADAPTIVE_NP, elision */
	__u32 robust = kind & 0x10;

	if (!futex_is_tid(words[2]) || !futex_is_tid(words[3]) || kind & ~0x3f3U)
		return 0;
	if (shared != !!(kind & 0x80) || !words[1] != ((kind & 3) != 1) || (words[5] && !adapts))
		return 0;
	return robust || !(words[6] | words[7] | words[8] | words[9]);
}

/*
 * musl (src/internal/pthread_impl.h): a rwlock that is written, with others that wait: lock,
 * waiters, shared. A semaphore looks the same but for the last, which is the flag of its futexes.
 */
static inline int musl_rwlock_is_written(const struct futex_wait *wait, const __u32 words[10])
{
	__u32 shared = ~wait->op & FUTEX_PRIVATE_FLAG;

	return futex_is_tid(words[1]) && words[2] == shared;
}

/*
 * Go's runtime parks threads at 0, and waits for its locks at 2 or, since 1.24, at -1, on a
 * semaphore of the thread. What a program waits for by syscall(3) is none of the C library's locks:
 * so C++ waits for atomic variables.
 */
static inline int futex_code_is_lock(const struct futex_wait *wait, const struct futex_sight *sight)
{
	if (code_is_go(sight->code))
		return 1;
	if (code_is_syscall(sight->code))
		return 0;
	if (wait->expected == ~0U)
		return musl_rwlock_is_written(wait, sight->words);
	return code_waits_for_two(sight->code) || mutex_is_owned(wait, sight->words);
}

/* A program may count in the words of a futex of its own, for which it calls by syscall(3). */
static inline int futex_owner_is_lock(const struct futex_sight *sight)
{
	return !code_is_syscall(sight->code);
}

/* --- by what is around the word --------------------------------------------------------------- */

/*
 * Where the rwlock begins that the word belongs to. It is aligned to 8 bytes, and a condition
 * variable as well.
 *
 * glibc (sysdeps/nptl/bits/struct_rwlock.h): readers, writers, wrphase_futex, writers_futex, two of
 * padding, cur_writer, shared.
 */
static inline __u64 futex_rwlock(const struct futex_wait *wait)
{
	if (wait->word & 4)
		return wait->word - 12;
	return wait->expected <= 3 ? wait->word - 8 : wait->word;
}

/* nptl/pthread_rwlock_common.c: the low bits of readers */
#define RWLOCK_WRPHASE 1U
#define RWLOCK_WRLOCKED 2U
#define RWLOCK_READERS(readers) ((readers) >> 3)

/* Whether it may be one, held or free. */
static inline int rwlock_fits(const struct futex_wait *wait, const __u32 rwlock[8])
{
	__u32 shared = !(wait->op & FUTEX_PRIVATE_FLAG);

	return rwlock[2] <= 3 && rwlock[3] <= 3 && !rwlock[4] && !rwlock[5] && rwlock[7] == shared;
}

/*
 * A thread has it, and in the way in which this one waits: a reader for the end of the writers'
 * phase, a writer for its beginning, or for another writer; a reader that must let writers pass
 * waits on `readers` itself.
 */
static inline int rwlock_is_held(const struct futex_wait *wait, const __u32 rwlock[8])
{
	__u32 readers = rwlock[0], phase = readers & (RWLOCK_WRPHASE | RWLOCK_WRLOCKED);
	__u32 written = futex_is_tid(rwlock[6]);

	if (!rwlock_fits(wait, rwlock) || !(rwlock[3] & 1) || !(readers & RWLOCK_WRLOCKED))
		return 0;
	if (wait->word & 4)
		return wait->expected == 3 && (written || RWLOCK_READERS(readers));
	if (wait->expected == 2)
		return phase == RWLOCK_WRLOCKED && RWLOCK_READERS(readers);
	return phase == (RWLOCK_WRPHASE | RWLOCK_WRLOCKED) && written;
}

/*
 * @known: a rwlock has been seen there that was held. Between the thread's look at it and this one
 * it may be given back: of the waits for rwlocks that are held for 2 ms that are 3 to 11 %.
 */
static inline int futex_rwlock_is_lock(const struct futex_wait *wait,
				       const struct futex_sight *sight, int known)
{
	return rwlock_is_held(wait, sight->rwlock) || (known && rwlock_fits(wait, sight->rwlock)) ||
	       (wait->expected == 2 && wait->timed && mutex_is_owned(wait, sight->words));
}

/*
 * parking_lot parks each thread on a word of its own, before which it says for what (struct
 * ThreadData of parking_lot_core): key, next_in_queue, unpark_token (0 or 1), park_token; behind it
 * whether there is a timeout. The key is the address of a condition variable, a mutex (one byte) or
 * a rwlock (one word), there with a bit set for a writer that waits for the last readers to leave.
 */
#define PARKING_LOT_PARKED 2U /* bit of a mutex: others wait */
#define PARKING_LOT_WAITERS 3ULL /* bits of a rwlock: others wait */
#define PARKING_LOT_HELD_MAX 0x10000000ULL /* 8 for a writer, 16 for each reader */

static inline __u64 futex_key(const struct futex_sight *sight)
{
	return sight->before[0] & ~1ULL;
}

static inline int parking_lot_thread(const struct futex_wait *wait, const struct futex_sight *sight)
{
	return sight->before[0] && !(sight->before[1] & 7) && sight->before[2] <= 1 &&
	       !(sight->before[3] & 3) && sight->before[3] <= 20 &&
	       (sight->words[1] & 0xff) == wait->timed;
}

/* A condition variable is the address of its mutex. */
static inline int futex_key_is_lock(const struct futex_wait *wait, const struct futex_sight *sight)
{
	__u64 state = sight->key;

	if (!parking_lot_thread(wait, sight))
		return 0;
	if (!sight->before[3])
		return (state & 0xfe) == PARKING_LOT_PARKED && !sight->pointer;
	return state & PARKING_LOT_WAITERS && state > PARKING_LOT_WAITERS &&
	       state < PARKING_LOT_HELD_MAX;
}

/* --- by what becomes of the word -------------------------------------------------------------- */

/*
 * Rust's RwLock: a word of state, and behind it one that writers wait for, a counter. The low bits
 * tell its holders: a number of readers, or all bits for a writer.
 */
#define RUST_WRITERS_WAIT 0x80000000U
#define RUST_READERS_WAIT 0x40000000U
#define RUST_MUTEX 2U /* contended */

static inline int rust_rwlock_is_held(__u32 state)
{
	__u32 held = state & FUTEX_TID_MASK;

	return state != ~0U && (futex_is_tid(held) || held == FUTEX_TID_MASK);
}

static inline __u32 rust_state(const struct futex_sight *sight)
{
	return sight->before[3] >> 32;
}

enum futex_word {
	WORD_IS_LOCK, /* certainly */
	WORD_IS_STATE, /* certainly, of a rwlock: the word before */
	WORD_MAY_BE, /* if that is known of it */
	WORD_MAY_BE_STATE, /* or of the word before */
	WORD_IS_PARK,
};

/*
 * What Rust's standard library waits for: a Mutex for 2, as a Condvar does that has counted to 2; a
 * reader of a RwLock for all bits set, as a parked thread does.
 */
static inline __u32 futex_word_kind(const struct futex_wait *wait, const struct futex_sight *sight)
{
	__u32 state = rust_state(sight);

	if (wait->expected & RUST_READERS_WAIT && rust_rwlock_is_held(wait->expected))
		return WORD_IS_LOCK;
	if (state & RUST_WRITERS_WAIT && rust_rwlock_is_held(state))
		return WORD_IS_STATE;
	if (wait->expected == ~0U || wait->expected == RUST_MUTEX)
		return WORD_MAY_BE;
	return state == ~0U ? WORD_MAY_BE_STATE : WORD_IS_PARK;
}

#endif
