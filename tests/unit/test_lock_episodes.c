/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdint.h>

#include "machine/threads.h"

#define US 1000ULL
#define MS 1000000ULL
#define START (5000 * MS)
#define LOCK_A 0x7f0000001000ULL
#define LOCK_B 0x7f0000001008ULL

/* --- lock waits: episodes --------------------------------------------------------------------- */

/* One thread, its clock, and what was observed. The hooks' part: what is called, and in which
 * order. */
struct story {
	struct thread thread;
	uint64_t now;
	uint64_t observed_ns[8];
	int observations;
};

static struct story story_begin(void)
{
	struct story story = { .thread = { .where = thread_where(1, STATE_RUNNING),
					   .since_ns = START },
			       .now = START };

	return story;
}

static void story_state(struct story *story, uint32_t state)
{
	story->thread.where = thread_where(1, state);
	story->thread.since_ns = story->now;
}

static void story_run(struct story *story, uint64_t ns)
{
	story->now += ns;
}

static void story_block(struct story *story, uint32_t state, uint64_t lock)
{
	__u64 waited = UINT64_MAX;

	if (where_state(story->thread.where) == STATE_RUNNING)
		thread_ran(&story->thread, story->now);
	else
		thread_ran_unseen(&story->thread);
	if (thread_block(&story->thread, state, lock, story->now, &waited))
		story->observed_ns[story->observations++ % 8] = waited;
	else
		cr_expect_eq(waited, UINT64_MAX, "output touched although nothing is over");
	story_state(story, state);
}

static void story_resume(struct story *story)
{
	thread_resume(&story->thread, story->now);
	story_state(story, STATE_RUNNING);
}

/* Blocks for @ns; the last @queued_ns of them it is awake and has no CPU. */
static void story_wait(struct story *story, uint32_t state, uint64_t lock, uint64_t ns,
		       uint64_t queued_ns)
{
	story_block(story, state, lock);
	story->now += ns - queued_ns;
	story_state(story, STATE_RUNNABLE);
	story->now += queued_ns;
	story_resume(story);
}

static void story_lock(struct story *story, uint64_t lock, uint64_t ns)
{
	story_wait(story, STATE_LOCK, lock, ns, 0);
}

static void story_preempt(struct story *story, uint64_t ns)
{
	thread_ran(&story->thread, story->now);
	story_state(story, STATE_RUNNABLE);
	story->now += ns;
	story_resume(story);
}

/* Any sleep that is not for a lock shows what was pending. */
static void story_end(struct story *story)
{
	story_wait(story, STATE_IDLE, 0, MS, 0);
}

static void expect_observed(const struct story *story, int count, const uint64_t *ns)
{
	cr_assert_eq(story->observations, count, "%d episodes", story->observations);
	for (int i = 0; i < count; i++)
		cr_expect_eq(story->observed_ns[i], ns[i], "%d: %lu ns", i, story->observed_ns[i]);
}

#define EXPECT_OBSERVED(story, ...)                                                    \
	expect_observed(story, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
			(const uint64_t[]){ __VA_ARGS__ })

Test(lock_episodes, a_single_wait_is_an_episode_of_its_length)
{
	struct story story = story_begin();

	story_run(&story, MS);
	story_lock(&story, LOCK_A, 300 * US);
	story_run(&story, MS);
	story_end(&story);
	EXPECT_OBSERVED(&story, 300 * US);
}

/* The caller of pthread_mutex_lock returns when it runs again. */
Test(lock_episodes, the_time_until_a_cpu_is_free_belongs_to_the_wait)
{
	struct story story = story_begin();

	story_wait(&story, STATE_LOCK, LOCK_A, 300 * US, 120 * US);
	story_end(&story);
	EXPECT_OBSERVED(&story, 300 * US);
}

/* A kernel may hide a switch. Then the wait is as long as is certain, and no other one is longer.
 */
Test(lock_episodes, a_wait_whose_end_was_not_seen_lasts_until_the_thread_was_woken)
{
	struct story story = story_begin();

	story_block(&story, STATE_LOCK, LOCK_A);
	story.now += 300 * US;
	story_state(&story, STATE_RUNNABLE);
	story.now += 5 * MS;
	story_end(&story);
	EXPECT_OBSERVED(&story, 300 * US);
	story_lock(&story, LOCK_A, 200 * US);
	story_end(&story);
	EXPECT_OBSERVED(&story, 300 * US, 200 * US);
}

Test(lock_episodes, of_a_wait_of_which_neither_the_wake_up_was_seen_nothing_is_known)
{
	struct story story = story_begin();

	story_block(&story, STATE_LOCK, LOCK_A);
	story.now += 300 * US;
	story_end(&story);
	cr_expect_eq(story.observations, 0);
}

Test(lock_episodes, waits_for_one_lock_with_little_running_between_merge)
{
	struct story story = story_begin();

	story_lock(&story, LOCK_A, 100 * US);
	story_run(&story, 20 * US - 1);
	story_lock(&story, LOCK_A, 50 * US);
	story_run(&story, 5 * US);
	story_lock(&story, LOCK_A, 10 * US);
	story_end(&story);
	EXPECT_OBSERVED(&story, 185 * US - 1);
}

Test(lock_episodes, waits_for_one_lock_with_twenty_microseconds_between_do_not_merge)
{
	struct story story = story_begin();

	story_lock(&story, LOCK_A, 100 * US);
	story_run(&story, 20 * US);
	story_lock(&story, LOCK_A, 50 * US);
	story_end(&story);
	EXPECT_OBSERVED(&story, 100 * US, 50 * US);
}

/* 15 us before and 15 us after the second wait: each gap for itself is short enough. */
Test(lock_episodes, each_gap_is_measured_for_itself)
{
	struct story story = story_begin();

	story_lock(&story, LOCK_A, 100 * US);
	story_run(&story, 15 * US);
	story_lock(&story, LOCK_A, 100 * US);
	story_run(&story, 15 * US);
	story_lock(&story, LOCK_A, 100 * US);
	story_end(&story);
	EXPECT_OBSERVED(&story, 330 * US);
}

Test(lock_episodes, waits_for_different_locks_do_not_merge)
{
	struct story story = story_begin();

	story_lock(&story, LOCK_A, 100 * US);
	story_run(&story, US);
	story_lock(&story, LOCK_B, 70 * US);
	story_run(&story, US);
	story_lock(&story, LOCK_A, 40 * US);
	story_end(&story);
	EXPECT_OBSERVED(&story, 100 * US, 70 * US, 40 * US);
}

Test(lock_episodes, a_preemption_in_between_is_no_running)
{
	struct story story = story_begin();

	story_lock(&story, LOCK_A, 100 * US);
	story_run(&story, 9 * US);
	story_preempt(&story, 4 * MS);
	story_run(&story, 9 * US);
	story_lock(&story, LOCK_A, 100 * US);
	story_end(&story);
	EXPECT_OBSERVED(&story, 218 * US + 4 * MS);
}

Test(lock_episodes, running_before_and_after_a_preemption_adds_up)
{
	struct story story = story_begin();

	story_lock(&story, LOCK_A, 100 * US);
	story_run(&story, 10 * US);
	story_preempt(&story, MS);
	story_run(&story, 10 * US);
	story_lock(&story, LOCK_A, 60 * US);
	story_end(&story);
	EXPECT_OBSERVED(&story, 100 * US, 60 * US);
}

Test(lock_episodes, any_other_sleep_ends_the_episode)
{
	static const uint32_t others[] = { STATE_DISK,  STATE_NETWORK, STATE_WAIT,
					   STATE_SLEEP, STATE_IDLE,    STATE_NONE };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct story story = story_begin();

		story_lock(&story, LOCK_A, 100 * US);
		story_run(&story, US);
		story_block(&story, others[i], LOCK_A);
		EXPECT_OBSERVED(&story, 100 * US);
		story_run(&story, US);
		story_resume(&story);
		story_lock(&story, LOCK_A, 30 * US);
		story_end(&story);
		EXPECT_OBSERVED(&story, 100 * US, 30 * US);
	}
}

Test(lock_episodes, an_episode_is_observed_once)
{
	struct story story = story_begin();

	story_lock(&story, LOCK_A, 100 * US);
	story_end(&story);
	story_run(&story, US);
	story_end(&story);
	story_preempt(&story, MS);
	story_end(&story);
	EXPECT_OBSERVED(&story, 100 * US);
}

Test(lock_episodes, a_thread_that_never_waited_for_a_lock_has_none)
{
	struct story story = story_begin();

	story_preempt(&story, MS);
	story_end(&story);
	cr_expect_eq(story.observations, 0);
}

Test(lock_episodes, a_wait_that_began_before_we_looked_is_not_invented)
{
	struct story story = { .thread = { .where = thread_where(1, STATE_LOCK) }, .now = START };

	story_resume(&story);
	story_run(&story, US);
	story_end(&story);
	cr_expect_eq(story.observations, 0);
	story_lock(&story, LOCK_A, 100 * US);
	story_end(&story);
	EXPECT_OBSERVED(&story, 100 * US);
}

/* Lost events misattribute until the next one, and no longer. */
Test(lock_episodes, a_wait_whose_end_was_not_seen_is_not_invented)
{
	struct story story = story_begin();

	story_lock(&story, LOCK_A, 70 * US);
	story_end(&story);
	story_block(&story, STATE_LOCK, LOCK_A);
	story_run(&story, 500 * MS);
	story_wait(&story, STATE_IDLE, 0, MS, 0);
	EXPECT_OBSERVED(&story, 70 * US);
	story_lock(&story, LOCK_A, 40 * US);
	story_end(&story);
	EXPECT_OBSERVED(&story, 70 * US, 40 * US);
}

Test(lock_episodes, a_wait_that_still_lasts_is_not_over)
{
	struct story story = story_begin();

	story_lock(&story, LOCK_A, 100 * US);
	story_run(&story, US);
	story_block(&story, STATE_LOCK, LOCK_A);
	story.now += 10 * MS;
	cr_expect_eq(story.observations, 0);
	story_resume(&story);
	story_end(&story);
	EXPECT_OBSERVED(&story, 101 * US + 10 * MS);
}

Test(lock_episodes, a_wait_that_ends_on_a_cpu_whose_clock_is_behind_is_not_negative)
{
	struct story story = story_begin();

	story_block(&story, STATE_LOCK, LOCK_A);
	story.now -= 40;
	story_resume(&story);
	story_end(&story);
	EXPECT_OBSERVED(&story, 0);
}

Test(lock_episodes, the_two_words_of_a_rwlock_are_one_lock_and_other_neighbours_are_not)
{
	cr_expect(lock_is_same(0x1008, 0x1008));
	cr_expect(lock_is_same(0x1008, 0x100c));
	cr_expect(lock_is_same(0x100c, 0x1008));
	cr_expect(!lock_is_same(0x1000, 0x1008));
	cr_expect(!lock_is_same(0x1008, 0x1000));
	cr_expect(!lock_is_same(0, UINT64_MAX - 7));
}

Test(lock_episodes, who_waits_for_its_turn_or_for_an_unknown_lock_begins_none)
{
	struct story story = story_begin();

	story_wait(&story, STATE_IDLE, LOCK_A, MS, 0);
	story_wait(&story, STATE_LOCK, 0, MS, 0);
	story_end(&story);
	cr_expect_eq(story.observations, 0);
}

Test(lock_episodes, a_wait_whose_end_was_not_seen_is_not_observed)
{
	struct story story = story_begin();

	story_lock(&story, LOCK_A, 300 * US);
	story_run(&story, US);
	story_block(&story, STATE_LOCK, LOCK_A);
	story_run(&story, MS);
	story_block(&story, STATE_IDLE, 0);
	cr_expect_eq(story.observations, 0);
}

/* Since when it has run is not known of a thread that ran when it was found. */
Test(lock_episodes, an_unknown_time_between_two_waits_does_not_part_them)
{
	struct story story = story_begin();

	story_lock(&story, LOCK_A, 300 * US);
	story.thread.since_ns = 0;
	story_run(&story, US);
	story_lock(&story, LOCK_A, 300 * US);
	story_end(&story);
	EXPECT_OBSERVED(&story, 601 * US);
}
