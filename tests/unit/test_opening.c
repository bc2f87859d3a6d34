/* SPDX-License-Identifier: Apache-2.0 */
/* Connections on which the server speaks first, and what their clients wait for. */
#include "wire.h"

#define GREETED (REQUEST_UNREQUESTED | REQUEST_GREETED)
#define LATE (2 * GOODBYE_NS)

/* A connection that is made at 100 to a server that speaks first. */
static struct wire opened(void)
{
	struct wire wire = wire_open();

	wire.opened = T0 + 100;
	return wire;
}

/* The same, greeted at 700. */
static struct wire greeted(void)
{
	struct wire wire = opened();

	cr_assert_eq(wire_send(&wire, 700), GREETED);
	cr_assert_eq(wire.ended, 0);
	return wire;
}

Test(opening, a_client_waits_to_be_greeted_and_then_to_be_read)
{
	struct wire wire = greeted();

	wire_arrive(&wire, 5000);
	cr_expect_eq(wire_read(&wire, 5030), REQUEST_BEGAN);
	wire_send(&wire, 5100);
	wire_arrive(&wire, 6000);
	wire_read(&wire, 6004);
	EXPECT_LAST(wire, 600 + 30, 70);
	wire_send(&wire, 6010);
	wire_close(&wire, 7000);
	EXPECT_LAST(wire, 4, 6);
}

Test(opening, what_came_before_the_greeting_does_not_wait_twice)
{
	struct wire wire = opened();

	wire_arrive(&wire, 110);
	cr_expect_eq(wire_send(&wire, 700), GREETED);
	wire_read(&wire, 730);
	wire_send(&wire, 800);
	wire_close(&wire, 900);
	EXPECT_LAST(wire, 630, 70);
}

Test(opening, a_cpu_whose_clock_is_behind_makes_no_wait)
{
	struct wire wire = opened();

	cr_expect_eq(wire_send(&wire, 90), GREETED);
	wire_arrive(&wire, 5000);
	wire_read(&wire, 5030);
	wire_send(&wire, 5100);
	wire_close(&wire, 6000);
	EXPECT_LAST(wire, 30, 70);
	wire = opened();
	wire_arrive(&wire, 110);
	cr_expect_eq(wire_send(&wire, 700), GREETED);
	wire_read(&wire, 690);
	wire_send(&wire, 800);
	wire_close(&wire, 900);
	EXPECT_LAST(wire, 600, 110);
}

Test(opening, what_was_not_seen_to_arrive_stays_unknown)
{
	struct wire wire = greeted();

	wire_read(&wire, 5030);
	wire_send(&wire, 5100);
	wire_close(&wire, 6000);
	EXPECT_LAST(wire, QUEUE_UNKNOWN, 70);
}

Test(opening, who_has_said_all_may_still_wait)
{
	struct wire wire = opened();

	wire_arrive(&wire, LATE);
	conn_fin(&wire.conn, T0 + LATE);
	cr_expect_eq(wire_send(&wire, 3 * LATE), GREETED);
	wire_read(&wire, 3 * LATE + 10);
	wire_send(&wire, 3 * LATE + 20);
	wire_close(&wire, 4 * LATE);
	EXPECT_LAST(wire, 3 * LATE - 100 + 10, 10);
	cr_expect_eq(wire.abandoned_queued, 0);
}

/* By what had been sent when it was read, as the hook of a send may be late. */
Test(opening, a_client_opens_where_nothing_had_been_sent)
{
	struct wire wire = wire_open();

	wire.conn.start_seq = wire.write_seq;
	wire_arrive(&wire, 110);
	wire_read(&wire, 120);
	cr_expect(wire.conn.opens);
	wire_send(&wire, 130);
	wire_arrive(&wire, 140);
	wire_read(&wire, 150);
	cr_expect_not(wire.conn.opens, "not the first");

	wire = wire_open();
	wire.conn.start_seq = wire.write_seq;
	wire_write(&wire);
	wire_arrive(&wire, 110);
	wire_read(&wire, 120);
	cr_expect_not(wire.conn.opens);
	wire = wire_open();
	wire_arrive(&wire, 110);
	wire_read(&wire, 120);
	cr_expect_not(wire.conn.opens, "older than we are");
}

Test(opening, a_greeting_of_many_sends_is_one)
{
	struct wire wire = greeted();

	cr_expect_eq(wire_send(&wire, 900), REQUEST_UNREQUESTED);
	wire_arrive(&wire, 5000);
	wire_read(&wire, 5030);
	wire_send(&wire, 5100);
	wire_close(&wire, 6000);
	EXPECT_LAST(wire, 630, 70);
}

Test(opening, a_preamble_may_come_before_it)
{
	struct wire wire = opened();

	wire_arrive(&wire, 110);
	cr_expect_eq(wire_read_bytes(&wire, 120, 50, BEGINS_PREAMBLE, false), REQUEST_PREAMBLE);
	cr_expect(conn_is_new(&wire.conn));
	cr_expect_eq(wire_send(&wire, 700), GREETED);
}

Test(opening, who_speaks_after_a_read_does_not_speak_first)
{
	struct wire wire = opened();

	wire_arrive(&wire, 110);
	wire_read(&wire, 120);
	cr_expect_not(conn_is_new(&wire.conn));
	cr_expect_eq(wire_send(&wire, 700), REQUEST_ANSWERED);
	wire_close(&wire, 900);
	EXPECT_LAST(wire, 10, 580);
}

Test(opening, who_gives_up_has_abandoned_it)
{
	struct wire wire = opened();

	cr_expect(conn_awaits(&wire.conn, wire.opened));
	conn_fin(&wire.conn, T0 + LATE);
	cr_expect(conn_awaits(&wire.conn, wire.opened), "the server does not know");
	cr_expect_eq(wire_close(&wire, 2 * LATE), REQUEST_ABANDONED_QUEUED);

	wire = opened();
	conn_fin(&wire.conn, T0 + LATE);
	cr_expect_eq(wire_send(&wire, 2 * LATE), REQUEST_UNREQUESTED | REQUEST_ABANDONED_QUEUED,
		     "greeted too late");
	cr_expect_eq(wire_close(&wire, 3 * LATE), 0);

	wire = opened();
	cr_expect_eq(wire_close(&wire, 200), REQUEST_ABANDONED_QUEUED, "by the server");
	wire = greeted();
	cr_expect_eq(wire_close(&wire, LATE), 0);
}

Test(opening, who_only_looks_in_waits_for_nothing)
{
	struct wire wire = opened();
	struct stream stream = wire_stream(&wire);

	conn_fin(&wire.conn, T0 + 200);
	cr_expect_not(conn_awaits(&wire.conn, wire.opened));
	cr_expect_eq(wire_close(&wire, LATE), 0);

	wire = opened();
	conn_fin(&wire.conn, T0 + 200);
	cr_expect_eq(wire_send(&wire, LATE), REQUEST_UNREQUESTED);

	wire = opened();
	stream.reset = true;
	cr_expect_eq(wire_close_as(&wire, 200, &stream), 0, "a check that resets");
	wire = opened();
	cr_expect_eq(wire_close_as(&wire, LATE, &stream), REQUEST_ABANDONED_QUEUED);
	cr_expect_not(conn_awaits(&wire.conn, 0), "the client speaks first");
}

Test(opening, a_goodbye_after_a_greeting_is_told_by_its_own_bytes)
{
	struct wire wire = greeted();

	wire_arrive(&wire, LATE);
	wire_read(&wire, LATE + 10);
	conn_fin(&wire.conn, T0 + LATE + 20);
	cr_expect_eq(wire_close(&wire, LATE + 30), REQUEST_GOODBYE);

	wire = greeted();
	wire_arrive(&wire, 5000);
	wire_read(&wire, 5010);
	conn_fin(&wire.conn, T0 + LATE);
	cr_expect_eq(wire_close(&wire, LATE + 30), REQUEST_ABANDONED_SERVICE);
}
