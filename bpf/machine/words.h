/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of words that threads have waited for, where a wait alone does not tell a lock from
 * a park: a bounded memory of scores. A lock's word comes back to what it was, a counter does not.
 */
#ifndef WORKLOAD_MACHINE_WORDS_H
#define WORKLOAD_MACHINE_WORDS_H

#include "abi/locks.h"

#define WORD_SCORE 0x7ULL /* how often it behaved like a lock's */
#define WORD_TURNS 0x30ULL /* and like one of threads that take turns */
#define WORD_TURN 0x10ULL
#define WORD_TAKES_TURNS 0x40ULL /* it did so all the time, once */
#define WORD_COUNTS 0x80ULL /* it was waited for with several values: never a lock */
#define WORD_TAG 0xffffffffffff00ULL
#define WORD_PASS (1ULL << 56) /* a byte: how many threads have been woken at it */
#define WORD_SCORE_LOCK 2U /* from which it is taken for one */

/* Its tag is never 0 but in 1 of 2^48 words, which then is not remembered. */
static inline __u64 word_hash(__u64 process, __u64 address)
{
	__u64 hash = process * 0x9e3779b97f4a7c15ULL + address;

	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ULL;
	return hash ^ hash >> 32;
}

static inline __u64 word_known(const struct word_set *set, __u64 hash)
{
	__u64 tag = hash & WORD_TAG, known = 0;

	for (int i = 0; i < WORDS_PER_SET; i++)
		if ((set->word[i] & WORD_TAG) == tag)
			known = set->word[i];
	return known;
}

static inline int word_is_lock(__u64 known)
{
	return !(known & WORD_COUNTS) && (known & WORD_SCORE) >= WORD_SCORE_LOCK;
}

/*
 * Remembers @hash with @bits. Returns 1 if another word had to be forgotten, the one that @random
 * picks. Two CPUs may write one set at once: a score is lost then, and comes again.
 */
static inline int word_remember(struct word_set *set, __u64 hash, __u64 bits, __u64 random)
{
	__u64 tag = hash & WORD_TAG;
	int at = -1, forgotten = 0;

	for (int i = 0; i < WORDS_PER_SET; i++)
		if (!set->word[i])
			at = i;
	for (int i = 0; i < WORDS_PER_SET; i++)
		if ((set->word[i] & WORD_TAG) == tag)
			at = i;
	if (at < 0) {
		at = random & (WORDS_PER_SET - 1);
		forgotten = 1;
	}
	set->word[at & (WORDS_PER_SET - 1)] = tag | bits;
	return forgotten;
}

/*
 * What the memory says of a word at which a thread has waited for @expected, and which shows @now
 * when it has gone on. Rust's Mutex is 0, 1 or 2 then, while a Condvar has counted further; a
 * RwLock has an owner or others that wait, while a parked thread's word is 0, 1 or -1.
 */
static inline __u64 word_judge(__u64 known, __u32 expected, __u32 now)
{
	__u64 score = known & WORD_SCORE;

	if (expected == ~0U) {
		if (now > 1)
			score += now != ~0U && score < WORD_SCORE;
		else
			score -= score > 0;
	} else if (now > expected) {
		return WORD_COUNTS;
	} else {
		score += score < WORD_SCORE;
	}
	return (known & ~(WORD_TAG | WORD_SCORE)) | score;
}

/* --- turns ------------------------------------------------------------------------------------ */

/*
 * Workers may take turns to wait for work: the one that has a lock does so, and the others wait for
 * the lock (`rx.lock().unwrap().recv()` in Rust). Which lock that is shows when a thread that was
 * woken at it goes to wait for work with the lock still in its hands. Whose a lock is cannot be
 * read everywhere, but giving it back makes it free or wakes the next one: it is still the thread's
 * if the word shows what it has shown before, and no other thread has been woken at it since.
 */
struct word_turn {
	/* TURN_SLEPT: the lock at which a thread slept, and has not slept elsewhere since; */
	__u64 address;
	__u64 hash;
	__u32 expected;
	__u32 passes; /* when the thread was woken, or PASSES_UNKNOWN */
	/* TURN_KNOWN: the one at which it has taken turns last; TURN_TAKEN: just now. */
	__u64 known_address;
};

#define PASSES_UNKNOWN (~0U)

static inline __u32 word_passes(__u64 known)
{
	return known / WORD_PASS;
}

static inline int word_is_turn(__u64 known)
{
	return (known & WORD_TURNS) != 0;
}

#define WORD_WAITERS 0x80000000U /* FUTEX_WAITERS: only while there are some, with musl */

static inline int word_stays(const struct word_turn *turn, __u32 now)
{
	return now && !((now ^ turn->expected) & ~WORD_WAITERS);
}

static inline int word_turn_lasts(const struct word_turn *turn, __u64 known, __u32 now)
{
	return word_stays(turn, now) && word_passes(known) == turn->passes;
}

/*
 * What the memory says of a lock when a thread that was woken at it goes to sleep elsewhere:
 * waiting for work with the lock in its hands, if @turn. Where there is always work, the thread
 * that gets the lock does not wait with it: then it is a lock like any other, and contended.
 */
static inline __u64 word_judge_turn(__u64 known, int turn)
{
	__u64 turns = known & WORD_TURNS, other = known & ~(WORD_TAG | WORD_TURNS);

	if (turn)
		turns += turns < WORD_TURNS ? WORD_TURN : 0;
	else
		turns -= turns ? WORD_TURN : 0;
	return turns == WORD_TURNS ? other | turns | WORD_TAKES_TURNS : other | turns;
}

/*
 * The same when a thread goes to wait for work that has not slept at the lock before, but has in
 * former times; the word shows @now. If the lock is held now, and turns are taken at it, this
 * thread holds it: there was too much work before, and now there is none.
 */
static inline __u64 word_judge_free_turn(__u64 known, __u32 now)
{
	__u64 bits = known & ~WORD_TAG;

	return now && known & WORD_TAKES_TURNS && !word_is_turn(known) ? bits | WORD_TURN : bits;
}

#endif
