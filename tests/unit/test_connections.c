/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "http/connections.h"

#define NO_FD (-1) /* shutting it down fails, which does no harm */

static const struct http_limits limits = {
	.max = 4,
	.stage_ms = { [HTTP_STAGE_REQUEST] = 10,
		      [HTTP_STAGE_IDLE] = 100,
		      [HTTP_STAGE_CHECK] = 30,
		      [HTTP_STAGE_WAIT] = 40,
		      [HTTP_STAGE_LATER] = 50,
		      [HTTP_STAGE_ANSWER] = 20 },
};
static const struct http_origin here = { { 4, 127, 0, 0, 1 } }, there = { { 4, 10, 0, 0, 1 } };

static struct http_connection *add(struct http_connections *connections,
				   const struct http_origin *origin, enum http_stage stage,
				   uint64_t now_ms)
{
	struct http_connection *connection = http_connections_add(connections, NO_FD, origin,
								  now_ms);

	cr_assert_not_null(connection);
	http_connections_stage(connections, connection, stage, now_ms);
	return connection;
}

static void remove_all(struct http_connections *connections)
{
	struct http_connection *connection;

	while ((connection = TAILQ_FIRST(&connections->all)))
		http_connections_remove(connections, connection);
}

#define CONNECTIONS(name)                                                          \
	__attribute__((cleanup(remove_all))) struct http_connections name = { 0 }; \
	http_connections_init(&name, &limits)

Test(connections, of_those_who_have_most_the_oldest_without_a_request_gives_way)
{
	CONNECTIONS(connections);
	struct http_connection *scraper = add(&connections, &here, HTTP_STAGE_REQUEST, 0);
	struct http_connection *answer = add(&connections, &there, HTTP_STAGE_ANSWER, 0);
	struct http_connection *first = add(&connections, &there, HTTP_STAGE_REQUEST, 1);
	struct http_connection *second = add(&connections, &there, HTTP_STAGE_REQUEST, 2);

	add(&connections, &here, HTTP_STAGE_REQUEST, 3);
	cr_expect(first->closing);
	cr_expect_not(second->closing || answer->closing || scraper->closing);
	cr_expect_eq(connections.evicted, 1);
	cr_expect_eq(http_connections_held(&connections, HTTP_STAGES, NULL), 4);
}

Test(connections, then_who_is_idle_then_the_last_to_be_checked_then_slow_readers)
{
	CONNECTIONS(connections);
	struct http_connection *reader = add(&connections, &here, HTTP_STAGE_ANSWER, 0);
	struct http_connection *check = add(&connections, &there, HTTP_STAGE_CHECK, 0);
	struct http_connection *late = add(&connections, &there, HTTP_STAGE_CHECK, 1);
	struct http_connection *idle = add(&connections, &here, HTTP_STAGE_IDLE, 9);

	http_connections_evict(&connections, 10);
	cr_expect(idle->closing);
	http_connections_evict(&connections, 10);
	cr_expect(late->closing && !check->closing);
	http_connections_evict(&connections, 10);
	cr_expect(check->closing && !reader->closing);
	http_connections_evict(&connections, 10);
	cr_expect(reader->closing);
	http_connections_evict(&connections, 10);
	cr_expect_eq(connections.evicted, 4, "there is nobody left");
}

Test(connections, who_has_as_many_as_anybody_gives_way_to_itself)
{
	CONNECTIONS(connections);
	struct http_connection *other = add(&connections, &there, HTTP_STAGE_REQUEST, 0);
	struct http_connection *another = add(&connections, &there, HTTP_STAGE_REQUEST, 0);
	struct http_connection *own = add(&connections, &here, HTTP_STAGE_IDLE, 1);

	add(&connections, &here, HTTP_STAGE_ANSWER, 2);
	add(&connections, &here, HTTP_STAGE_REQUEST, 4);
	cr_expect(own->closing);
	cr_expect_not(other->closing || another->closing);
}

Test(connections, every_stage_has_a_hard_deadline)
{
	CONNECTIONS(connections);
	struct http_connection *stages[HTTP_STAGES];

	connections.limits.max = HTTP_STAGES;
	cr_expect_eq(http_connections_due_ms(&connections), UINT64_MAX);
	for (int stage = 0; stage < HTTP_STAGES; stage++)
		stages[stage] = add(&connections, stage % 2 ? &here : &there, stage, 1000);
	cr_expect_eq(http_connections_due_ms(&connections), 1010);
	http_connections_expire(&connections, 1009);
	cr_expect_not(stages[HTTP_STAGE_REQUEST]->closing);
	for (uint64_t now_ms = 1010; now_ms <= 1100; now_ms++) {
		http_connections_expire(&connections, now_ms);
		for (int stage = 0; stage < HTTP_STAGES; stage++)
			cr_expect_eq(stages[stage]->closing,
				     now_ms >= 1000 + limits.stage_ms[stage], "%d at %ju", stage,
				     (uintmax_t)now_ms);
	}
	cr_expect_eq(connections.expired, HTTP_STAGES);
	cr_expect_eq(http_connections_due_ms(&connections), UINT64_MAX);
}

Test(connections, a_stage_may_have_no_deadline)
{
	CONNECTIONS(connections);
	struct http_connection *connection = add(&connections, &here, HTTP_STAGE_LATER, 1000);

	connections.limits.stage_ms[HTTP_STAGE_LATER] = 0;
	http_connections_expire(&connections, UINT64_MAX);
	cr_expect_not(connection->closing);
	cr_expect_eq(http_connections_due_ms(&connections), UINT64_MAX);
}

Test(connections, a_new_stage_begins_a_new_deadline)
{
	CONNECTIONS(connections);
	struct http_connection *connection = add(&connections, &here, HTTP_STAGE_IDLE, 0);

	http_connections_stage(&connections, connection, HTTP_STAGE_REQUEST, 90);
	cr_expect_eq(http_connections_due_ms(&connections), 100);
	http_connections_stage(&connections, connection, HTTP_STAGE_REQUEST, 95);
	cr_expect_eq(http_connections_due_ms(&connections), 105);
}

Test(connections, for_its_own_sake_only_a_late_answer_is_ended)
{
	CONNECTIONS(connections);
	struct http_connection *first = add(&connections, &here, HTTP_STAGE_ANSWER, 0);
	struct http_connection *second = add(&connections, &here, HTTP_STAGE_ANSWER, 50);

	cr_expect_not(http_connections_end_answer(&connections, &here, 200), "none is late");
	cr_expect_eq(http_connections_late_ms(&connections, &here, 200), 230, "taken for 200 ms");
	cr_expect_eq(http_connections_late_ms(&connections, &here, 230), UINT64_MAX, "it is");
	cr_expect_not(http_connections_are_closing(&connections));
	cr_expect(http_connections_end_answer(&connections, &here, 250));
	cr_expect(first->closing && !second->closing);
	cr_expect(http_connections_are_closing(&connections));
	cr_expect_eq(http_connections_held(&connections, HTTP_STAGE_ANSWER, NULL), 1);
}

Test(connections, for_the_sake_of_others_the_latest_of_those_who_have_most_is_ended)
{
	CONNECTIONS(connections);
	struct http_connection *single = add(&connections, &here, HTTP_STAGE_ANSWER, 0);
	struct http_connection *first = add(&connections, &there, HTTP_STAGE_ANSWER, 50);
	struct http_connection *second = add(&connections, &there, HTTP_STAGE_ANSWER, 51);

	cr_expect(http_connections_end_answer(&connections, &here, 52), "at once");
	cr_expect(first->closing);
	cr_expect_not(single->closing || second->closing);
	cr_expect_not(http_connections_end_answer(&connections, &here, 53), "it has as many now");
}

Test(connections, who_has_fewer_answers_is_to_be_answered_first)
{
	CONNECTIONS(connections);
	struct http_connection *answer = add(&connections, &there, HTTP_STAGE_ANSWER, 0);

	add(&connections, &there, HTTP_STAGE_WAIT, 1);
	cr_expect_not(http_connections_poorer_wait(&connections, &there), "itself is no other");
	add(&connections, &here, HTTP_STAGE_WAIT, 2);
	cr_expect(http_connections_poorer_wait(&connections, &there));
	cr_expect_not(http_connections_poorer_wait(&connections, &here));
	http_connections_stage(&connections, answer, HTTP_STAGE_IDLE, 3);
	cr_expect_not(http_connections_poorer_wait(&connections, &there), "they have as many");
}

Test(connections, closing_ones_count_no_more)
{
	CONNECTIONS(connections);
	struct http_connection *connection = add(&connections, &here, HTTP_STAGE_REQUEST, 0);

	http_connections_evict(&connections, 10);
	cr_expect_eq(http_connections_held(&connections, HTTP_STAGES, NULL), 0);
	http_connections_stage(&connections, connection, HTTP_STAGE_ANSWER, 1);
	cr_expect_eq(http_connections_held(&connections, HTTP_STAGES, NULL), 0,
		     "it comes back to nothing");
	cr_expect_eq(http_connections_due_ms(&connections), UINT64_MAX);
}
