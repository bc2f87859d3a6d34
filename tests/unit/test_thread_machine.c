/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "machine/threads.h"

#define US 1000ULL
#define MS 1000000ULL
#define START (5000 * MS)
#define LOCK_A 0x7f0000001000ULL
#define LOCK_B 0x7f0000001008ULL

/* xorshift64*: the same values in every run. */
static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (*seed * 2685821657736338717ULL >> 32) % limit;
}

/* --- states: sums over shards ----------------------------------------------------------------- */

#define SHARDS 5
#define THREADS 40
#define TRANSITIONS 20000

/* The slow way: each thread knows since when it is where, and every interval is added up. */
struct books {
	struct pool_shard shard[SHARDS];
	uint32_t state[THREADS];
	uint64_t since_ns[THREADS];
	uint64_t total_ns[STATES];
};

static void books_open(struct books *books)
{
	memset(books, 0, sizeof(*books));
	for (int i = 0; i < THREADS; i++)
		books->state[i] = STATE_NONE;
}

/* What the hooks do: one event, one shard, whichever CPU it happens on. */
static void books_move(struct books *books, int thread, uint32_t state, int cpu, uint64_t now)
{
	uint32_t old = books->state[thread];

	shard_leave(&books->shard[cpu], old, now);
	shard_enter(&books->shard[cpu], state, now);
	if (old < STATES)
		books->total_ns[old] += now - books->since_ns[thread];
	books->state[thread] = state;
	books->since_ns[thread] = now;
}

static uint64_t books_total(const struct books *books, uint32_t state, uint64_t now)
{
	uint64_t total = books->total_ns[state];

	for (int i = 0; i < THREADS; i++)
		if (books->state[i] == state)
			total += now - books->since_ns[i];
	return total;
}

static uint64_t books_count(const struct books *books, uint32_t state)
{
	uint64_t count = 0;

	for (int i = 0; i < THREADS; i++)
		count += books->state[i] == state;
	return count;
}

/* The two words of a state, over all shards. */
static uint64_t shards_count(const struct books *books, uint32_t state)
{
	uint64_t n = 0;

	for (int i = 0; i < SHARDS; i++)
		n += books->shard[i].n[state];
	return n;
}

static uint64_t shards_total(const struct books *books, uint32_t state, uint64_t now)
{
	uint64_t a = 0;

	for (int i = 0; i < SHARDS; i++)
		a += books->shard[i].a[state];
	return a + shards_count(books, state) * now;
}

static uint64_t shards_sum(const struct books *books, uint64_t now)
{
	uint64_t sum = 0;

	for (uint32_t state = 0; state < STATES; state++)
		sum += shards_total(books, state, now);
	return sum;
}

static void assert_balanced(const struct books *books, uint64_t now)
{
	for (uint32_t state = 0; state < STATES; state++) {
		uint64_t n = shards_count(books, state), total = shards_total(books, state, now);

		if (n != books_count(books, state))
			cr_assert_fail("%lu threads in state %u", n, state);
		if (total != books_total(books, state, now))
			cr_assert_fail("%ld ns in state %u", (int64_t)total, state);
	}
}

Test(thread_states, an_interval_counts_while_it_is_still_open)
{
	struct books books;

	books_open(&books);
	books_move(&books, 0, STATE_IDLE, 1, START);
	cr_expect_eq(shards_total(&books, STATE_IDLE, START), 0);
	cr_expect_eq(shards_total(&books, STATE_IDLE, START + 3600000 * MS), 3600000 * MS);
	cr_expect_eq(shards_count(&books, STATE_IDLE), 1);
}

Test(thread_states, a_thread_may_enter_on_one_cpu_and_leave_on_another)
{
	struct books books;

	books_open(&books);
	books_move(&books, 0, STATE_LOCK, 0, START);
	books_move(&books, 0, STATE_RUNNABLE, 4, START + 30);
	books_move(&books, 0, STATE_RUNNING, 2, START + 37);
	cr_expect_eq(shards_total(&books, STATE_LOCK, START + 100), 30);
	cr_expect_eq(shards_total(&books, STATE_RUNNABLE, START + 100), 7);
	cr_expect_eq(shards_total(&books, STATE_RUNNING, START + 100), 63);
	cr_expect_eq(shards_count(&books, STATE_LOCK), 0);
	cr_expect_eq(shards_count(&books, STATE_RUNNING), 1);
}

Test(thread_states, the_same_state_again_loses_no_time)
{
	struct books books;

	books_open(&books);
	for (int i = 0; i < 10; i++)
		books_move(&books, 0, STATE_WAIT, i % SHARDS, START + 10 * i);
	cr_expect_eq(shards_total(&books, STATE_WAIT, START + 100), 100);
	cr_expect_eq(shards_count(&books, STATE_WAIT), 1);
}

Test(thread_states, a_thread_that_is_not_accounted_is_nowhere)
{
	static const struct pool_shard zero;
	struct pool_shard shard = { 0 };

	shard_enter(&shard, STATE_NONE, START);
	shard_leave(&shard, STATE_NONE, START + 1);
	shard_enter(&shard, 255, START);
	shard_leave(&shard, 255, START);
	cr_expect_arr_eq(&shard, &zero, sizeof(zero));
}

Test(thread_states, what_a_thread_has_spent_stays_when_it_is_gone)
{
	struct books books;

	books_open(&books);
	books_move(&books, 0, STATE_RUNNING, 3, START);
	books_move(&books, 0, STATE_NONE, 1, START + 40);
	for (uint64_t now = START + 40; now < START + 200; now += 40) {
		cr_expect_eq(shards_total(&books, STATE_RUNNING, now), 40);
		cr_expect_eq(shards_sum(&books, now), 40);
	}
}

Test(thread_states, random_transitions_over_all_cpus_add_up_at_every_moment)
{
	uint64_t seed = 88172645463325252, now = START;
	struct books books;

	books_open(&books);
	for (int i = 0; i < TRANSITIONS; i++) {
		int thread = random_below(&seed, THREADS), cpu = random_below(&seed, SHARDS);

		now += random_below(&seed, 3 * MS);
		books_move(&books, thread, random_below(&seed, STATES + 1), cpu, now);
		if (i % 16 == 0)
			assert_balanced(&books, now + random_below(&seed, 1000 * MS));
	}
	assert_balanced(&books, now);
}

Test(thread_states, the_states_sum_to_threads_times_time)
{
	uint64_t seed = 362436069, now = START;
	struct books books;

	books_open(&books);
	for (int i = 0; i < THREADS; i++)
		books_move(&books, i, STATE_RUNNABLE, i % SHARDS, START);
	for (int i = 0; i < TRANSITIONS; i++) {
		int thread = random_below(&seed, THREADS), cpu = random_below(&seed, SHARDS);

		now += random_below(&seed, MS);
		books_move(&books, thread, random_below(&seed, STATES), cpu, now);
		if (shards_sum(&books, now) != THREADS * (now - START))
			cr_assert_fail("%ld ns", (int64_t)shards_sum(&books, now));
	}
}

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

Test(episodes, the_two_words_of_a_rwlock_are_one_lock_and_other_neighbours_are_not)
{
	cr_expect(lock_is_same(0x1008, 0x1008));
	cr_expect(lock_is_same(0x1008, 0x100c));
	cr_expect(lock_is_same(0x100c, 0x1008));
	cr_expect(!lock_is_same(0x1000, 0x1008));
	cr_expect(!lock_is_same(0x1008, 0x1000));
	cr_expect(!lock_is_same(0, UINT64_MAX - 7));
}
