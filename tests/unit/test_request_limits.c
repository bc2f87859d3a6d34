/* SPDX-License-Identifier: Apache-2.0 */
/* The request machine where things are late, unseen, or measured by clocks that differ. */
#include "wire.h"

/* --- the sweep -------------------------------------------------------------------------------- */

Test(request_limits, an_answer_settles_after_one_second_and_ends_with_its_last_send)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_send(&wire, 500);
	cr_expect_eq(wire_settle(&wire, 500), 0);
	cr_expect_eq(wire_settle(&wire, 499 + 1000000000), 0);
	cr_expect_eq(wire_settle(&wire, 500 + 1000000000), REQUEST_ENDED);
	EXPECT_LAST(wire, 100, 300);
	cr_expect_eq(wire_settle(&wire, 500 + 9 * SETTLE_NS), 0, "once");
	cr_expect_eq(wire_send(&wire, 501 + 9 * SETTLE_NS), REQUEST_UNREQUESTED);
}

Test(request_limits, what_is_idle_waits_or_is_in_service_never_settles)
{
	struct wire wire = wire_open();

	cr_expect_eq(wire_settle(&wire, 100 * SETTLE_NS), 0);
	wire_arrive(&wire, 100 * SETTLE_NS);
	cr_expect_eq(wire_settle(&wire, 200 * SETTLE_NS), 0);
	EXPECT_GAUGES(wire, 1, 0);
	wire_read(&wire, 200 * SETTLE_NS);
	cr_expect_eq(wire_settle(&wire, 300 * SETTLE_NS), 0);
	EXPECT_GAUGES(wire, 0, 1);
}

Test(request_limits, the_next_request_of_a_settled_connection_begins_and_ends_nothing)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_arrive(&wire, 400 + SETTLE_NS);
	cr_expect_eq(wire_settle(&wire, 500 + SETTLE_NS), REQUEST_ENDED);
	EXPECT_GAUGES(wire, 1, 0);
	cr_expect_eq(wire_read(&wire, 600 + SETTLE_NS), REQUEST_BEGAN);
	wire_send(&wire, 700 + SETTLE_NS);
	wire_close(&wire, 800 + SETTLE_NS);
	EXPECT_LAST(wire, 200, 100);
}

/* A blocking send of a large answer, the head of which was sent before. */
Test(request_limits, an_answer_whose_send_has_not_returned_is_still_sent)
{
	struct wire wire = wire_open();
	struct stream stream;

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	stream = wire_stream(&wire);
	cr_expect_not(conn_sends(&wire.conn, &stream), "the head alone");
	for (int i = 0; i < 3; i++) {
		wire_write(&wire);
		stream = wire_stream(&wire);
		cr_expect(conn_sends(&wire.conn, &stream));
	}
	wire_told(&wire, 900);
	stream = wire_stream(&wire);
	cr_expect_not(conn_sends(&wire.conn, &stream));
	cr_expect(conn_answered(&wire.conn));
	wire_close(&wire, 1000);
	EXPECT_LAST(wire, 100, 700);
}

Test(request_limits, bytes_whose_send_nobody_tells_of_are_not_sent_for_ever)
{
	struct wire wire = wire_open();
	struct stream stream;

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_write(&wire);
	stream = wire_stream(&wire);
	cr_expect(conn_sends(&wire.conn, &stream));
	cr_expect_not(conn_sends(&wire.conn, &stream), "it has not moved since the last sweep");
}

Test(request_limits, an_answer_that_a_reset_cuts_off_ends_with_the_reset)
{
	struct wire wire = wire_open();
	struct stream stream;

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_write(&wire);
	stream = wire_stream(&wire);
	stream.acked_seq -= 50;
	cr_expect_eq(wire_close_as(&wire, 900, &stream), REQUEST_ENDED);
	EXPECT_LAST(wire, 100, 700);
}

/* --- clocks that differ between CPUs ---------------------------------------------------------- */

Test(request_limits, a_read_on_a_cpu_whose_clock_is_behind_has_not_waited)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 90);
	wire_send(&wire, 80);
	wire_close(&wire, 70);
	EXPECT_LAST(wire, 0, 0);
}

Test(request_limits, a_sweep_on_a_cpu_whose_clock_is_behind_settles_nothing)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	cr_expect_eq(wire_settle(&wire, 290), 0);
}

/* --- reads that no hook sees ------------------------------------------------------------------ */

Test(request_limits, an_answer_to_bytes_taken_unseen_is_a_request_of_unknown_wait)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_write(&wire);
	wire_told_unread(&wire, 300, false);
	EXPECT_GAUGES(wire, 0, 0);
	wire_close(&wire, 400);
	cr_expect_eq(wire.began, 1);
	cr_expect_eq(wire.ended, 1);
	cr_expect_eq(wire.last.queue_ns, QUEUE_UNKNOWN);
	cr_expect_eq(wire.unrequested, 0);
	cr_expect_eq(wire.abandoned_queued, 0);
}

Test(request_limits, an_answer_to_bytes_taken_unseen_ends_the_request_before)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 150);
	wire_send(&wire, 170);
	wire_arrive(&wire, 200);
	wire_write(&wire);
	wire_told_unread(&wire, 300, false);
	cr_expect_eq(wire.began, 2);
	cr_expect_eq(wire.ended, 1);
	EXPECT_LAST(wire, 50, 20);
}

Test(request_limits, bytes_that_arrive_between_the_read_and_its_hook_keep_their_stamp)
{
	struct wire wire = wire_open();
	struct request ended;
	struct reading reading = { .now = T0 + 150, .sent_seq = wire.write_seq };

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 140); /* after the read took the first ones, before its hook runs */
	reading.arrived = conn_take(&wire.conn);
	conn_left(&wire.conn, 1);
	conn_read(&wire.conn, &reading, &ended);
	cr_expect_eq(wire.conn.queue_ns, 50);
	cr_expect_eq(wire.conn.arrived_ns, T0 + 140);
}

Test(request_limits, bytes_that_wait_matter_to_a_send_unless_it_begins_an_answer)
{
	struct wire wire = wire_open();

	cr_expect_eq(conn_waiting(&wire.conn), 0);
	wire_arrive(&wire, 100);
	cr_expect_eq(conn_waiting(&wire.conn), T0 + 100);
	wire_read_part(&wire, 200, true);
	cr_expect_eq(conn_waiting(&wire.conn), 0);
	wire_told_unread(&wire, 300, true);
	wire_write(&wire);
	wire_told_unread(&wire, 300, true);
	cr_expect_eq(conn_waiting(&wire.conn), T0 + 100);
}

Test(request_limits, service_is_as_old_as_the_read_of_the_request_at_hand)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	cr_expect_eq(conn_service_since(&wire.conn), T0 + 200);
	wire_send(&wire, 300);
	wire_settle(&wire, 300 + SETTLE_NS);
	cr_expect_eq(conn_service_since(&wire.conn), 0, "none is in service");
	wire_arrive(&wire, 400 + SETTLE_NS);
	wire_read(&wire, 500 + SETTLE_NS);
	cr_expect_eq(conn_service_since(&wire.conn), T0 + 500 + SETTLE_NS);
	wire_send(&wire, 500 + SETTLE_NS);
	wire_settle(&wire, 500 + 2 * SETTLE_NS);
	cr_expect_eq(conn_service_since(&wire.conn), 0, "answered within one tick of the clock");
}

/* A send is told late: the client has the answer, and its next request comes meanwhile. */
Test(request_limits, a_request_that_comes_while_a_send_is_told_was_read_by_nobody)
{
	struct wire wire = wire_open();
	uint64_t waiting;

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_write(&wire);
	waiting = conn_waiting(&wire.conn);
	wire_arrive(&wire, 400);
	cr_expect_eq(wire_told_gone(&wire, 410, waiting), 0);
	wire_read(&wire, 450);
	EXPECT_LAST(wire, 100, 210);
	wire_send(&wire, 500);
	wire_close(&wire, 600);
	EXPECT_LAST(wire, 50, 50);
}

Test(request_limits, bytes_are_gone_only_if_they_are_those_that_waited)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_arrive(&wire, 400);
	cr_expect_eq(wire_told_gone(&wire, 410, T0 + 399), 0);
	cr_expect_eq(conn_waiting(&wire.conn), T0 + 400);
}

Test(request_limits, bytes_taken_unseen_and_never_answered_are_not_called_abandoned)
{
	struct wire wire = wire_open();
	struct stream stream = wire_stream(&wire);

	wire_arrive(&wire, 100);
	cr_expect_eq(wire_close_as(&wire, 200, &stream), REQUEST_UNSEEN);
	cr_expect_eq(wire.ended + wire.began + wire.abandoned_queued + wire.abandoned_service, 0);
}

Test(request_limits, an_answer_to_bytes_taken_unseen_has_not_paused)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_send(&wire, 300 + PAUSE_NS);
	cr_expect(wire.conn.paused);
	wire_arrive(&wire, 9 * PAUSE_NS);
	wire_write(&wire);
	wire_told_unread(&wire, 10 * PAUSE_NS, false);
	cr_expect_not(wire.conn.paused, "that was the one before");
}

/* --- more than one request waits -------------------------------------------------------------- */

Test(request_limits, of_three_requests_read_one_by_one_each_has_waited_since_it_arrived)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 200);
	wire_arrive(&wire, 400);
	wire_read_part(&wire, 1000, true);
	wire_send(&wire, 1010);
	EXPECT_GAUGES(wire, 1, 0);
	wire_read_part(&wire, 1100, true);
	EXPECT_LAST(wire, 900, 10);
	wire_send(&wire, 1120);
	wire_read_part(&wire, 1300, false);
	EXPECT_LAST(wire, 900, 20);
	wire_send(&wire, 1330);
	wire_close(&wire, 1400);
	EXPECT_LAST(wire, 900, 30);
	cr_expect_eq(wire.ended, 3);
	cr_expect_eq(wire.abandoned_queued, 0);
}

/* Of more than three, the machine knows the first two and the last. */
Test(request_limits, of_many_requests_read_one_by_one_none_has_waited_too_long)
{
	struct wire wire = wire_open();

	for (int i = 1; i <= 5; i++)
		wire_arrive(&wire, 100 * i);
	for (int i = 1; i <= 5; i++) {
		wire_read_part(&wire, 1000 * i, i < 5);
		cr_expect_leq(wire.conn.queue_ns, 1000 * i - 100 * i, "of request %d", i);
		wire_send(&wire, 1000 * i + 10);
	}
	wire_close(&wire, 9000);
	EXPECT_LAST(wire, 5000 - 500, 10);
	cr_expect_eq(wire.ended, 5);
}

Test(request_limits, a_request_read_in_full_leaves_no_arrival_to_the_next)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 200);
	wire_arrive(&wire, 300);
	wire_read(&wire, 400);
	wire_send(&wire, 500);
	EXPECT_GAUGES(wire, 0, 0);
	wire_arrive(&wire, 600);
	wire_read(&wire, 700);
	EXPECT_LAST(wire, 300, 100);
	wire_send(&wire, 800);
	wire_close(&wire, 900);
	EXPECT_LAST(wire, 100, 100);
}

/* --- bytes that are not read any more --------------------------------------------------------- */

Test(request_limits, the_rest_of_a_body_that_was_there_at_the_answer_is_no_abandoned_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 150);
	wire_read_part(&wire, 200, true);
	wire_arrive(&wire, 250);
	wire_send(&wire, 300);
	wire_close(&wire, 400);
	cr_expect_eq(wire.ended, 1);
	EXPECT_LAST(wire, 100, 100);
	cr_expect_eq(wire.abandoned_queued, 0);
	cr_expect_eq(wire.abandoned_service, 0);
}

Test(request_limits, what_comes_after_the_answer_and_is_never_read_is_an_abandoned_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_arrive(&wire, 350);
	wire_close(&wire, 400);
	cr_expect_eq(wire.ended, 1);
	cr_expect_eq(wire.abandoned_queued, 1);
}

Test(request_limits, a_request_behind_the_rest_of_a_body_is_abandoned_as_well)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 150);
	wire_read_part(&wire, 200, true);
	wire_send(&wire, 300);
	wire_arrive(&wire, 350);
	wire_close(&wire, 400);
	cr_expect_eq(wire.ended, 1);
	cr_expect_eq(wire.abandoned_queued, 1);
}

Test(request_limits, a_body_that_was_not_wanted_is_not_abandoned_after_a_sweep_either)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 150);
	wire_read_part(&wire, 200, true);
	wire_send(&wire, 300);
	wire_settle(&wire, 400 + SETTLE_NS);
	wire_close(&wire, 500 + SETTLE_NS);
	cr_expect_eq(wire.ended, 1);
	cr_expect_eq(wire.abandoned_queued, 0);
}

Test(request_limits, what_comes_with_the_last_send_is_a_request_of_its_own)
{
	for (int settles = 0; settles <= 1; settles++) {
		struct wire wire = wire_open();

		wire_arrive(&wire, 100);
		wire_read(&wire, 200);
		wire_arrive(&wire, 300);
		wire_send(&wire, 300);
		if (settles)
			wire_settle(&wire, 400 + SETTLE_NS);
		wire_close(&wire, 500 + SETTLE_NS);
		cr_expect_eq(wire.ended, 1);
		cr_expect_eq(wire.abandoned_queued, 1);
	}
}

Test(request_limits, an_answer_may_settle_from_its_first_send_to_the_end_of_its_connection)
{
	struct wire wire = wire_open();

	cr_expect_not(conn_answered(&wire.conn));
	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	cr_expect_not(conn_answered(&wire.conn));
	wire_send(&wire, 300);
	cr_expect(conn_answered(&wire.conn));
	wire_close(&wire, 400);
	wire_told(&wire, 500);
	cr_expect_not(conn_answered(&wire.conn));
}
