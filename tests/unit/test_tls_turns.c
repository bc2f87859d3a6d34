/* SPDX-License-Identifier: Apache-2.0 */
/* TLS, of which only lengths and times are seen: what the request machine makes of its messages. */
#include "wire.h"

/* The second message of a connection: @bytes at 10 ms. */
static struct wire second_message(uint32_t bytes)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 500, BEGINS_TLS, false);
	wire_send(&wire, 200);
	wire_arrive(&wire, 10 * MS);
	wire_read_bytes(&wire, 10 * MS, bytes, BEGINS_OTHER, false);
	return wire;
}

static uint32_t go_on(struct wire *wire, uint64_t at, uint64_t round_ns)
{
	struct request ended = { 0 };
	struct reading reading = { .now = T0 + at + 5,
				   .arrived = T0 + at,
				   .sent_seq = wire->write_seq,
				   .bytes = 30,
				   .round_ns = round_ns };

	return wire_count(wire, conn_read(&wire->conn, &reading, &ended), &ended);
}

Test(tls_turns, the_end_of_a_handshake_is_not_where_a_request_begins)
{
	struct wire wire = second_message(9);

	cr_expect_eq(go_on(&wire, 300 * MS, 0), REQUEST_UNANSWERED | REQUEST_BEGAN);
	wire_send(&wire, 300 * MS + 105);
	wire_close(&wire, 301 * MS);
	EXPECT_LAST(wire, 5, 100);
}

Test(tls_turns, what_follows_at_once_belongs_to_the_same_request)
{
	struct wire wire = second_message(4);

	cr_expect_eq(go_on(&wire, 19 * MS, 0), 0);
	wire = second_message(4);
	cr_expect_eq(go_on(&wire, 59 * MS, 20 * MS), 0, "two round trips of 20 ms");
	cr_expect_eq(go_on(&wire, 200 * MS, 20 * MS), REQUEST_UNANSWERED | REQUEST_BEGAN);
}

/* In pieces of which the first is short, and more in all than 16 bits can tell. */
Test(tls_turns, an_upload_that_begins_with_a_short_message_is_one_request)
{
	struct wire wire = second_message(40);

	for (uint64_t at = 11; at < 19; at++) {
		wire_arrive(&wire, at * MS);
		cr_expect_eq(wire_read_bytes(&wire, at * MS, 0xffff, BEGINS_OTHER, false), 0);
	}
	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0);
	wire = second_message(40);
	wire_read_bytes(&wire, 11 * MS, 0xffff - 40, BEGINS_OTHER, false);
	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0);
	wire = second_message(0x10000);
	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0);
}

Test(tls_turns, what_follows_within_10_ms_and_two_round_trips_belongs_to_the_same_request)
{
	struct wire wire = second_message(80);

	cr_expect_eq(go_on(&wire, 20 * MS, 0), 0, "10 ms after it was read");
	wire = second_message(80);
	cr_expect_eq(go_on(&wire, 20 * MS + 1, 0), REQUEST_UNANSWERED | REQUEST_BEGAN);
	wire = second_message(80);
	cr_expect_eq(go_on(&wire, 30 * MS, 5 * MS), 0);
	wire = second_message(80);
	cr_expect_eq(go_on(&wire, 30 * MS + 1, 5 * MS), REQUEST_UNANSWERED | REQUEST_BEGAN);
}

Test(tls_turns, a_long_message_is_an_upload_however_slow)
{
	struct wire wire = second_message(UNANSWERED_BYTES + 1);

	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0);
	wire_send(&wire, 300 * MS + 100);
	wire_close(&wire, 301 * MS);
	EXPECT_LAST(wire, 0, 290 * MS + 100);
}

/* --- TLS: an upload that is answered early ----------------------------------------------------
 */

/* Its head is answered at 30 ms; then @bytes of the rest are read. */
static struct wire refused(uint32_t bytes, bool crosses, uint64_t arrived)
{
	struct wire wire = second_message(1000);

	if (!crosses)
		wire_arrive(&wire, arrived);
	wire_send(&wire, 30 * MS);
	if (crosses)
		wire_cross(&wire, arrived);
	cr_expect_eq(wire_read_bytes(&wire, 40 * MS, bytes, BEGINS_OTHER, false),
		     REQUEST_ENDED | REQUEST_BEGAN);
	return wire;
}

Test(tls_turns, the_rest_of_a_refused_upload_is_taken_back_when_the_client_goes_on)
{
	struct wire wire = refused(9000, true, 35 * MS);

	EXPECT_GAUGES(wire, 0, 0);
	cr_expect_eq(go_on(&wire, 300 * MS, 0), REQUEST_UNANSWERED | REQUEST_BEGAN);
	EXPECT_GAUGES(wire, 0, 1);
	wire_send(&wire, 300 * MS + 105);
	cr_expect_eq(wire_close(&wire, 301 * MS), REQUEST_ENDED);
	EXPECT_LAST(wire, 5, 100);
}

Test(tls_turns, so_is_one_that_was_here_before_the_answer)
{
	struct wire wire = refused(9000, false, 29 * MS);

	EXPECT_GAUGES(wire, 0, 0);
	cr_expect_eq(go_on(&wire, 300 * MS, 0), REQUEST_UNANSWERED | REQUEST_BEGAN);
	wire = refused(9000, false, 30 * MS);
	EXPECT_GAUGES(wire, 0, 1);
	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0, "the client has seen the answer: an upload");
}

/* The thread that has answered it has not told yet. */
Test(tls_turns, so_is_what_was_left_of_such_a_rest)
{
	struct wire wire = second_message(1000);

	wire_arrive(&wire, 20 * MS);
	wire_arrive(&wire, 21 * MS);
	wire_send(&wire, 30 * MS);
	wire_settle(&wire, 2000 * MS);
	wire_read_bytes(&wire, 3000 * MS, 500, BEGINS_OTHER, true);
	wire_write(&wire);
	wire_read_bytes(&wire, 3001 * MS, 500, BEGINS_OTHER, false);
	EXPECT_GAUGES(wire, 0, 0);
}

Test(tls_turns, the_rest_of_a_refused_upload_abandons_nothing)
{
	struct wire wire = refused(UNANSWERED_BYTES + 1, true, 35 * MS);

	wire.conn.fin_ns = T0 + 36 * MS;
	cr_expect_eq(wire_close(&wire, 50 * MS), REQUEST_UNANSWERED);
	wire = refused(UNANSWERED_BYTES, true, 35 * MS);
	wire.conn.fin_ns = T0 + 36 * MS;
	cr_expect_eq(wire_close(&wire, 50 * MS), REQUEST_GOODBYE, "close_notify");
}

Test(tls_turns, what_crosses_tickets_is_no_rest)
{
	struct wire wire = second_message(UNANSWERED_BYTES); /* the end of the handshake */

	wire_send(&wire, 30 * MS);
	wire_cross(&wire, 35 * MS);
	wire_read_bytes(&wire, 36 * MS, 9000, BEGINS_OTHER, false);
	EXPECT_GAUGES(wire, 0, 1);
	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0);
}

Test(tls_turns, in_other_protocols_nothing_is_a_rest)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_OTHER, false);
	wire_send(&wire, 200);
	wire_cross(&wire, 300);
	wire_read_bytes(&wire, 400, 300, BEGINS_OTHER, false);
	EXPECT_GAUGES(wire, 0, 1);
	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0);
}

Test(tls_turns, the_first_message_of_a_connection_wants_an_answer)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 9, BEGINS_TLS, false);
	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0);
}

Test(tls_turns, a_request_of_another_protocol_may_come_as_slowly_as_it_likes)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read(&wire, 100);
	wire_send(&wire, 200);
	wire_arrive(&wire, 10 * MS);
	wire_read_bytes(&wire, 10 * MS, 9, BEGINS_OTHER, false);
	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0);
}

/* However many uploads are refused before they have come. */
Test(tls_turns, what_crosses_and_is_not_answered_does_not_share)
{
	struct wire wire = second_message(1000);

	wire_send(&wire, 30 * MS);
	for (uint64_t at = 1000 * MS; at < 100 * 1000 * MS; at += 1000 * MS) {
		wire_cross(&wire, at);
		wire_read_bytes(&wire, at, 9000, BEGINS_OTHER, false);
		wire_arrive(&wire, at + 300 * MS);
		cr_expect_eq(wire_read_bytes(&wire, at + 301 * MS, 1000, BEGINS_OTHER, false),
			     REQUEST_UNANSWERED | REQUEST_BEGAN);
		wire_send(&wire, at + 400 * MS);
	}
	cr_expect_eq(wire.conn.mixed, 0);
}
