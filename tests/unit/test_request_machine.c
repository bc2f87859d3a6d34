/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

/* --- queue and service ------------------------------------------------------------------------ */

Test(requests, a_request_waits_is_served_and_ends_with_its_last_send)
{
	struct wire wire = wire_open();

	EXPECT_GAUGES(wire, 0, 0);
	wire_arrive(&wire, 100);
	EXPECT_GAUGES(wire, 1, 0);
	cr_expect_eq(wire_read(&wire, 350), REQUEST_BEGAN);
	EXPECT_GAUGES(wire, 0, 1);
	cr_expect_eq(wire_send(&wire, 900), REQUEST_ANSWERED);
	EXPECT_GAUGES(wire, 0, 0);
	cr_expect_eq(wire_close(&wire, 5000), REQUEST_ENDED);
	EXPECT_LAST(wire, 250, 550);
}

Test(requests, only_the_first_bytes_that_become_readable_are_stamped)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 200);
	wire_arrive(&wire, 300);
	wire_read(&wire, 1000);
	wire_send(&wire, 1500);
	wire_close(&wire, 2000);
	EXPECT_LAST(wire, 900, 500);
}

Test(requests, a_body_in_several_reads_is_one_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(wire_read_part(&wire, 150, true), REQUEST_BEGAN);
	cr_expect_eq(wire_read(&wire, 160), 0);
	for (int i = 0; i < 10; i++) {
		wire_arrive(&wire, 200 + 10 * i);
		EXPECT_GAUGES(wire, 0, 1);
		cr_expect_eq(wire_read(&wire, 205 + 10 * i), 0);
	}
	wire_send(&wire, 1150);
	wire_close(&wire, 2000);
	cr_expect_eq(wire.began, 1);
	cr_expect_eq(wire.ended, 1);
	EXPECT_LAST(wire, 50, 1000);
}

Test(requests, an_answer_in_several_sends_ends_with_the_last_one)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 150);
	cr_expect_eq(wire_send(&wire, 200), REQUEST_ANSWERED);
	cr_expect_eq(wire_send(&wire, 300), 0);
	cr_expect_eq(wire_send(&wire, 400), 0);
	wire_close(&wire, 9000);
	cr_expect_eq(wire.answered, 1);
	EXPECT_LAST(wire, 50, 250);
}

Test(requests, a_read_after_an_answer_ends_the_request_at_its_last_send_and_begins_the_next)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 150);
	wire_send(&wire, 200);
	wire_send(&wire, 300);
	wire_arrive(&wire, 700);
	EXPECT_GAUGES(wire, 1, 0);
	cr_expect_eq(wire_read(&wire, 900), REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 50, 150);
	EXPECT_GAUGES(wire, 0, 1);
	wire_send(&wire, 1000);
	cr_expect_eq(wire_close(&wire, 1500), REQUEST_ENDED);
	EXPECT_LAST(wire, 200, 100);
}

Test(requests, every_request_of_a_kept_connection_has_its_own_times)
{
	struct wire wire = wire_open();

	for (uint64_t i = 1; i <= 1000; i++) {
		uint64_t at = i * 10000;

		wire_arrive(&wire, at);
		wire_read(&wire, at + i);
		wire_send(&wire, at + 3 * i);
		if (i > 1)
			EXPECT_LAST(wire, i - 1, 2 * (i - 1));
	}
	wire_close(&wire, 20000000);
	EXPECT_LAST(wire, 1000, 2000);
	cr_expect_eq(wire.began, 1000);
	cr_expect_eq(wire.ended, 1000);
	cr_expect_eq(wire.answered, 1000);
}

/* Two requests in a row from a client that does not wait: the second has been there since 200. */
Test(requests, bytes_that_a_read_leaves_behind_have_waited_since_the_latest_arrival)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 200);
	wire_read_part(&wire, 500, true);
	wire_send(&wire, 600);
	EXPECT_GAUGES(wire, 1, 0);
	cr_expect_eq(wire_read(&wire, 700), REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 400, 100);
	wire_send(&wire, 800);
	wire_close(&wire, 900);
	EXPECT_LAST(wire, 500, 100);
}

/* --- what is not known is not invented -------------------------------------------------------- */

Test(requests, an_unknown_arrival_is_not_invented)
{
	struct wire wire = wire_open();

	cr_expect_eq(wire_read(&wire, 500), REQUEST_BEGAN);
	wire_send(&wire, 600);
	cr_expect_eq(wire_close(&wire, 700), REQUEST_ENDED);
	EXPECT_LAST(wire, QUEUE_UNKNOWN, 100);
}

Test(requests, bytes_left_behind_of_an_unknown_arrival_stay_unknown)
{
	struct wire wire = wire_open();

	wire_read_part(&wire, 500, true);
	wire_send(&wire, 600);
	EXPECT_GAUGES(wire, 0, 0);
	wire_read(&wire, 700);
	EXPECT_LAST(wire, QUEUE_UNKNOWN, 100);
	wire_send(&wire, 800);
	wire_close(&wire, 900);
	EXPECT_LAST(wire, QUEUE_UNKNOWN, 100);
}

Test(requests, a_known_request_may_follow_an_unknown_one)
{
	struct wire wire = wire_open();

	wire_read(&wire, 500);
	wire_send(&wire, 600);
	wire_arrive(&wire, 700);
	wire_read(&wire, 710);
	wire_send(&wire, 730);
	wire_close(&wire, 900);
	EXPECT_LAST(wire, 10, 20);
}

/* --- the end of a connection ------------------------------------------------------------------ */

Test(requests, closed_before_the_read_is_abandoned_in_the_queue)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(wire_close(&wire, 200), REQUEST_ABANDONED_QUEUED);
	EXPECT_GAUGES(wire, 0, 0);
}

Test(requests, closed_in_service_is_abandoned_in_service_and_no_request_has_ended)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	cr_expect_eq(wire_close(&wire, 300), REQUEST_ABANDONED_SERVICE);
	EXPECT_GAUGES(wire, 0, 0);
}

Test(requests, the_unread_rest_of_an_abandoned_body_is_no_second_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read_part(&wire, 200, true);
	wire_arrive(&wire, 250);
	cr_expect_eq(wire_close(&wire, 300), REQUEST_ABANDONED_SERVICE);
	EXPECT_GAUGES(wire, 0, 0);
}

Test(requests, closed_after_the_answer_is_a_request_that_ended)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	cr_expect_eq(wire_close(&wire, 100000), REQUEST_ENDED);
	EXPECT_LAST(wire, 100, 100);
}

Test(requests, closed_after_the_answer_with_more_bytes_waiting_is_one_of_each)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_arrive(&wire, 400);
	cr_expect_eq(wire_close(&wire, 500), REQUEST_ENDED | REQUEST_ABANDONED_QUEUED);
	EXPECT_LAST(wire, 100, 100);
	EXPECT_GAUGES(wire, 0, 0);
}

Test(requests, an_idle_connection_closes_without_a_trace)
{
	struct wire wire = wire_open();

	cr_expect_eq(wire_close(&wire, 100), 0);
	wire = wire_open();
	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_settle(&wire, 300 + 2 * SETTLE_NS);
	cr_expect_eq(wire_close(&wire, 400 + 2 * SETTLE_NS), 0);
}

Test(requests, a_second_close_is_ignored)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(wire_close(&wire, 200), REQUEST_ABANDONED_QUEUED);
	cr_expect(conn_is_over(&wire.conn));
	cr_expect_eq(wire_close(&wire, 201), 0);
	wire = wire_open();
	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	cr_expect_eq(wire_close(&wire, 400), REQUEST_ENDED);
	cr_expect_eq(wire_close(&wire, 500), 0);
}

/* --- goodbyes ----------------------------------------------------------------------------------
 */

Test(requests, bytes_and_the_end_of_the_client_together_are_a_goodbye)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	conn_fin(&wire.conn, T0 + 150);
	wire_read(&wire, 200);
	cr_expect_eq(wire_close(&wire, 90 * GOODBYE_NS), REQUEST_GOODBYE);
	wire = wire_open();
	wire_arrive(&wire, 100);
	conn_fin(&wire.conn, T0 + 100 + GOODBYE_NS);
	cr_expect_eq(wire_close(&wire, 90 * GOODBYE_NS), REQUEST_GOODBYE, "never read");
}

/* Bytes and FIN in one segment: TCP changes its state before it says that there are bytes. */
Test(requests, a_goodbye_may_end_before_it_arrives)
{
	struct wire wire = wire_open();

	conn_fin(&wire.conn, T0 + 101);
	wire_arrive(&wire, 102);
	wire_read(&wire, 200);
	cr_expect_eq(wire_close(&wire, 300), REQUEST_GOODBYE);
}

Test(requests, who_ends_its_side_later_has_given_up)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	conn_fin(&wire.conn, T0 + 101 + GOODBYE_NS);
	cr_expect_eq(wire_close(&wire, 102 + GOODBYE_NS), REQUEST_ABANDONED_SERVICE);
	wire = wire_open();
	wire_arrive(&wire, 100);
	wire_arrive(&wire, GOODBYE_NS); /* more of it: what counts is since when it has waited */
	conn_fin(&wire.conn, T0 + 101 + GOODBYE_NS);
	cr_expect_eq(wire_close(&wire, 102 + GOODBYE_NS), REQUEST_ABANDONED_QUEUED);
}

Test(requests, a_client_that_ends_its_side_and_is_answered_has_made_a_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	conn_fin(&wire.conn, T0 + 110);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	cr_expect_eq(wire_close(&wire, 400), REQUEST_ENDED);
	EXPECT_LAST(wire, 100, 100);
	cr_expect_eq(wire.goodbyes, 0);
}

/* Which side closes first is a race if the server closes as soon as it has read the goodbye. */
Test(requests, when_both_close_at_once_the_client_has_said_goodbye)
{
	for (int crossed = 0; crossed <= 1; crossed++) {
		struct wire wire = wire_open();
		struct stream stream = wire_stream(&wire);

		wire_arrive(&wire, 100);
		wire_read(&wire, 200);
		stream.leaving = 1;
		cr_expect_eq(wire_close_as(&wire, 300, &stream), 0, "not known yet");
		EXPECT_GAUGES(wire, 0, 0);
		cr_expect_eq(wire_close_as(&wire, 310, &stream), 0);
		cr_expect_eq(conn_left_by_both(&wire.conn, T0 + 400, crossed),
			     crossed ? REQUEST_GOODBYE : REQUEST_ABANDONED_SERVICE);
		cr_expect_eq(conn_left_by_both(&wire.conn, T0 + 500, crossed), 0, "once");
	}
}

Test(requests, a_server_that_closes_at_once_after_answers_has_been_asked_to)
{
	struct wire wire = wire_open();
	struct stream stream;

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_arrive(&wire, 400);
	wire_read(&wire, 500);
	stream = wire_stream(&wire);
	stream.leaving = 1;
	cr_expect_eq(wire_close_as(&wire, 600, &stream), REQUEST_GOODBYE);
}

Test(requests, a_goodbye_takes_up_to_10_ms)
{
	struct wire wire = wire_open();
	struct stream stream;

	wire_arrive(&wire, 100);
	conn_fin(&wire.conn, T0 + 100 + 10000000);
	cr_expect_eq(wire_close(&wire, 20000000), REQUEST_GOODBYE);
	wire = wire_open();
	wire_arrive(&wire, 100);
	conn_fin(&wire.conn, T0 + 101 + 10000000);
	cr_expect_eq(wire_close(&wire, 20000000), REQUEST_ABANDONED_QUEUED);
	wire = wire_open();
	stream = wire_stream(&wire);
	stream.leaving = 1;
	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	cr_expect_eq(wire_close_as(&wire, 100 + 10000000, &stream), 0, "the server's may be one");
	cr_expect(conn_is_over(&wire.conn), "although that is not known yet");
}

Test(requests, a_server_that_closes_later_without_an_answer_has_given_none)
{
	struct wire wire = wire_open();
	struct stream stream = wire_stream(&wire);

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	stream.leaving = 1;
	cr_expect_eq(wire_close_as(&wire, 101 + GOODBYE_NS, &stream), REQUEST_ABANDONED_SERVICE);
	cr_expect_eq(conn_left_by_both(&wire.conn, T0 + 102 + GOODBYE_NS, 1), 0);
}

/* --- sends that answer nothing, or are told late ---------------------------------------------- */

Test(requests, a_server_that_speaks_first_answers_nothing)
{
	struct wire wire = wire_open();

	cr_expect_eq(wire_send(&wire, 50), REQUEST_UNREQUESTED);
	cr_expect_eq(wire_send(&wire, 60), REQUEST_UNREQUESTED);
	EXPECT_GAUGES(wire, 0, 0);
	wire_arrive(&wire, 100);
	cr_expect_eq(wire_read(&wire, 200), REQUEST_BEGAN);
	cr_expect_eq(wire_close(&wire, 300), REQUEST_ABANDONED_SERVICE,
		     "the greeting is no answer");
}

Test(requests, a_push_while_a_request_waits_answers_nothing)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(wire_send(&wire, 150), REQUEST_UNREQUESTED);
	EXPECT_GAUGES(wire, 1, 0);
	wire_read(&wire, 200);
	wire_send(&wire, 240);
	wire_close(&wire, 300);
	EXPECT_LAST(wire, 100, 40);
}

/* Thread A has sent; thread B reads the next request before A's hook runs. */
Test(requests, a_send_that_is_told_after_the_next_read_belongs_to_the_previous_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_write(&wire);
	wire_arrive(&wire, 400);
	cr_expect_eq(wire_read(&wire, 450), REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 100, 200); /* sent at the latest when the client's next bytes came */
	cr_expect_eq(wire_told(&wire, 460), 0);
	EXPECT_GAUGES(wire, 0, 1);
	cr_expect_eq(wire_send(&wire, 500), REQUEST_ANSWERED);
	wire_close(&wire, 600);
	EXPECT_LAST(wire, 50, 50);
}

/* The bytes had arrived together: they do not tell when the answer was sent. */
Test(requests, a_late_send_before_bytes_that_were_left_behind_does_not_end_before_its_read)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read_part(&wire, 200, true);
	wire_write(&wire);
	cr_expect_eq(wire_read(&wire, 300), REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 100, 100);
}

Test(requests, bytes_that_come_with_a_read_do_not_tell_when_the_answer_was_sent)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_arrive(&wire, 200);
	wire_write(&wire);
	wire_read(&wire, 300);
	EXPECT_LAST(wire, 100, 100);
}

Test(requests, a_late_send_does_not_save_the_next_request_from_being_abandoned)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_write(&wire);
	wire_arrive(&wire, 400);
	wire_read(&wire, 450);
	wire_told(&wire, 460);
	cr_expect_eq(wire_close(&wire, 500), REQUEST_ABANDONED_SERVICE);
	cr_expect_eq(wire.ended, 1);
}

Test(requests, an_answer_that_is_told_after_the_close_was_an_answer)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_write(&wire);
	cr_expect_eq(wire_close(&wire, 300), REQUEST_ENDED);
	EXPECT_LAST(wire, 100, 100);
}
