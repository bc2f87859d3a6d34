/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that a thread holds while it waits for work, and at which others wait for their turn. */
#include "sleeper_rows.h"

#include "machine/words.h"

#define HELD 2U /* as glibc and Rust wait for it */
#define MUSL 0x80000010U

static uint64_t judged(uint64_t known, int turn, int times)
{
	while (times--)
		known = word_judge_turn(known, turn);
	return known;
}

Test(lock_turns, a_lock_with_which_a_thread_waits_for_work_is_one_at_once)
{
	cr_expect(!word_is_turn(0));
	cr_expect(word_is_turn(judged(0, 1, 1)));
	cr_expect(word_is_turn(judged(0, 1, 100)));
	cr_expect_eq(judged(0, 1, 100), judged(0, 1, 3), "nothing else is learnt from it");
	cr_expect(!word_is_turn(judged(0, 0, 100)));
}

Test(lock_turns, where_there_is_always_work_it_is_a_lock_like_any_other)
{
	uint64_t known = judged(0, 1, 100);

	cr_expect(word_is_turn(judged(known, 0, 2)), "two requests at once are no load");
	cr_expect(!word_is_turn(judged(known, 0, 3)));
	cr_expect(!word_is_turn(judged(judged(0, 1, 1), 0, 1)));
	cr_expect(word_is_turn(judged(judged(known, 0, 100), 1, 1)), "after the load");
}

/* A thread that finds it free does not sleep at it: it is asked for what it knows. */
Test(lock_turns, the_first_who_waits_for_work_after_a_load_has_the_lock)
{
	uint64_t known = judged(judged(0, 1, 3), 0, 100);

	cr_expect(!word_is_turn(word_judge_free_turn(known, 0)), "nobody has it");
	cr_expect(word_is_turn(word_judge_free_turn(known, 1)));
	cr_expect(word_is_turn(word_judge_free_turn(known, HELD)));
	cr_expect_eq(word_judge_free_turn(judged(0, 1, 3), 1), judged(0, 1, 3));
}

/* That a thread went to wait for work with it in its hands may be an error once. */
Test(lock_turns, of_a_lock_that_is_contended_nobody_knows_that_turns_are_taken)
{
	uint64_t known = 0;

	for (int i = 0; i < 100; i++)
		known = judged(judged(known, 1, 1), 0, 1);
	cr_expect(!word_is_turn(word_judge_free_turn(known, HELD)));
	cr_expect(!word_is_turn(word_judge_free_turn(word_judge(0, HELD, HELD), HELD)));
}

static int lasts(uint32_t expected, uint32_t now, uint32_t passes_then, uint32_t passes_now)
{
	struct word_turn turn = { .expected = expected, .passes = passes_then };

	return word_turn_lasts(&turn, 0x5500 | passes_now * WORD_PASS, now);
}

Test(lock_turns, a_lock_is_given_back_if_it_is_free_or_another_thread_was_woken_at_it)
{
	cr_expect(lasts(HELD, HELD, 7, 7));
	cr_expect(lasts(HELD, HELD, 255, 255));
	cr_expect(!lasts(HELD, 0, 7, 7), "free");
	cr_expect(!lasts(HELD, 1, 7, 7), "somebody has it who did not sleep");
	cr_expect(!lasts(HELD, HELD, 7, 8), "somebody has it who did");
	cr_expect(!lasts(HELD, HELD, 255, 0));
	cr_expect(!lasts(0, 0, 7, 7), "free, with priority inheritance");
	cr_expect(!lasts(HELD, HELD, PASSES_UNKNOWN, 255), "it was not remembered then");
}

/* The bit says that others wait, as a thread that waits sees it. */
Test(lock_turns, a_mutex_of_musl_is_held_with_and_without_others_that_wait)
{
	cr_expect(lasts(MUSL, 16, 0, 0));
	cr_expect(lasts(MUSL, MUSL, 0, 0));
	cr_expect(!lasts(MUSL, 0, 0, 0));
	cr_expect(!lasts(MUSL, 17, 0, 0), "another thread has it");
}

Test(lock_turns, what_else_is_known_of_a_word_stays)
{
	struct word_set set = { 0 };
	uint64_t hash = word_hash(1, 0x7f0000001000), known = 3 * WORD_PASS;

	for (int i = 0; i < 3; i++)
		known = judged(word_judge(known, 2, 2), 1, 1);
	word_remember(&set, hash, known, 0);
	for (int i = 0; i < 254; i++)
		for (int at = 0; at < WORDS_PER_SET; at++)
			set.word[at] += set.word[at] ? WORD_PASS : 0;
	known = word_known(&set, hash);
	cr_expect(word_is_lock(known));
	cr_expect(word_is_turn(known));
	cr_expect_eq(word_passes(known), 1, "of 256");
	cr_expect_eq(word_judge_turn(known, 1) & WORD_TAG, 0);
	cr_expect_eq(word_passes(word_judge_turn(known, 1)), 1);
	cr_expect_eq(word_passes(word_judge(known, 2, 2)), 1);
}

static struct sleeper at_a_lock(void)
{
	return (struct sleeper){ .syscall = NR_FUTEX,
				 .args = { THE_LOCK, PRIVATE, 2 },
				 .lock = THE_LOCK };
}

Test(lock_turns, are_taken_outside_of_requests_and_after_answers)
{
	struct sleeper sleeper = at_a_lock();

	cr_expect(sleeper_may_take_turns(&sleeper, THE_LOCK, STATE_LOCK));
	sleeper.in_request = IN_ANSWER;
	cr_expect(sleeper_may_take_turns(&sleeper, THE_LOCK, STATE_LOCK));
	cr_expect(sleeper_may_take_turns(&sleeper, THE_LOCK, STATE_IDLE), "known as a turn");
	cr_expect(!sleeper_may_take_turns(&sleeper, THE_LOCK, STATE_WAIT));
	sleeper.in_request = IN_SERVICE;
	cr_expect(!sleeper_may_take_turns(&sleeper, THE_LOCK, STATE_LOCK));
}

Test(lock_turns, are_not_seen_at_locks_of_several_processes_nor_of_threads_that_sleep_elsewhere)
{
	struct sleeper sleeper = at_a_lock();

	cr_expect(!sleeper_may_take_turns(&sleeper, 0, STATE_LOCK));
	cr_expect(!sleeper_may_take_turns(&sleeper, THE_LOCK + 8, STATE_LOCK), "parking_lot");
	sleeper.args[3] = 0x7000;
	cr_expect(!sleeper_may_take_turns(&sleeper, THE_LOCK, STATE_LOCK), "it may give up");
	sleeper = at_a_lock();
	sleeper.args[1] = SHARED;
	cr_expect(!sleeper_may_take_turns(&sleeper, THE_LOCK, STATE_LOCK));
}
