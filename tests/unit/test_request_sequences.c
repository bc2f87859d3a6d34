/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request machine under random sequences of events, against a model that keeps lists and looks
 * everything up anew, and under real concurrency.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "machine/requests.h"

#define T0 1000000000000ULL /* any time will do */
#define SEQUENCES 20000
#define EVENTS 120 /* of one sequence, at most */

/* --- the model: one connection as lists of what happened -------------------------------------- */

/* Bytes that arrived together. */
struct segment {
	uint64_t arrived_ns;
	bool seen; /* by our hooks: we may have come later */
	bool taken;
};

enum outcome { OPEN, ENDED, ABANDONED };

struct turn {
	uint64_t read_ns, queue_ns;
	uint64_t end_ns; /* last send that was told */
	bool queue_known, written, told;
	enum outcome outcome;
};

struct model {
	struct segment segments[EVENTS];
	struct turn turns[EVENTS];
	int segments_len, turns_len;
	int ended, unrequested, abandoned_queued;
	bool closed;
};

/* The request in progress; NULL if there is none. */
static struct turn *model_turn(struct model *model)
{
	struct turn *last = model->turns_len ? &model->turns[model->turns_len - 1] : NULL;

	return last && last->outcome == OPEN ? last : NULL;
}

static bool model_unread(const struct model *model)
{
	for (int i = 0; i < model->segments_len; i++)
		if (!model->segments[i].taken)
			return true;
	return false;
}

/* Since when bytes wait, as far as it was seen; 0 if that is not known or none wait. */
static uint64_t model_waiting_since(const struct model *model)
{
	for (int i = 0; i < model->segments_len; i++)
		if (!model->segments[i].taken && model->segments[i].seen)
			return model->segments[i].arrived_ns;
	return 0;
}

/* The machine knows of three that wait, or of one behind some that came before it watched. */
static bool model_has_room(const struct model *model)
{
	int seen = 0, unseen = 0;

	for (int i = 0; i < model->segments_len; i++) {
		seen += !model->segments[i].taken && model->segments[i].seen;
		unseen += !model->segments[i].taken && !model->segments[i].seen;
	}
	return unseen ? !seen : seen < 3;
}

static void model_end(struct model *model, struct turn *turn)
{
	turn->outcome = ENDED;
	model->ended++;
}

static void model_arrive(struct model *model, uint64_t now, bool seen)
{
	model->segments[model->segments_len++] = (struct segment){ .arrived_ns = now,
								   .seen = seen };
}

static void model_take(struct model *model, int segments)
{
	for (int i = 0; i < model->segments_len; i++) {
		struct segment *segment = &model->segments[i];

		if (!segment->taken && segments-- > 0)
			segment->taken = true;
	}
}

static void model_read(struct model *model, uint64_t now, int segments)
{
	uint64_t since = model_waiting_since(model);
	struct turn *turn = model_turn(model);

	model_take(model, segments);
	if (turn && !turn->written)
		return;
	if (turn)
		model_end(model, turn);
	model->turns[model->turns_len++] = (struct turn){
		.read_ns = now,
		.queue_ns = now - since,
		.queue_known = since,
	};
}

static void model_write(struct model *model)
{
	struct turn *turn = model_turn(model);

	if (turn)
		turn->written = true;
}

static void model_told(struct model *model, uint64_t now)
{
	struct turn *turn = model_turn(model);

	if (!turn) {
		model->unrequested++;
	} else if (turn->written) {
		turn->told = true;
		turn->end_ns = now;
	}
}

static void model_settle(struct model *model, uint64_t now)
{
	struct turn *turn = model_turn(model);

	if (turn && turn->told && now - turn->end_ns >= 1000000000)
		model_end(model, turn);
}

static uint64_t model_latest(const struct model *model)
{
	return model->segments_len ? model->segments[model->segments_len - 1].arrived_ns : 0;
}

/* Bytes that had come before the answer was sent are a body that was not wanted. */
static void model_close(struct model *model)
{
	struct turn *turn = model_turn(model);

	model->closed = true;
	if (turn && !turn->written) {
		turn->outcome = ABANDONED;
		return;
	}
	if (turn)
		model_end(model, turn);
	if (model_waiting_since(model) && model_latest(model) > (turn ? turn->end_ns : 0))
		model->abandoned_queued++;
}

static int model_count(const struct model *model, enum outcome outcome)
{
	int count = 0;

	for (int i = 0; i < model->turns_len; i++)
		count += model->turns[i].outcome == outcome;
	return count;
}

/* --- both side by side ------------------------------------------------------------------------ */

struct pair {
	struct model model;
	struct conn conn;
	uint64_t now, seed;
	uint32_t write_seq;
	int untold; /* sends whose hook has not run yet */
	bool watched; /* from here on arrivals are seen */
	int began, ended, unrequested, abandoned_queued, abandoned_service;
	const char *wrong; /* the first difference */
};

/* xorshift64*: the same values in every run. */
static uint32_t pair_random(struct pair *pair, uint32_t limit)
{
	pair->seed ^= pair->seed >> 12;
	pair->seed ^= pair->seed << 25;
	pair->seed ^= pair->seed >> 27;
	return (uint32_t)(pair->seed * 2685821657736338717ULL >> 32) % limit;
}

static void pair_check(struct pair *pair, bool right, const char *what)
{
	if (!right && !pair->wrong)
		pair->wrong = what;
}

/* The times of the request that the machine says has ended: the model's latest that is ended. */
static void pair_check_times(struct pair *pair, const struct request *request)
{
	const struct turn *turn = NULL;

	for (int i = 0; i < pair->model.turns_len; i++)
		if (pair->model.turns[i].outcome == ENDED)
			turn = &pair->model.turns[i];
	if (!turn) {
		pair_check(pair, false, "a request has ended that never was");
		return;
	}
	pair_check(pair, request->queue_ns == (turn->queue_known ? turn->queue_ns : QUEUE_UNKNOWN),
		   "queue time");
	if (turn->told)
		pair_check(pair, request->service_ns == turn->end_ns - turn->read_ns,
			   "service time");
	else
		pair_check(pair, request->service_ns <= pair->now - turn->read_ns,
			   "untold service");
}

static void pair_count(struct pair *pair, uint32_t events, const struct request *request)
{
	pair->began += !!(events & REQUEST_BEGAN);
	pair->ended += !!(events & REQUEST_ENDED);
	pair->unrequested += !!(events & REQUEST_UNREQUESTED);
	pair->abandoned_queued += !!(events & REQUEST_ABANDONED_QUEUED);
	pair->abandoned_service += !!(events & REQUEST_ABANDONED_SERVICE);
	if (events & REQUEST_ENDED)
		pair_check_times(pair, request);
}

static void pair_arrive(struct pair *pair)
{
	if (pair->watched && !model_has_room(&pair->model))
		return;
	model_arrive(&pair->model, pair->now, pair->watched);
	if (pair->watched)
		conn_readable(&pair->conn, pair->now);
}

static void pair_read(struct pair *pair)
{
	struct request ended = { 7, 7 };
	uint64_t arrived;
	uint32_t events;

	if (!model_unread(&pair->model))
		return;
	model_read(&pair->model, pair->now, pair_random(pair, 3) ? EVENTS : 1);
	arrived = conn_take(&pair->conn);
	conn_left(&pair->conn, model_unread(&pair->model));
	events = conn_read(&pair->conn, pair->now, arrived, pair->write_seq, &ended);
	pair_count(pair, events, &ended);
}

static void pair_tell(struct pair *pair)
{
	struct request ended = { 7, 7 };

	for (; pair->untold; pair->untold--) {
		model_told(&pair->model, pair->now);
		pair_count(pair,
			   conn_sent(&pair->conn, pair->now, model_unread(&pair->model),
				     pair->write_seq, &ended),
			   &ended);
	}
}

/* One of four sends is told late, by a thread that was interrupted in between. */
static void pair_send(struct pair *pair)
{
	pair->write_seq += 1 + pair_random(pair, 100000);
	model_write(&pair->model);
	pair->untold++;
	if (pair_random(pair, 4))
		pair_tell(pair);
}

static void pair_settle(struct pair *pair)
{
	struct request ended = { 7, 7 };
	uint32_t events;

	model_settle(&pair->model, pair->now);
	events = conn_settle(&pair->conn, pair->now, &ended);
	pair_count(pair, events, &ended);
}

static void pair_close(struct pair *pair)
{
	struct request ended = { 7, 7 };
	uint32_t events;

	model_close(&pair->model);
	events = conn_closed(&pair->conn, pair->now, model_unread(&pair->model), pair->write_seq,
			     &ended);
	pair_count(pair, events, &ended);
	pair_check(pair,
		   !conn_closed(&pair->conn, pair->now, model_unread(&pair->model), pair->write_seq,
				&ended),
		   "second close");
}

static void pair_step(struct pair *pair)
{
	uint32_t event = pair_random(pair, 100);

	pair->now += pair_random(pair, 40) ? pair_random(pair, 1000000) : 900000000;
	if (event < 35)
		pair_arrive(pair);
	else if (event < 65)
		pair_read(pair);
	else if (event < 85)
		pair_send(pair);
	else if (event < 90)
		pair_tell(pair);
	else if (event < 96)
		pair_settle(pair);
	else if (event < 98)
		pair->watched = true;
	else if (event == 98)
		pair_close(pair);
}

static void pair_compare(struct pair *pair)
{
	struct model *model = &pair->model;
	const struct turn *turn = model_turn(model);
	bool in_service = turn && !turn->told;
	bool queued = !model->closed && !in_service && model_waiting_since(model);

	pair_check(pair, pair->began == model->turns_len, "requests begun");
	pair_check(pair, pair->ended == model_count(model, ENDED), "requests ended");
	pair_check(pair, pair->ended == model->ended, "requests ended twice");
	pair_check(pair, pair->abandoned_service == model_count(model, ABANDONED), "in service");
	pair_check(pair, pair->abandoned_queued == model->abandoned_queued, "in the queue");
	pair_check(pair, pair->unrequested == model->unrequested, "unrequested sends");
	pair_check(pair,
		   pair->began == pair->ended + pair->abandoned_service + model_count(model, OPEN),
		   "conservation");
	pair_check(pair, conn_in_service(&pair->conn) == in_service, "in service now");
	pair_check(pair, conn_queued(&pair->conn) == queued, "queued now");
}

static void pair_run(struct pair *pair)
{
	for (int i = 0; i < EVENTS - 1 && !pair->model.closed; i++) {
		pair_step(pair);
		pair_compare(pair);
		if (pair->wrong)
			cr_assert_fail("event %d: %s", i, pair->wrong);
	}
}

Test(request_sequences, thousands_of_random_ones_agree_with_the_model)
{
	int began = 0, ended = 0, queued = 0, service = 0, unrequested = 0, closed = 0;

	for (int i = 0; i < SEQUENCES; i++) {
		struct pair pair = { .now = T0, .seed = 0x9e3779b97f4a7c15ULL * (i + 1) };

		pair.write_seq = pair_random(&pair, UINT32_MAX);
		pair.watched = pair_random(&pair, 8);
		pair_run(&pair);
		began += pair.began;
		ended += pair.ended;
		queued += pair.abandoned_queued;
		service += pair.abandoned_service;
		unrequested += pair.unrequested;
		closed += pair.model.closed;
	}
	/* It was not all of one kind. */
	cr_expect_gt(ended, SEQUENCES);
	cr_expect_gt(began, ended);
	cr_expect_gt(queued, SEQUENCES / 20);
	cr_expect_gt(service, SEQUENCES / 20);
	cr_expect_gt(unrequested, SEQUENCES / 20);
	cr_expect_gt(closed, SEQUENCES / 4);
	cr_expect_lt(closed, SEQUENCES);
}

/* --- several threads at once ------------------------------------------------------------------ */

#define RACES 100000
#define ANSWERED_SEQ 5100

enum racer_event { RACE_READ, RACE_SETTLE, RACE_CLOSE };

/* Walks over the connections in step with another thread, which meets each at the same moment. */
struct racer {
	struct conn *conns;
	int *progress, *other;
	enum racer_event event;
	int ended, began;
};

static uint32_t racer_touch(const struct racer *racer, struct conn *conn)
{
	struct request ended;

	if (racer->event == RACE_SETTLE)
		return conn_settle(conn, T0 + 9 * SETTLE_NS, &ended);
	if (racer->event == RACE_CLOSE)
		return conn_closed(conn, T0 + 9 * SETTLE_NS, 1, ANSWERED_SEQ, &ended);
	return conn_read(conn, T0 + 9 * SETTLE_NS, conn_take(conn), ANSWERED_SEQ, &ended);
}

/* Meets the other thread at connection @i, sooner or later by a few nanoseconds each time. */
static void racer_meet(const struct racer *racer, int i)
{
	__atomic_store_n(racer->progress, i, __ATOMIC_RELEASE);
	for (int spins = 0; __atomic_load_n(racer->other, __ATOMIC_ACQUIRE) < i; spins++)
		if (spins > 1000)
			sched_yield();
	for (int delay = racer->event == RACE_SETTLE ? 0 : i % 128; delay > 0; delay--)
		__asm__ __volatile__("");
}

static void *racer_run(void *arg)
{
	struct racer *racer = arg;

	for (int i = 0; i < RACES; i++) {
		uint32_t events;

		racer_meet(racer, i);
		events = racer_touch(racer, &racer->conns[i]);
		racer->ended += !!(events & REQUEST_ENDED);
		racer->began += !!(events & REQUEST_BEGAN);
	}
	return NULL;
}

/* Every connection has one answered request; both threads find it, one of them ends it. */
static void race(enum racer_event first, enum racer_event second, int began)
{
	_cleanup_(cleanup_free) struct conn *conns = calloc(RACES, sizeof(*conns));
	int progress[2] = { -1, -1 };
	struct racer one = { conns, &progress[0], &progress[1], first, 0, 0 };
	struct racer two = { conns, &progress[1], &progress[0], second, 0, 0 };
	struct request none;
	pthread_t thread;

	cr_assert_not_null(conns);
	for (int i = 0; i < RACES; i++) {
		conn_readable(&conns[i], T0 + 100);
		conn_read(&conns[i], T0 + 200, conn_take(&conns[i]), ANSWERED_SEQ - 100, &none);
		conn_sent(&conns[i], T0 + 300, 1, ANSWERED_SEQ, &none);
	}
	cr_assert_eq(pthread_create(&thread, NULL, racer_run, &one), 0);
	racer_run(&two);
	pthread_join(thread, NULL);
	cr_expect_eq(one.ended + two.ended, RACES, "%d and %d", one.ended, two.ended);
	cr_expect_eq(one.began + two.began, began);
}

Test(request_races, a_request_that_a_sweep_and_a_read_meet_ends_once)
{
	race(RACE_SETTLE, RACE_READ, RACES);
}

Test(request_races, a_request_that_a_sweep_and_a_close_meet_ends_once)
{
	race(RACE_SETTLE, RACE_CLOSE, 0);
}

Test(request_races, a_request_that_two_closes_meet_ends_once)
{
	race(RACE_CLOSE, RACE_CLOSE, 0);
}

Test(request_races, a_request_that_two_reads_meet_ends_once)
{
	race(RACE_READ, RACE_READ, RACES);
}

Test(request_races, a_request_that_a_read_and_a_close_meet_ends_once)
{
	race(RACE_READ, RACE_CLOSE, RACES);
}
