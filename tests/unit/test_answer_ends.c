/* SPDX-License-Identifier: Apache-2.0 */
/* Where an answer ends: a server that waits for room, and pauses after which no thread is at it. */
#include "wire.h"

Test(answer_ends, a_server_waits_for_room_that_had_none_for_its_last_send)
{
	struct wire wire = wire_open();
	struct stream stream;

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	stream = wire_stream(&wire);
	cr_expect_not(conn_sends(&wire.conn, &stream));
	conn_tried(&wire.conn, 1);
	cr_expect(conn_sends(&wire.conn, &stream));
	wire_send(&wire, 400);
	stream = wire_stream(&wire);
	cr_expect_not(conn_sends(&wire.conn, &stream), "all of it has been taken");
	conn_tried(&wire.conn, 1);
	wire_arrive(&wire, 500);
	wire_read(&wire, 600);
	stream = wire_stream(&wire);
	cr_expect_not(conn_sends(&wire.conn, &stream), "of another request");
	wire_send(&wire, 700);
	stream = wire_stream(&wire);
	cr_expect_not(conn_sends(&wire.conn, &stream), "it has given up, and goes on");
}

Test(answer_ends, an_answer_ends_at_a_long_pause_whether_or_not_it_is_swept)
{
	for (int swept = 0; swept < 2; swept++) {
		struct wire wire = wire_open();
		uint32_t late = REQUEST_UNREQUESTED | (swept ? 0 : REQUEST_ENDED);

		wire.left = true;
		wire_arrive(&wire, 100);
		wire_read(&wire, 200);
		cr_expect_eq(wire_send(&wire, 300), REQUEST_ANSWERED);
		cr_expect_eq(wire_send(&wire, 200 + SETTLE_NS), 0, "soon enough");
		if (swept)
			wire_settle(&wire, 200 + 2 * SETTLE_NS);
		cr_expect_eq(wire_send(&wire, 200 + 2 * SETTLE_NS), late);
		EXPECT_LAST(wire, 100, SETTLE_NS);
		cr_expect_eq(wire_send(&wire, 300 + 2 * SETTLE_NS), REQUEST_UNREQUESTED);
		wire_arrive(&wire, 3 * SETTLE_NS);
		wire_read(&wire, 3 * SETTLE_NS + 10);
		wire_send(&wire, 3 * SETTLE_NS + 30);
		wire_close(&wire, 4 * SETTLE_NS);
		EXPECT_LAST(wire, 10, 20);
		cr_expect_eq(wire.ended, 2);
	}
}

/* It was asked in @phase; meanwhile the sweep has settled, or another thread has read. */
Test(answer_ends, an_answer_that_another_has_ended_does_not_end_twice)
{
	for (int read = 0; read < 2; read++) {
		struct request ended = { UNTOUCHED, UNTOUCHED };
		struct wire wire = wire_open();
		struct sending sending;
		uint32_t events;

		wire_arrive(&wire, 100);
		wire_read(&wire, 200);
		wire_send(&wire, 300);
		wire_write(&wire);
		wire.left = true;
		sending = wire_sending(&wire, 400 + SETTLE_NS, 100);
		cr_assert(sending.over);
		if (read) {
			wire_arrive(&wire, 350 + SETTLE_NS);
			wire.conn.start_seq = wire.write_seq - 100;
			wire.conn.phase = PHASE_SERVICE;
		} else {
			wire_settle(&wire, 350 + SETTLE_NS);
		}
		events = wire_count(&wire, conn_sent(&wire.conn, &sending, &ended), &ended);
		cr_expect_eq(events, read ? REQUEST_ANSWERED : REQUEST_UNREQUESTED);
		cr_expect_eq(ended.service_ns, UNTOUCHED);
	}
}

/* Taken by splice, and answered, every two seconds: each is seen as one that was not seen to come.
 */
Test(answer_ends, what_was_taken_unseen_after_a_long_pause_is_a_request)
{
	struct wire wire = wire_open();

	wire.left = true;
	for (uint64_t at = SETTLE_NS; at < 20 * SETTLE_NS; at += 2 * SETTLE_NS) {
		wire_arrive(&wire, at);
		wire_write(&wire);
		cr_expect(wire_told_unread(&wire, at + 10, false) & REQUEST_BEGAN, "%lu", at);
	}
	cr_expect_eq(wire.ended, 9);
}

Test(answer_ends, a_server_that_waits_for_room_is_not_asked_who_is_at_it)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	cr_expect(conn_asks_over(&wire.conn, T0 + 300, T0 + 300 + SETTLE_NS));
	cr_expect_not(conn_asks_over(&wire.conn, T0 + 300, T0 + 299 + SETTLE_NS));
	cr_expect_not(conn_asks_over(&wire.conn, PHASE_SERVICE, T0 + SETTLE_NS));
	conn_tried(&wire.conn, 1);
	cr_expect_not(conn_asks_over(&wire.conn, T0 + 300, T0 + 300 + SETTLE_NS));
}
