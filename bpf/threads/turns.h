/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Locks at which workers take turns to wait for work (machine/words.h): what happens at each of
 * them is noted in the memory of words, and what each thread has to do with them in its state.
 */
#ifndef WORKLOAD_THREADS_TURNS_H
#define WORKLOAD_THREADS_TURNS_H

#include "threads/futex.h"
#include "threads/sleepers.h"

static inline void turn_note(__u64 hash, __u64 known, __u64 judged)
{
	if (judged != (known & ~WORD_TAG))
		word_note(hash, judged);
}

/*
 * The thread sleeps no longer at the lock at which it slept: did it wait for its turn there? It did
 * if it @waits for work now, with the lock. To be remembered a lock must look like it: there may be
 * many, and their processes come and go.
 */
static inline void turn_review_slept(struct thread *thread, int waits)
{
	struct word_turn *turn = &thread->turn;
	__u64 known = word_look_up(turn->hash), judged;
	__u32 now = 0;
	int lasts;

	if (bpf_probe_read_user(&now, sizeof(now), (const void *)turn->address))
		return;
	if (!known) {
		if (waits && word_stays(turn, now))
			word_note(turn->hash, 0);
		return;
	}
	lasts = waits && word_turn_lasts(turn, known, now);
	judged = word_judge_turn(known, lasts);
	turn_note(turn->hash, known, judged);
	if (!lasts)
		return;
	thread->turns |= TURN_TAKEN;
	if (judged & WORD_TAKES_TURNS) {
		turn->known_address = turn->address;
		thread->turns |= TURN_KNOWN;
	}
}

static inline void turn_review_known(const struct word_turn *turn)
{
	__u64 hash = word_of(bpf_get_current_task_btf(), turn->known_address);
	__u64 known = word_look_up(hash);
	__u32 now = 0;

	if (!bpf_probe_read_user(&now, sizeof(now), (const void *)turn->known_address))
		turn_note(hash, known, word_judge_free_turn(known, now));
}

static inline int turn_waits(const struct thread *thread, struct sleeper *sleeper, __u32 state)
{
	__u32 where = descriptor_of(sleeper);

	if (state != STATE_IDLE)
		return 0;
	if (sleeper->target == TARGET_UNKNOWN)
		target_find(sleeper, where, thread->client);
	return sleeper_waits_for_work(sleeper, where);
}

/* A thread that waits again at a word presumably lacks the lock. */
static inline void turn_review(struct thread *thread, struct sleeper *sleeper, __u32 state)
{
	__u32 turns = thread->turns;
	int waits;

	if (!turns)
		return;
	waits = turn_waits(thread, sleeper, state);
	thread->turns = turns & TURN_KNOWN;
	if (turns & TURN_SLEPT &&
	    (sleeper->syscall != SYS_FUTEX || sleeper->args[0] != thread->turn.address))
		turn_review_slept(thread, waits);
	if (turns & TURN_KNOWN && !(thread->turns & TURN_TAKEN) && waits &&
	    sleeper->target != TARGET_CLIENT)
		turn_review_known(&thread->turn);
}

/* Returns whether the current task, which goes to sleep at the lock, waits for its turn there. */
static inline int turn_begin(struct thread *thread, const struct sleeper *sleeper)
{
	__u64 hash = word_of(bpf_get_current_task_btf(), sleeper->args[0]);

	thread->turn.address = sleeper->args[0];
	thread->turn.hash = hash;
	thread->turn.expected = sleeper->args[2];
	thread->turns |= TURN_SLEPT;
	return word_is_turn(word_look_up(hash));
}

/* What may yet turn out to be a Mutex of Rust's standard library; 0: nothing. */
static inline __u64 word_may_be(const struct thread *thread)
{
	return thread->word.expected == RUST_MUTEX ? thread->word.address : 0;
}

static inline int turn_matters(const struct thread *thread, const struct sleeper *sleeper)
{
	return thread->turns || sleeper->lock || word_may_be(thread);
}

/* The current task goes to sleep, in @state unless it waits for its turn. Returns its state. */
VERIFIED_ALONE int turn_take(struct thread *thread, struct sleeper *sleeper, __u32 state)
{
	__u64 lock;

	if (!thread || !sleeper)
		return STATE_WAIT;
	turn_review(thread, sleeper, state);
	lock = sleeper->lock ? sleeper->lock : word_may_be(thread);
	if (sleeper_may_take_turns(sleeper, lock, state) && turn_begin(thread, sleeper))
		return STATE_IDLE;
	return (int)state;
}

/* A thread runs again that has slept at a lock. */
VERIFIED_ALONE int turn_pass(struct thread *thread)
{
	struct word_set *set;
	__u64 tag;

	if (!thread)
		return 0;
	thread->turn.passes = PASSES_UNKNOWN;
	set = word_set_of(thread->turn.hash);
	if (!set)
		return 0;
	tag = thread->turn.hash & WORD_TAG;
	for (int i = 0; i < WORDS_PER_SET; i++) {
		if ((set->word[i] & WORD_TAG) != tag)
			continue;
		__sync_fetch_and_add(&set->word[i], WORD_PASS);
		thread->turn.passes = word_passes(set->word[i]);
	}
	return 0;
}

/* Whether a thread that sleeps at a lock waits for its turn, as it may have shown since. */
static inline int turn_is_known(const struct thread *thread)
{
	return thread->turns & TURN_SLEPT && word_is_turn(word_look_up(thread->turn.hash));
}

#endif
