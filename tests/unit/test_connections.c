/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "http/connections.h"

#define NO_FD (-1) /* shutting it down fails, which nobody minds */

static const struct http_limits limits = {
	.max = 4,
	.max_per_origin = 3,
	.stage_ms = { [HTTP_STAGE_REQUEST] = 10,
		      [HTTP_STAGE_IDLE] = 100,
		      [HTTP_STAGE_CHECK] = 30,
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

	for (int stage = 0; stage < HTTP_STAGES; stage++)
		while ((connection = TAILQ_FIRST(&connections->stages[stage])))
			http_connections_remove(connections, connection);
	while ((connection = TAILQ_FIRST(&connections->closing)))
		http_connections_remove(connections, connection);
}

#define CONNECTIONS(name)                                                          \
	__attribute__((cleanup(remove_all))) struct http_connections name = { 0 }; \
	http_connections_init(&name, &limits)

Test(connections, the_oldest_without_a_request_gives_way)
{
	CONNECTIONS(connections);
	struct http_connection *scraper = add(&connections, &here, HTTP_STAGE_ANSWER, 0);
	struct http_connection *idle = add(&connections, &here, HTTP_STAGE_IDLE, 0);
	struct http_connection *first = add(&connections, &there, HTTP_STAGE_REQUEST, 1);
	struct http_connection *second = add(&connections, &there, HTTP_STAGE_REQUEST, 2);

	add(&connections, &here, HTTP_STAGE_REQUEST, 3);
	cr_expect(first->closing);
	cr_expect_not(second->closing || idle->closing || scraper->closing);
	cr_expect_eq(connections.evicted, 1);
	cr_expect_eq(http_connections_len(&connections), 4);
}

Test(connections, then_who_is_idle_then_the_last_to_be_checked_then_slow_readers)
{
	CONNECTIONS(connections);
	struct http_connection *reader = add(&connections, &here, HTTP_STAGE_ANSWER, 0);
	struct http_connection *check = add(&connections, &there, HTTP_STAGE_CHECK, 0);
	struct http_connection *late = add(&connections, &there, HTTP_STAGE_CHECK, 1);
	struct http_connection *idle = add(&connections, &here, HTTP_STAGE_IDLE, 9);

	http_connections_evict(&connections);
	cr_expect(idle->closing);
	http_connections_evict(&connections);
	cr_expect(late->closing && !check->closing);
	http_connections_evict(&connections);
	cr_expect(check->closing && !reader->closing);
	http_connections_evict(&connections);
	cr_expect(reader->closing);
	http_connections_evict(&connections);
	cr_expect_eq(connections.evicted, 4, "there is nobody left");
}

Test(connections, an_origin_at_its_limit_gives_way_to_itself)
{
	CONNECTIONS(connections);
	struct http_connection *other = add(&connections, &there, HTTP_STAGE_REQUEST, 0);
	struct http_connection *own = add(&connections, &here, HTTP_STAGE_IDLE, 1);

	add(&connections, &here, HTTP_STAGE_ANSWER, 2);
	add(&connections, &here, HTTP_STAGE_ANSWER, 3);
	add(&connections, &here, HTTP_STAGE_REQUEST, 4);
	cr_expect(own->closing);
	cr_expect_not(other->closing);
}

Test(connections, every_stage_has_a_hard_deadline)
{
	CONNECTIONS(connections);
	struct http_connection *stages[HTTP_STAGES];

	cr_expect_eq(http_connections_timeout_ms(&connections, 5), -1);
	for (int stage = 0; stage < HTTP_STAGES; stage++)
		stages[stage] = add(&connections, stage % 2 ? &here : &there, stage, 1000);
	cr_expect_eq(http_connections_timeout_ms(&connections, 1000), 10);
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
	cr_expect_eq(http_connections_timeout_ms(&connections, 2000), -1);
}

Test(connections, a_new_stage_begins_a_new_deadline)
{
	CONNECTIONS(connections);
	struct http_connection *connection = add(&connections, &here, HTTP_STAGE_IDLE, 0);

	http_connections_stage(&connections, connection, HTTP_STAGE_REQUEST, 90);
	cr_expect_eq(http_connections_timeout_ms(&connections, 91), 9);
	http_connections_stage(&connections, connection, HTTP_STAGE_REQUEST, 95);
	cr_expect_eq(http_connections_timeout_ms(&connections, 95), 10);
}

Test(connections, stalled_answers_give_way_to_new_ones)
{
	CONNECTIONS(connections);
	struct http_connection *first = add(&connections, &here, HTTP_STAGE_ANSWER, 0);
	struct http_connection *second = add(&connections, &here, HTTP_STAGE_ANSWER, 5);

	cr_expect(http_connections_make_room(&connections, 3, 10, 6), "two of three");
	cr_expect_not(http_connections_make_room(&connections, 2, 10, 9), "none has stalled");
	cr_expect(http_connections_make_room(&connections, 2, 10, 10));
	cr_expect(first->closing && !second->closing);
	cr_expect_eq(connections.stage_len[HTTP_STAGE_ANSWER], 1);
}

Test(connections, closing_ones_count_no_more)
{
	CONNECTIONS(connections);
	struct http_connection *connection = add(&connections, &here, HTTP_STAGE_REQUEST, 0);

	http_connections_evict(&connections);
	cr_expect_eq(http_connections_len(&connections), 0);
	http_connections_stage(&connections, connection, HTTP_STAGE_ANSWER, 1);
	cr_expect_eq(http_connections_len(&connections), 0, "it comes back to nothing");
	cr_expect_eq(http_connections_timeout_ms(&connections, 1), -1);
}

static struct http_origin origin_of(const char *text)
{
	struct sockaddr_storage address = { 0 };
	struct sockaddr_in *v4 = (void *)&address;
	struct sockaddr_in6 *v6 = (void *)&address;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		address.ss_family = AF_INET;
	} else {
		cr_assert_eq(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
		address.ss_family = AF_INET6;
	}
	return http_origin_of(&address);
}

Test(connections, an_origin_is_an_address_or_a_network_of_ipv6)
{
	static const struct {
		const char *one, *other;
		bool equal;
	} pairs[] = {
		{ "10.0.0.1", "10.0.0.1", true },
		{ "10.0.0.1", "10.0.0.2", false },
		{ "10.0.0.1", "::ffff:10.0.0.1", true },
		{ "2001:db8::1", "2001:db8::ffff:1", true },
		{ "2001:db8::1", "2001:db8:0:1::1", false },
		{ "::1", "127.0.0.1", false },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		struct http_origin one = origin_of(pairs[i].one);
		struct http_origin other = origin_of(pairs[i].other);

		cr_expect_eq(http_origin_equal(&one, &other), pairs[i].equal, "%s and %s",
			     pairs[i].one, pairs[i].other);
	}
}
