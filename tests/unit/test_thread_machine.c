/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "draws.h"
#include "machine/threads.h"

#define US 1000ULL
#define MS 1000000ULL
#define START (5000 * MS)

/* --- switches that no hook has seen ------------------------------------------------------------
 */

Test(thread_machine, a_thread_comes_from_a_wait_and_leaves_while_it_runs)
{
	for (uint32_t state = 0; state < STATES; state++) {
		struct thread thread = { .where = thread_where(7, state) };

		cr_expect_eq(thread_is_missed(&thread, 1), state == STATE_RUNNING, "%u", state);
		cr_expect_eq(thread_is_missed(&thread, 0), state != STATE_RUNNING, "%u", state);
	}
}

Test(thread_machine, nothing_is_missed_of_a_thread_that_is_not_watched_yet)
{
	struct thread thread = { .where = thread_where(7, STATE_NONE) };

	cr_expect(!thread_is_missed(&thread, 0));
	cr_expect(!thread_is_missed(&thread, 1));
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

Test(roles, a_thread_serves_from_its_first_request_on_and_changes_its_pool_once)
{
	struct thread thread = { .tree = 1 };

	thread_serves(&thread);
	cr_expect_eq(thread.role, POOL_SERVING);
	cr_expect_eq(thread.stale, 1, "its next event finds the pool");
	thread.stale = 0;
	thread_serves(&thread);
	cr_expect_eq(thread.stale, 0, "it is there already");
}

Test(roles, a_first_request_does_not_shorten_what_a_rename_has_asked_for)
{
	struct thread thread = { .tree = 1, .stale = 3 };

	thread_serves(&thread);
	cr_expect_eq(thread.stale, 3);
}
