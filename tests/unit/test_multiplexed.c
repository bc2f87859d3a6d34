/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that many requests share, and those that only look like it. */
#include "wire.h"

Test(multiplexed, http_2_is_counted_and_not_measured)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	cr_expect_eq(wire_read_bytes(&wire, 100, 300, BEGINS_PREFACE, false), REQUEST_MULTIPLEXED);
	EXPECT_GAUGES(wire, 0, 0);
	cr_expect_not(conn_is_new(&wire.conn), "it waits for no greeting");
	wire_arrive(&wire, 500);
	EXPECT_GAUGES(wire, 1, 0);
	conn_take(&wire.conn);
	EXPECT_GAUGES(wire, 0, 0);
	cr_expect_eq(wire_close(&wire, 900), 0);
	cr_expect_not(conn_is_over(&wire.conn), "it was open, for the gauge of connections");
}

/* The header of its record is read first, and then the message that offers HTTP/2 alone. */
Test(multiplexed, http_2_in_tls_may_be_known_by_the_second_read)
{
	struct wire wire = wire_open();

	wire.conn.start_seq = wire.write_seq; /* as the kernel sets it */
	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, TLS_HEADER_BYTES, BEGINS_TLS, true);
	EXPECT_GAUGES(wire, 0, 1);
	cr_expect(wire_asks(&wire, 50));
	cr_expect_eq(wire_read_bytes(&wire, 110, 512, BEGINS_PREFACE, false), REQUEST_MULTIPLEXED);
	EXPECT_GAUGES(wire, 0, 0);
	cr_expect_not(conn_is_new(&wire.conn), "it waits for no greeting");
	wire_close(&wire, 900);
	cr_expect_eq(wire.ended + wire.abandoned_service + wire.goodbyes, 0);
}

Test(multiplexed, only_the_first_message_in_tls_is_looked_at)
{
	struct wire wire = wire_open();

	wire.conn.start_seq = wire.write_seq; /* as the kernel sets it */
	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, TLS_HEADER_BYTES, BEGINS_TLS, true);
	wire_read_bytes(&wire, 110, 512, BEGINS_UNSEEN, false);
	cr_expect_not(wire_asks(&wire, 110), "a part of that message");
	wire_send(&wire, 200);
	wire_arrive(&wire, 300);
	wire_read_bytes(&wire, 310, TLS_HEADER_BYTES, BEGINS_UNSEEN, true);
	cr_expect_not(wire_asks(&wire, 300), "another record");
}

/* A request that crosses an answer or waits for it, and its own answer. */
static uint32_t turn(struct wire *wire, bool crosses)
{
	uint32_t events;

	if (crosses)
		wire_cross(wire, 1000);
	else
		wire_arrive(wire, 1000);
	events = wire->conn.closed ? 0 : wire_read(wire, 1000);
	wire_send(wire, 1500);
	return events;
}

/* @times: the client sends while it has not got the answer; @waits: and how often it has. */
static uint32_t mix(struct wire *wire, int times, int waits)
{
	uint32_t events = 0;

	for (int i = 0; i < times; i++)
		for (int j = 0; j <= waits; j++)
			events |= turn(wire, j == 0);
	return events;
}

/* That the eighth was answered too is seen when the next one is read. */
Test(multiplexed, a_client_that_does_not_wait_for_answers_shares_its_connection)
{
	struct wire wire = wire_open();

	cr_expect_not(mix(&wire, 8, 0) & REQUEST_MULTIPLEXED);
	cr_expect_eq(turn(&wire, false), REQUEST_MULTIPLEXED);
	cr_expect_eq(conn_multiplexed(&wire.conn), 0, "once");
	wire = wire_open();
	cr_expect(mix(&wire, 100, 3) & REQUEST_MULTIPLEXED, "one of four");
	cr_expect_eq(wire.multiplexed, 1);
}

Test(multiplexed, a_client_that_mostly_waits_does_not)
{
	struct wire wire = wire_open();

	cr_expect_not(mix(&wire, 1000, 4) & REQUEST_MULTIPLEXED);
	wire = wire_open();
	cr_expect_not(mix(&wire, 1, 9) & REQUEST_MULTIPLEXED, "it has always waited");
	cr_expect_eq(wire.conn.mixed, 0);
}

/* An upload has many segments, and all of the first window may cross what the server sends. */
Test(multiplexed, many_segments_of_one_request_cross_once)
{
	struct wire wire = wire_open();

	turn(&wire, false);
	for (int i = 0; i < 100; i++) {
		wire_cross(&wire, 1000);
		cr_expect_not(wire_read(&wire, 1000) & REQUEST_MULTIPLEXED);
	}
	wire_send(&wire, 1500);
	turn(&wire, false);
	cr_expect_eq(wire.conn.mixed, MIXED_WEIGHT);
}

Test(multiplexed, http_1_does_not_share)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_REQUEST, false);
	wire_send(&wire, 200);
	cr_expect_not(mix(&wire, 100, 0) & REQUEST_MULTIPLEXED);
}

/* What a first request of @request, answered by @answer, has led to. */
static struct wire switched(uint32_t request, uint32_t answer)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, request, false);
	wire_write(&wire);
	wire_told_as(&wire, 250, false, answer);
	return wire;
}

Test(multiplexed, what_follows_a_switch_of_protocols_is_not_measured)
{
	static const uint32_t pairs[][2] = { { BEGINS_REQUEST, BEGINS_SWITCH },
					     { BEGINS_UPLOAD, BEGINS_SWITCH },
					     { BEGINS_TUNNEL, BEGINS_SUCCESS } };

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		struct wire wire = switched(pairs[i][0], pairs[i][1]);

		cr_expect_eq(wire.multiplexed, 1);
		cr_expect_eq(wire.answered, 1);
		cr_expect_eq(wire.ended, 1, "the request itself");
		EXPECT_LAST(wire, 50, 150);
		EXPECT_GAUGES(wire, 0, 0);
		wire_arrive(&wire, 500);
		EXPECT_GAUGES(wire, 1, 0);
		cr_expect_eq(wire_close(&wire, 900), 0);
		cr_expect_eq(wire.ended, 1);
	}
}

Test(multiplexed, other_answers_switch_nothing)
{
	static const uint32_t pairs[][2] = { { BEGINS_REQUEST, BEGINS_SUCCESS },
					     { BEGINS_UPLOAD, BEGINS_SUCCESS },
					     { BEGINS_TUNNEL, BEGINS_ANSWER } };

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		struct wire wire = switched(pairs[i][0], pairs[i][1]);

		cr_expect_eq(wire.multiplexed, 0);
		wire_arrive(&wire, 500);
		wire_read_bytes(&wire, 600, 300, BEGINS_REQUEST, false);
		wire_write(&wire);
		wire_told_as(&wire, 650, false, BEGINS_SUCCESS);
		cr_expect_eq(wire.multiplexed, 0, "that was another request");
	}
}

/* As a proxy that asks for a password. */
Test(multiplexed, a_second_attempt_at_a_tunnel_is_known)
{
	struct wire wire = switched(BEGINS_TUNNEL, BEGINS_ANSWER);

	wire_arrive(&wire, 500);
	cr_expect(wire_asks(&wire, 500));
	wire_read_bytes(&wire, 600, 300, BEGINS_TUNNEL, false);
	wire_write(&wire);
	cr_expect_eq(wire_told_as(&wire, 650, false, BEGINS_SUCCESS),
		     REQUEST_ANSWERED | REQUEST_ENDED | REQUEST_MULTIPLEXED);
	EXPECT_LAST(wire, 100, 50);
}

Test(multiplexed, a_connection_that_is_closed_meanwhile_ends_once)
{
	struct wire wire = wire_open();
	struct request ended = { UNTOUCHED, UNTOUCHED };

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_REQUEST, false);
	wire_send(&wire, 200);
	wire_close(&wire, 300);
	cr_expect_eq(conn_switched(&wire.conn, T0 + 300, &ended), 0);
	cr_expect_eq(wire.ended, 1);
}
