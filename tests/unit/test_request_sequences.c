/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request machine under random sequences of events, against a model that keeps lists and looks
 * everything up anew.
 */
#include <criterion/criterion.h>

#include <stdbool.h>
#include <stdint.h>

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

enum outcome { OPEN, ENDED, ABANDONED, GOODBYE, UNANSWERED };

struct turn {
	uint64_t read_ns, queue_ns;
	uint64_t piece_ns; /* last read of it */
	uint64_t end_ns; /* last send that was told */
	uint32_t bytes;
	bool queue_known, written, told;
	bool rest; /* of the one before, most likely */
	enum outcome outcome;
};

struct model {
	struct segment segments[EVENTS];
	struct turn turns[EVENTS];
	int segments_len, turns_len;
	int ended, unrequested, abandoned_queued, goodbyes, unanswered;
	uint64_t fin_ns;
	uint64_t settled_ns; /* end of the request that a sweep ended last */
	bool tls, closed;
	bool one_way; /* its client does not wait for answers */
	bool crosses; /* what waits was sent before the client had the answer */
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

static void model_arrive(struct model *model, uint64_t now, bool seen, bool crosses)
{
	if (seen && !model_waiting_since(model))
		model->crosses = crosses;
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

/*
 * Whether what was read wanted no answer, as the client goes on by itself: in TLS little, after an
 * answer; in other protocols anything, after half a second, and sooner once that has been so.
 */
static bool model_wants_no_answer(const struct model *model, const struct turn *turn,
				  uint64_t since, uint64_t now)
{
	if (model->tls)
		return model->turns_len > 1 && (turn->bytes <= 80 || turn->rest) &&
		       since > turn->piece_ns + 10000000;
	if (model->one_way)
		return since > turn->read_ns;
	return (int64_t)(((since ? since : now) >> 20) - (turn->piece_ns >> 20)) >= 476;
}

/* Whether what follows an answer, and has waited since @since, was sent without having seen it. */
static bool model_is_rest(const struct model *model, const struct turn *last, uint64_t since)
{
	uint64_t sent = last->outcome == OPEN && last->told ? last->end_ns : model->settled_ns;

	return model->tls && last->bytes > 80 && (model->crosses || (since && since < sent));
}

static void model_read(struct model *model, uint64_t now, int segments, uint32_t bytes)
{
	uint64_t since = model_waiting_since(model);
	struct turn *turn = model_turn(model);
	bool rest = false;

	model_take(model, segments);
	if (turn && !turn->written && !model_wants_no_answer(model, turn, since, now)) {
		turn->bytes += bytes;
		turn->piece_ns = now;
		return;
	}
	if (turn && !turn->written) {
		turn->outcome = UNANSWERED;
		model->unanswered++;
		model->one_way = !model->tls;
	} else if (model->turns_len) {
		rest = model_is_rest(model, &model->turns[model->turns_len - 1], since);
	}
	if (turn && turn->written)
		model_end(model, turn);
	model->turns[model->turns_len++] = (struct turn){
		.read_ns = now,
		.piece_ns = now,
		.queue_ns = now - since,
		.bytes = bytes,
		.queue_known = since,
		.rest = rest,
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

	if (turn && turn->told && now - turn->end_ns >= 1000000000) {
		model->settled_ns = turn->end_ns;
		model_end(model, turn);
	}
}

static uint64_t model_latest(const struct model *model)
{
	return model->segments_len ? model->segments[model->segments_len - 1].arrived_ns : 0;
}

/* The last arrival that was seen. */
static uint64_t model_latest_seen(const struct model *model)
{
	for (int i = model->segments_len; i-- > 0;)
		if (model->segments[i].seen)
			return model->segments[i].arrived_ns;
	return 0;
}

static bool model_goodbye(const struct model *model, uint64_t since)
{
	return model->fin_ns && model->fin_ns <= since + 10000000;
}

static enum outcome model_unanswered(const struct model *model, const struct turn *turn)
{
	uint64_t waited_ns = turn->queue_known ? turn->queue_ns : 0;

	if (turn->rest && turn->bytes > 80)
		return UNANSWERED;
	if (model->one_way && model_goodbye(model, model_latest_seen(model)))
		return UNANSWERED;
	return model_goodbye(model, turn->read_ns - waited_ns) ? GOODBYE : ABANDONED;
}

/* Bytes that had come before the answer was sent are a body that was not wanted. */
static void model_close(struct model *model)
{
	struct turn *turn = model_turn(model);

	model->closed = true;
	if (turn && !turn->written) {
		turn->outcome = model_unanswered(model, turn);
		model->goodbyes += turn->outcome == GOODBYE;
		model->unanswered += turn->outcome == UNANSWERED;
		return;
	}
	if (turn)
		model_end(model, turn);
	if (!model_waiting_since(model) || model_latest(model) <= (turn ? turn->end_ns : 0))
		return;
	if (model_goodbye(model, model_waiting_since(model)))
		model->goodbyes++;
	else
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
	int began, ended, unrequested, abandoned_queued, abandoned_service, goodbyes;
	int unanswered;
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
	pair->goodbyes += !!(events & REQUEST_GOODBYE);
	pair->unanswered += !!(events & REQUEST_UNANSWERED);
	if (events & REQUEST_ENDED)
		pair_check_times(pair, request);
}

static void pair_arrive(struct pair *pair)
{
	bool crosses = !pair_random(pair, 20); /* seldom enough for no multiplexed connection */

	if (pair->model.fin_ns || (pair->watched && !model_has_room(&pair->model)))
		return;
	model_arrive(&pair->model, pair->now, pair->watched, crosses);
	if (pair->watched)
		conn_readable(&pair->conn, pair->now, crosses);
}

static void pair_fin(struct pair *pair)
{
	if (!pair->model.fin_ns)
		pair->model.fin_ns = pair->now;
	conn_fin(&pair->conn, pair->now);
}

static void pair_read(struct pair *pair)
{
	struct reading reading = { .now = pair->now, .sent_seq = pair->write_seq };
	struct request ended = { 7, 7 };
	uint32_t events;

	if (!model_unread(&pair->model))
		return;
	reading.bytes = 1 + pair_random(pair, 160);
	model_read(&pair->model, pair->now, pair_random(pair, 3) ? EVENTS : 1, reading.bytes);
	reading.arrived = conn_take(&pair->conn);
	conn_left(&pair->conn, model_unread(&pair->model));
	events = conn_read(&pair->conn, &reading, &ended);
	pair_count(pair, events, &ended);
}

static void pair_tell(struct pair *pair)
{
	struct request ended = { 7, 7 };

	for (; pair->untold; pair->untold--) {
		struct sending sending = { .now = pair->now,
					   .gone = conn_waiting(&pair->conn),
					   .sent_seq = pair->write_seq };

		if (model_unread(&pair->model))
			sending.gone = 0;
		model_told(&pair->model, pair->now);
		pair_count(pair, conn_sent(&pair->conn, &sending, &ended), &ended);
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
	struct stream stream = { .sent_seq = pair->write_seq, .acked_seq = pair->write_seq };
	uint32_t events;

	model_close(&pair->model);
	stream.unread = model_unread(&pair->model);
	events = conn_closed(&pair->conn, pair->now, &stream, &ended);
	pair_count(pair, events, &ended);
	pair_check(pair, !conn_closed(&pair->conn, pair->now, &stream, &ended), "second close");
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
	else if (!pair_random(pair, 4))
		pair_fin(pair);
}

static void pair_compare(struct pair *pair)
{
	struct model *model = &pair->model;
	const struct turn *turn = model_turn(model);
	bool unanswered = turn && !turn->told, in_service = unanswered && !turn->rest;
	bool queued = !model->closed && !unanswered && model_waiting_since(model);

	pair_check(pair, pair->began == model->turns_len, "requests begun");
	pair_check(pair, pair->ended == model_count(model, ENDED), "requests ended");
	pair_check(pair, pair->ended == model->ended, "requests ended twice");
	pair_check(pair, pair->abandoned_service == model_count(model, ABANDONED), "in service");
	pair_check(pair, pair->goodbyes == model->goodbyes, "goodbyes");
	pair_check(pair, pair->unanswered == model->unanswered, "unanswered");
	pair_check(pair, pair->abandoned_queued == model->abandoned_queued, "in the queue");
	pair_check(pair, pair->unrequested == model->unrequested, "unrequested sends");
	pair_check(pair,
		   pair->began == pair->ended + pair->abandoned_service + model_count(model, OPEN) +
					  model_count(model, GOODBYE) +
					  model_count(model, UNANSWERED),
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
	int goodbyes = 0, unanswered = 0;

	for (int i = 0; i < SEQUENCES; i++) {
		struct pair pair = { .now = T0, .seed = 0x9e3779b97f4a7c15ULL * (i + 1) };

		pair.write_seq = pair_random(&pair, UINT32_MAX);
		pair.watched = pair_random(&pair, 8);
		pair.conn.protocol = pair_random(&pair, 2) ? PROTOCOL_TLS : PROTOCOL_OTHER;
		pair.model.tls = pair.conn.protocol == PROTOCOL_TLS;
		pair_run(&pair);
		began += pair.began;
		ended += pair.ended;
		queued += pair.abandoned_queued;
		service += pair.abandoned_service;
		unrequested += pair.unrequested;
		goodbyes += pair.goodbyes;
		unanswered += pair.unanswered;
		closed += pair.model.closed;
	}
	/* It was not all of one kind. */
	cr_expect_gt(ended, SEQUENCES);
	cr_expect_gt(began, ended);
	cr_expect_gt(queued, SEQUENCES / 20);
	cr_expect_gt(service, SEQUENCES / 20);
	cr_expect_gt(unrequested, SEQUENCES / 20);
	cr_expect_gt(goodbyes, 100);
	cr_expect_gt(unanswered, 100);
	cr_expect_gt(closed, SEQUENCES / 4);
	cr_expect_lt(closed, SEQUENCES);
}
