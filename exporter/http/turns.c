/* SPDX-License-Identifier: Apache-2.0 */
#include "http/turns.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/units.h"

#define ROOM_WAIT_MS 1000 /* for room for a page; then 503 */

void http_turns_init(struct http_turns *turns, struct loop *loop)
{
	*turns = (struct http_turns){ .loop = loop };
	TAILQ_INIT(&turns->suspended);
	TAILQ_INIT(&turns->late);
}

struct http_connection *http_record_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

struct http_turn *http_turn_new(struct http_turns *turns, struct MHD_Connection *connection)
{
	struct http_connection *record = http_record_of(connection);
	struct http_turn *turn = record ? calloc(1, sizeof(*turn)) : NULL;

	if (!turn)
		return NULL;
	turn->turns = turns;
	turn->connection = connection;
	turn->record = record;
	turn->due_ns = UINT64_MAX;
	turn->client.fd = -1;
	turns->waiting[HTTP_WAIT_NOTHING]++;
	return turn;
}

/* --- suspended and awake --------------------------------------------------------------------- */

static void turn_suspend(struct http_turn *turn)
{
	if (turn->suspended)
		return;
	turn->suspended = true;
	TAILQ_INSERT_TAIL(&turn->turns->suspended, turn, link);
	MHD_suspend_connection(turn->connection);
}

static void turn_resume(struct http_turn *turn)
{
	if (!turn->suspended)
		return;
	turn->suspended = false;
	TAILQ_REMOVE(&turn->turns->suspended, turn, link);
	if (turn->client.fd >= 0)
		loop_forget(turn->turns->loop, &turn->client);
	turn->client.fd = -1;
	turn->turns->resumed = true;
	MHD_resume_connection(turn->connection);
}

/* --- answers that come later ------------------------------------------------------------------ */

/* Without the page, of which its maker is told: once. */
static void turn_end_later(struct http_turn *turn, enum http_later_end end)
{
	if (turn->wait != HTTP_WAIT_LATER || turn->end != HTTP_LATER_OPEN)
		return;
	turn->end = end;
	turn->later.gone(turn->later.arg);
}

static void client_left(void *arg)
{
	struct http_turn *turn = arg;

	turn->left = true;
	turn_end_later(turn, HTTP_LATER_GONE);
	turn_resume(turn);
}

/* Without memory for it the turn goes on without, until its deadline. */
static void turn_watch_client(struct http_turn *turn, enum loop_event event)
{
	if (turn->client.fd >= 0)
		return;
	turn->client = (struct loop_watch){
		.fd = turn->record->fd,
		.ready = client_left,
		.arg = turn,
	};
	if (loop_watch(turn->turns->loop, &turn->client, event))
		turn->client.fd = -1;
}

void http_turn_wait(struct http_turn *turn, enum http_wait wait)
{
	turn->turns->waiting[turn->wait]--;
	turn->turns->waiting[wait]++;
	turn->wait = wait;
	if (wait == HTTP_WAIT_NOTHING || wait == HTTP_WAIT_RUN)
		return;
	turn_suspend(turn);
	/* A client that sends no more may still want what is there in a moment. */
	turn_watch_client(turn, wait == HTTP_WAIT_LATER ? LOOP_ENDED : LOOP_BROKEN);
}

bool http_turn_wait_for_room(struct http_turn *turn, struct http_connections *connections)
{
	const uint64_t now_ms = clock_monotonic_ns() / NS_PER_MS;
	const uint64_t end_ms = turn->arrived_ns / NS_PER_MS + ROOM_WAIT_MS;
	uint64_t late_ms = http_connections_late_ms(connections, &turn->record->origin, now_ms);

	if (now_ms >= end_ms)
		return false;
	turn->due_ns = (late_ms < end_ms ? late_ms : end_ms) * NS_PER_MS;
	if (turn->record->stage != HTTP_STAGE_WAIT)
		http_connections_stage(connections, turn->record, HTTP_STAGE_WAIT, now_ms);
	http_turn_wait(turn, HTTP_WAIT_ROOM);
	return true;
}

bool http_turn_line_up(struct http_turn *turn, struct http_connections *connections)
{
	bool waits = turn->wait != HTTP_WAIT_ROOM && turn->turns->waiting[HTTP_WAIT_ROOM] &&
		     http_turn_wait_for_room(turn, connections);

	if (waits)
		http_turns_wake(turn->turns, HTTP_WAIT_ROOM);
	return waits;
}

void http_turn_late(struct http_turn *turn, const struct http_route *route)
{
	turn->route = route;
	turn->due_ns = clock_monotonic_ns() + route->later_ms * NS_PER_MS;
	TAILQ_INSERT_TAIL(&turn->turns->late, turn, late_link);
}

struct http_page http_turn_take_page(struct http_turn *turn)
{
	struct http_page page = turn->page;

	if (turn->route)
		TAILQ_REMOVE(&turn->turns->late, turn, late_link);
	turn->route = NULL;
	turn->page = (struct http_page){ 0 };
	return page;
}

static bool routes_share(const struct http_route *a, const struct http_route *b)
{
	return a == b || (a->later_pool && a->later_pool == b->later_pool);
}

/* One that was displaced, or whose time is over, has left its place before it is freed. */
static bool turn_has_place(const struct http_turn *turn, const struct http_route *route)
{
	return routes_share(turn->route, route) &&
	       (turn->end == HTTP_LATER_OPEN || turn->end == HTTP_LATER_ANSWERED);
}

/* How many answers of @route, and of those that share with it, are under way, of @origin; NULL: of
 * any. */
static size_t turns_held(const struct http_turns *turns, const struct http_route *route,
			 const struct http_origin *origin)
{
	const struct http_turn *turn;
	size_t held = 0;

	TAILQ_FOREACH(turn, &turns->late, late_link)
	{
		held += turn_has_place(turn, route) &&
			(!origin || http_origin_equal(&turn->record->origin, origin));
	}
	return held;
}

bool http_turns_have_room(const struct http_turns *turns, const struct http_route *route,
			  const struct http_origin *asking, struct http_turn **victim)
{
	size_t most = turns_held(turns, route, asking) + 1;
	struct http_turn *turn;

	*victim = NULL;
	if (turns_held(turns, route, NULL) < route->later_max)
		return true;
	TAILQ_FOREACH(turn, &turns->late, late_link)
	{
		size_t held;

		if (!routes_share(turn->route, route) || turn->wait != HTTP_WAIT_LATER ||
		    turn->end != HTTP_LATER_OPEN)
			continue;
		held = turns_held(turns, route, &turn->record->origin);
		if (held < most)
			continue;
		most = held;
		*victim = turn;
	}
	return *victim;
}

void http_turn_displace(struct http_turn *turn)
{
	turn_end_later(turn, HTTP_LATER_DISPLACED);
	turn_resume(turn);
}

void http_turn_answered(struct http_turn *turn, const struct http_page *page)
{
	turn->arrived_ns = clock_monotonic_ns();
	turn->end = page ? HTTP_LATER_ANSWERED : HTTP_LATER_FAILED;
	if (page)
		turn->page = *page;
}

void http_later_answer(struct http_later *later, const struct http_page *page)
{
	struct http_turn *turn = (struct http_turn *)later; /* its first member */

	http_turn_answered(turn, page);
	turn_resume(turn);
}

void http_turn_free(struct http_turn *turn)
{
	struct http_page page;

	turn_end_later(turn, HTTP_LATER_GONE);
	page = http_turn_take_page(turn);
	http_body_unref(page.body);
	turn->turns->waiting[turn->wait]--;
	free(turn);
}

/* --- all turns -------------------------------------------------------------------------------- */

void http_turns_wake(struct http_turns *turns, enum http_wait wait)
{
	struct http_turn *turn, *next;

	for (turn = TAILQ_FIRST(&turns->suspended); turn; turn = next) {
		next = TAILQ_NEXT(turn, link);
		if (turn->wait == wait)
			turn_resume(turn);
	}
}

bool http_turn_is_over(const struct http_turn *turn)
{
	return turn->left || turn->record->closing;
}

/* One that waits for nothing any more. */
static struct http_turn *turns_over(const struct http_turns *turns, uint64_t now_ns)
{
	struct http_turn *turn;

	TAILQ_FOREACH(turn, &turns->suspended, link)
	{
		if (http_turn_is_over(turn) || turn->due_ns <= now_ns)
			return turn;
	}
	return NULL;
}

void http_turns_review(struct http_turns *turns, uint64_t now_ns)
{
	struct http_turn *turn = turns_over(turns, now_ns);

	/* A maker of pages that is told may end other turns. */
	for (; turn; turn = turns_over(turns, now_ns)) {
		turn_end_later(turn,
			       http_turn_is_over(turn) ? HTTP_LATER_GONE : HTTP_LATER_EXPIRED);
		turn_resume(turn);
	}
}

uint64_t http_turns_due_ns(const struct http_turns *turns)
{
	const struct http_turn *turn;
	uint64_t first_ns = UINT64_MAX;

	TAILQ_FOREACH(turn, &turns->suspended, link)
	{
		if (turn->due_ns < first_ns)
			first_ns = turn->due_ns;
	}
	return first_ns;
}

void http_turns_end(struct http_turns *turns)
{
	while (!TAILQ_EMPTY(&turns->suspended))
		client_left(TAILQ_FIRST(&turns->suspended));
}
