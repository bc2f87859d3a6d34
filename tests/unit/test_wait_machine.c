/* SPDX-License-Identifier: Apache-2.0 */
/* The wait of one thread: each moment of it is told once, by hooks or by the walk. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "machine/waits.h"

#define BEGIN 1000000ULL
#define POOL 5U
#define TREE 3U
#define ALL (~0ULL)
#define LOCKS (1ULL << STATE_LOCK)

static const struct stack_key lock_key = { .hash = 88, .tree = TREE, .state = STATE_LOCK };

/* What is told of it. */
struct told {
	uint64_t ns[STATES], queued_ns[STATES], woken, unseen_ns;
};

static void tell(struct told *told, const struct wait_piece *piece)
{
	uint64_t *ns = piece->woken ? told->queued_ns : told->ns;

	ns[piece->key.state] += piece->ns;
	if (piece->key.hash == unseen_hash(POOL))
		told->unseen_ns += piece->ns;
	cr_expect_eq(piece->key.tree, TREE);
}

struct watched {
	struct thread_wait wait;
	struct look look;
	struct told told;
};

static struct watched watched_since(uint64_t since_ns, uint64_t states)
{
	return (struct watched){ .look = { .since_ns = since_ns, .states = states } };
}

static void stop(struct watched *watched, __u64 now)
{
	struct wait_piece piece;

	if (wait_stop(&watched->wait, &watched->look, TREE, POOL, &now, &piece))
		tell(&watched->told, &piece);
}

static void start(struct watched *watched, const struct stack_key *key, uint32_t shift, __u64 now)
{
	struct wait_piece piece;

	if (wait_stop(&watched->wait, &watched->look, TREE, POOL, &now, &piece))
		tell(&watched->told, &piece);
	wait_start(&watched->wait, key, shift, now);
}

static void wake(struct watched *watched, __u64 now)
{
	struct wait_piece piece;

	if (!wait_can_wake(&watched->wait, &watched->look) ||
	    !wait_stop(&watched->wait, &watched->look, TREE, POOL, &now, &piece))
		return;
	tell(&watched->told, &piece);
	watched->told.woken++;
	wait_wake(&watched->wait, &watched->look, now);
}

static void walk_since(struct watched *watched, uint32_t state, uint64_t since, uint64_t now)
{
	const struct wait_seen seen = {
		.since_ns = since,
		.state = state,
		.pool = POOL,
		.tree = TREE,
	};
	struct wait_piece piece;

	if (wait_walk(&watched->wait, &watched->look, &seen, now, &piece))
		tell(&watched->told, &piece);
}

static void walk(struct watched *watched, uint32_t state, uint64_t now)
{
	walk_since(watched, state, 0, now);
}

Test(wait_machine, a_wait_has_its_time_and_then_that_for_a_cpu)
{
	struct watched watched = watched_since(BEGIN, ALL);

	start(&watched, &lock_key, 0, BEGIN + 100);
	wake(&watched, BEGIN + 400);
	stop(&watched, BEGIN + 450);
	walk(&watched, STATE_RUNNING, BEGIN + 500);
	stop(&watched, BEGIN + 600);
	cr_expect_eq(watched.told.ns[STATE_LOCK], 300);
	cr_expect_eq(watched.told.queued_ns[STATE_LOCK], 50);
	cr_expect_eq(watched.told.woken, 1);
}

Test(wait_machine, one_that_lasts_is_told_piece_by_piece)
{
	struct watched watched = watched_since(BEGIN, ALL);

	start(&watched, &lock_key, 2, BEGIN + 100);
	for (uint64_t at = 200; at <= 1000; at += 200)
		walk(&watched, STATE_LOCK, BEGIN + at);
	cr_expect_eq(watched.told.ns[STATE_LOCK], 4 * 900);
	wake(&watched, BEGIN + 1100);
	cr_expect_eq(watched.told.ns[STATE_LOCK], 4 * 1000);
	walk(&watched, STATE_RUNNABLE, BEGIN + 1200);
	cr_expect_eq(watched.told.queued_ns[STATE_LOCK], 4 * 100);
	stop(&watched, BEGIN + 1210);
	cr_expect_eq(watched.told.queued_ns[STATE_LOCK], 4 * 110);
	cr_expect_eq(watched.told.ns[STATE_LOCK], 4 * 1000);
	cr_expect_eq(watched.told.unseen_ns, 0);
}

/* Others stand for it. */
Test(wait_machine, one_that_is_left_out_is_not_told)
{
	struct watched watched = watched_since(BEGIN, ALL);

	stop(&watched, BEGIN + 100);
	walk(&watched, STATE_LOCK, BEGIN + 300);
	wake(&watched, BEGIN + 400);
	stop(&watched, BEGIN + 500);
	cr_expect_eq(watched.told.ns[STATE_LOCK] + watched.told.queued_ns[STATE_LOCK], 0);
	cr_expect_eq(watched.told.woken, 0);
}

Test(wait_machine, one_that_began_before_begins_with_the_look)
{
	struct watched watched = watched_since(BEGIN, ALL);

	walk(&watched, STATE_LOCK, BEGIN + 50);
	walk(&watched, STATE_LOCK, BEGIN + 150);
	cr_expect_eq(watched.told.ns[STATE_LOCK], 150);
	wake(&watched, BEGIN + 200);
	walk(&watched, STATE_RUNNABLE, BEGIN + 230);
	stop(&watched, BEGIN + 240);
	cr_expect_eq(watched.told.ns[STATE_LOCK], 200);
	cr_expect_eq(watched.told.queued_ns[STATE_LOCK], 40);
	cr_expect_eq(watched.told.unseen_ns, 240);
	cr_expect_eq(watched.told.woken, 1);
	start(&watched, &lock_key, 0, BEGIN + 300);
	wake(&watched, BEGIN + 310);
	cr_expect_eq(watched.told.ns[STATE_LOCK], 210);
	cr_expect_eq(watched.told.unseen_ns, 240);
}

/* It was open when that ended, or was told there; and the thread may have waited for years. */
Test(wait_machine, nothing_of_another_look_is_told)
{
	for (int sampled = 0; sampled < 2; sampled++) {
		struct watched watched = watched_since(BEGIN, ALL);

		stop(&watched, BEGIN + 100);
		if (sampled)
			wait_start(&watched.wait, &lock_key, 3, BEGIN + 100);
		watched.look.since_ns = BEGIN + 10000;
		walk(&watched, STATE_LOCK, BEGIN + 10050);
		cr_expect_eq(watched.told.ns[STATE_LOCK], 50);
		wake(&watched, BEGIN + 10060);
		cr_expect_eq(watched.told.ns[STATE_LOCK], 60);
		cr_expect_eq(watched.told.unseen_ns, 60);
	}
}

/* The thread goes on before the walk comes to it: of what it waited for is not known. */
Test(wait_machine, one_that_is_over_before_it_is_met_is_not_told)
{
	struct watched watched = watched_since(BEGIN, ALL);

	wake(&watched, BEGIN + 10);
	stop(&watched, BEGIN + 20);
	walk(&watched, STATE_RUNNING, BEGIN + 30);
	walk(&watched, STATE_LOCK, BEGIN + 40);
	cr_expect_eq(watched.told.ns[STATE_LOCK], 0);
	cr_expect_eq(watched.told.woken, 0);
}

Test(wait_machine, a_wait_for_work_is_none_but_the_one_for_a_cpu_behind_it_is)
{
	static const struct stack_key idle = { .hash = 88, .tree = TREE, .state = STATE_IDLE };
	struct watched watched = watched_since(BEGIN, ALL), met = watched;

	start(&watched, &idle, 0, BEGIN + 100);
	walk(&watched, STATE_IDLE, BEGIN + 200);
	wake(&watched, BEGIN + 300);
	stop(&watched, BEGIN + 310);
	walk(&met, STATE_IDLE, BEGIN + 200);
	wake(&met, BEGIN + 300);
	stop(&met, BEGIN + 310);
	for (int i = 0; i < 2; i++) {
		const struct told *told = i ? &met.told : &watched.told;

		cr_expect_eq(told->ns[STATE_IDLE], 0);
		cr_expect_eq(told->queued_ns[STATE_IDLE], 10);
		cr_expect_eq(told->woken, 1);
	}
}

/* Its request has ended while it lasts: threads_judge() says so, in a walk of its own before. */
Test(wait_machine, one_that_has_become_a_wait_for_work_has_no_more_time)
{
	static const struct stack_key wait = { .hash = 88, .tree = TREE, .state = STATE_WAIT };

	for (int met = 0; met < 2; met++) {
		struct watched watched = watched_since(BEGIN, ALL);

		if (!met)
			start(&watched, &wait, 0, BEGIN + 100);
		walk(&watched, STATE_WAIT, BEGIN + 200);
		walk(&watched, STATE_IDLE, BEGIN + 900);
		walk(&watched, STATE_IDLE, BEGIN + 1900);
		wake(&watched, BEGIN + 2000);
		stop(&watched, BEGIN + 2010);
		cr_expect_eq(watched.told.ns[STATE_WAIT], met ? 200 : 100);
		cr_expect_leq(watched.told.queued_ns[STATE_IDLE], 10);
	}
}

/* Two CPUs: that of the walk has read its clock later. */
Test(wait_machine, time_that_the_walk_has_told_is_not_told_again)
{
	struct watched watched = watched_since(BEGIN, ALL);

	start(&watched, &lock_key, 0, BEGIN + 100);
	walk(&watched, STATE_LOCK, BEGIN + 250);
	wake(&watched, BEGIN + 200);
	stop(&watched, BEGIN + 300);
	cr_expect_eq(watched.told.ns[STATE_LOCK] + watched.told.queued_ns[STATE_LOCK], 200);
}

/* A thread that has just begun, or was woken before it is met. */
Test(wait_machine, one_that_is_met_has_no_time_before_its_state)
{
	struct watched watched = watched_since(BEGIN, ALL);

	walk_since(&watched, STATE_RUNNABLE, BEGIN + 5000, BEGIN + 5010);
	cr_expect_eq(watched.told.ns[STATE_RUNNABLE], 10);
	stop(&watched, BEGIN + 5030);
	cr_expect_eq(watched.told.ns[STATE_RUNNABLE], 30);
}

Test(wait_machine, what_is_not_looked_at_is_not_told)
{
	struct watched watched = watched_since(BEGIN, LOCKS), met = watched;

	start(&watched, &lock_key, 0, BEGIN + 100);
	wake(&watched, BEGIN + 300);
	walk(&watched, STATE_RUNNABLE, BEGIN + 400);
	stop(&watched, BEGIN + 500);
	cr_expect_eq(watched.told.ns[STATE_LOCK], 200);
	cr_expect_eq(watched.told.queued_ns[STATE_LOCK], 0);
	walk(&met, STATE_DISK, BEGIN + 100);
	wake(&met, BEGIN + 200);
	stop(&met, BEGIN + 300);
	cr_expect_eq(met.told.ns[STATE_DISK] + met.told.queued_ns[STATE_DISK], 0);
}

Test(wait_machine, with_waits_for_locks_those_for_a_cpu_behind_them_may_be_told)
{
	struct watched watched = watched_since(BEGIN, 1ULL << STATE_LOCK | LOOK_QUEUED);

	start(&watched, &lock_key, 0, BEGIN + 100);
	wake(&watched, BEGIN + 300);
	walk(&watched, STATE_RUNNABLE, BEGIN + 400);
	stop(&watched, BEGIN + 500);
	cr_expect_eq(watched.told.ns[STATE_LOCK], 200);
	cr_expect_eq(watched.told.queued_ns[STATE_LOCK], 200);
	walk(&watched, STATE_RUNNABLE, BEGIN + 600);
	stop(&watched, BEGIN + 700);
	cr_expect_eq(watched.told.queued_ns[STATE_LOCK], 200, "that one is behind none");
}

Test(wait_machine, one_for_a_cpu_is_not_woken)
{
	static const struct stack_key preempted = { .tree = TREE, .state = STATE_RUNNABLE };
	struct watched watched = watched_since(BEGIN, ALL), met = watched;

	start(&watched, &preempted, 0, BEGIN + 100);
	wake(&watched, BEGIN + 150);
	stop(&watched, BEGIN + 200);
	cr_expect_eq(watched.told.ns[STATE_RUNNABLE], 100);
	walk(&met, STATE_RUNNABLE, BEGIN + 100);
	wake(&met, BEGIN + 150);
	stop(&met, BEGIN + 200);
	cr_expect_eq(met.told.ns[STATE_RUNNABLE], 200);
	cr_expect_eq(watched.told.woken + met.told.woken, 0);
}

/* --- at once -------------------------------------------------------------------------------- */

#define WAITS 200000

struct race {
	struct watched watched;
	struct told by_walk;
	uint64_t now; /* atomic */
	bool over; /* atomic */
	size_t pieces;
};

static uint64_t race_now(struct race *race)
{
	return __atomic_load_n(&race->now, __ATOMIC_SEQ_CST);
}

static size_t race_pieces(struct race *race)
{
	return __atomic_load_n(&race->pieces, __ATOMIC_RELAXED);
}

static void *race_walk(void *arg)
{
	struct race *race = arg;

	const struct wait_seen seen = { .state = STATE_LOCK, .pool = POOL, .tree = TREE };

	while (!__atomic_load_n(&race->over, __ATOMIC_SEQ_CST)) {
		struct wait_piece piece = { 0 };

		if (!wait_walk(&race->watched.wait, &race->watched.look, &seen, race_now(race),
			       &piece))
			continue;
		cr_expect(piece.key.hash % 2 == 0 && piece.key.hash / 2 % 9 == piece.shift,
			  "the rest is of another wait");
		race->by_walk.ns[piece.key.state] += piece.ns >> piece.shift;
		__atomic_add_fetch(&race->pieces, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Hooks and the walk at the same time: together they have told as much as was waited, and the shift
 * and the stack are that wait's. On one CPU the walk has its part only now and then. */
Test(wait_machine, a_walk_and_hooks_at_once_tell_all_of_it_once, .timeout = 120)
{
	static struct race race;
	struct wait_piece piece;
	uint64_t waited = 0, told = 0;
	pthread_t thread;

	race.watched = watched_since(BEGIN, ALL);
	race.now = BEGIN;
	cr_assert_eq(pthread_create(&thread, NULL, race_walk, &race), 0);
	for (uint64_t i = 1; i <= WAITS || (!race_pieces(&race) && i <= 50 * WAITS); i++) {
		const struct stack_key key = { .hash = 18 * i + 2 * (i % 9),
					       .tree = TREE,
					       .state = STATE_LOCK };
		uint64_t begin = __atomic_add_fetch(&race.now, 1000, __ATOMIC_SEQ_CST);
		__u64 now = begin;

		wait_stop(&race.watched.wait, &race.watched.look, TREE, POOL, &now, &piece);
		wait_start(&race.watched.wait, &key, (uint32_t)(i % 9), begin);
		for (uint64_t step = 0; step < i % 50; step++)
			now = __atomic_add_fetch(&race.now, 100, __ATOMIC_SEQ_CST);
		cr_assert(wait_stop(&race.watched.wait, &race.watched.look, TREE, POOL, &now,
				    &piece));
		cr_expect_eq(piece.key.hash, key.hash);
		told += piece.ns >> piece.shift;
		waited += now - begin;
	}
	__atomic_store_n(&race.over, true, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	told += race.by_walk.ns[STATE_LOCK];
	cr_expect_gt(race.pieces, 0, "the walk had no part in it");
	cr_expect_eq(told, waited);
}
