/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that want no answer, in a protocol that is not known, and what only looks like them. */
#include "wire.h"

#define SILENCE ((uint64_t)(SILENCE_TICKS + 1) << TICK_SHIFT)
#define MESSAGE (REQUEST_UNANSWERED | REQUEST_BEGAN)

/* The first bytes of a connection arrive at 50 and are read at 100. */
static struct wire first_read(uint32_t begins)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	cr_assert_eq(wire_read_bytes(&wire, 100, 300, begins, false), REQUEST_BEGAN);
	return wire;
}

/* More of them arrives at @at, and is read 10 later. */
static uint32_t next_read(struct wire *wire, uint64_t at)
{
	wire_arrive(wire, at);
	return wire_read(wire, at + 10);
}

/* One whose client has gone on after a silence. */
static struct wire one_way(void)
{
	struct wire wire = first_read(BEGINS_OTHER);

	cr_assert_eq(next_read(&wire, SILENCE), MESSAGE | REQUEST_ONE_WAY);
	return wire;
}

Test(one_way, a_client_that_goes_on_after_a_silence_waits_for_no_answer)
{
	struct wire wire = one_way();

	cr_expect_eq(next_read(&wire, 2 * SILENCE), MESSAGE, "the connection is counted once");
	cr_expect_eq(next_read(&wire, 9 * SILENCE), MESSAGE);
	cr_expect_eq(wire.ended, 0);
	EXPECT_GAUGES(wire, 0, 1);
	cr_expect_eq(wire_close(&wire, 10 * SILENCE), REQUEST_ABANDONED_SERVICE,
		     "its reader is still at it");
}

Test(one_way, parts_of_a_request_follow_sooner)
{
	struct wire wire = first_read(BEGINS_OTHER);

	for (uint64_t at = 400 * MS; at < 4000 * MS; at += 400 * MS)
		cr_expect_eq(next_read(&wire, at), 0, "%lu", at / MS);
	cr_expect_eq(wire_send(&wire, 4000 * MS), REQUEST_ANSWERED);
	wire_close(&wire, 5000 * MS);
	EXPECT_LAST(wire, 50, 4000 * MS - 100);
	wire = first_read(BEGINS_OTHER);
	cr_expect_eq(next_read(&wire, SILENCE - (2 << TICK_SHIFT)), 0);
}

/* By whole ticks of 1.05 ms: between the first of one and the first of another. */
Test(one_way, a_silence_is_known_to_a_tick)
{
	const uint64_t tick = 1U << 20, first = (T0 / tick + 1) | 1, silence = 500 * MS / tick;

	for (uint64_t ticks = silence - 1; ticks <= silence; ticks++) {
		struct wire wire = wire_open();

		wire_read_bytes(&wire, first * tick - T0, 300, BEGINS_OTHER, false);
		cr_expect_eq(next_read(&wire, (first + ticks) * tick - T0),
			     ticks < silence ? 0 : MESSAGE | REQUEST_ONE_WAY, "%lu", ticks);
	}
}

Test(one_way, the_silence_is_the_clients_and_not_the_servers)
{
	struct wire wire = first_read(BEGINS_OTHER);

	wire_arrive(&wire, 200);
	cr_expect_eq(wire_read(&wire, 9 * SILENCE), 0, "read late");
	wire = wire_open();
	wire_arrive(&wire, 50);
	wire_arrive(&wire, 60);
	wire_read_part(&wire, 100, true);
	cr_expect_eq(wire_read(&wire, 9 * SILENCE), 0, "left at the first read");
	wire = first_read(BEGINS_OTHER);
	cr_expect_eq(wire_read(&wire, SILENCE), MESSAGE | REQUEST_ONE_WAY, "nobody saw it arrive");
}

Test(one_way, protocols_that_are_known_have_rules_of_their_own)
{
	static const uint32_t known[] = { BEGINS_REQUEST, BEGINS_UPLOAD, BEGINS_TLS, BEGINS_LOGIN };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct wire wire = first_read(known[i]);

		cr_expect_eq(next_read(&wire, 2 * SILENCE), 0, "%u", known[i]);
		cr_expect_not(conn_asks_reader(&wire.conn));
	}
}

Test(one_way, the_clock_may_wrap_round)
{
	struct conn conn = { .protocol = PROTOCOL_OTHER };
	struct reading reading = { .arrived = 1ULL << (32 + TICK_SHIFT) };

	conn_noted(&conn, reading.arrived - SILENCE);
	cr_expect(conn_was_silent(&conn, &reading));
	conn_noted(&conn, reading.arrived - SILENCE + (2 << TICK_SHIFT));
	cr_expect_not(conn_was_silent(&conn, &reading));
}

/* Like a command port that acknowledges some commands. */
Test(one_way, what_is_answered_before_its_reader_waits_is_a_request)
{
	struct wire wire = one_way();

	next_read(&wire, 3 * SILENCE);
	cr_expect(conn_asks_left(&wire.conn));
	cr_expect_eq(wire_send(&wire, 3 * SILENCE + 70), REQUEST_ANSWERED);
	cr_expect_not(conn_asks_left(&wire.conn));
	cr_expect_eq(next_read(&wire, 4 * SILENCE), REQUEST_BEGAN | REQUEST_ENDED);
	EXPECT_LAST(wire, 10, 60);
}

/* As a fast client sends them: each is told by its arrival, parts of one by the lack of it. */
Test(one_way, once_known_each_arrival_is_a_message)
{
	struct wire wire = one_way();

	cr_expect_eq(next_read(&wire, SILENCE + 20), MESSAGE);
	wire_arrive(&wire, SILENCE + 40);
	cr_expect_eq(wire_read_part(&wire, SILENCE + 50, true), MESSAGE);
	cr_expect_eq(wire_read(&wire, SILENCE + 60), 0, "it was here before");
	wire_arrive(&wire, SILENCE + 50);
	cr_expect_eq(wire_read(&wire, SILENCE + 70), 0, "it came as the message was read");
	cr_expect_eq(wire_send(&wire, SILENCE + 80), REQUEST_ANSWERED);
	wire_close(&wire, 2 * SILENCE);
	EXPECT_LAST(wire, 10, 30);
}

/* As its heartbeat to a replica is for Redis. */
Test(one_way, a_send_after_the_reader_has_waited_answers_nothing)
{
	struct wire wire = one_way();
	struct sending sending = wire_sending(&wire, 2 * SILENCE, 100);
	struct request none = { UNTOUCHED, UNTOUCHED };

	wire_write(&wire);
	sending.sent_seq += 100;
	sending.left = 1;
	cr_expect_eq(conn_sent(&wire.conn, &sending, &none),
		     REQUEST_UNANSWERED | REQUEST_UNREQUESTED);
	EXPECT_GAUGES(wire, 0, 0);
	cr_expect_eq(wire_send(&wire, 2 * SILENCE + 10), REQUEST_UNREQUESTED);
	cr_expect_eq(next_read(&wire, 3 * SILENCE), REQUEST_BEGAN);
	cr_expect_eq(wire_send(&wire, 3 * SILENCE + 50), REQUEST_ANSWERED);
	cr_expect_eq(wire_close(&wire, 4 * SILENCE), REQUEST_ENDED);
	EXPECT_LAST(wire, 10, 40);
}

/* What is known of the endpoint and of the reader when the connection ends or the sweep passes. */
static struct stream stream_of(const struct wire *wire, int quiet, int left)
{
	struct stream stream = wire_stream(wire);

	stream.quiet = quiet;
	stream.left = left;
	return stream;
}

Test(one_way, a_message_is_over_when_its_reader_waits)
{
	struct wire first = first_read(BEGINS_OTHER), later = one_way();
	struct stream streams[2][2];

	for (int quiet = 0; quiet < 2; quiet++) {
		for (int left = 0; left < 2; left++)
			streams[quiet][left] = stream_of(&first, quiet, left);
		cr_expect_not(conn_wants_no_answer(&first.conn, &streams[quiet][0]));
		cr_expect_eq(conn_wants_no_answer(&first.conn, &streams[quiet][1]), quiet);
		cr_expect_not(conn_wants_no_answer(&later.conn, &streams[quiet][0]));
		cr_expect(conn_wants_no_answer(&later.conn, &streams[quiet][1]));
	}
	cr_expect(conn_asks_reader(&first.conn));
	cr_expect(conn_asks_reader(&later.conn));
	first.conn.answered = 1;
	cr_expect_not(conn_asks_reader(&first.conn));
	later.conn.answered = 1;
	cr_expect(conn_asks_reader(&later.conn));
	wire_send(&later, 2 * SILENCE);
	cr_expect_not(conn_asks_reader(&later.conn), "it is answered");
}

/* What the end of a connection is at @at after one read; @fin: when its client closed, 0: never. */
static uint32_t end_of(uint64_t fin, uint64_t at, int quiet, int left)
{
	struct wire wire = first_read(BEGINS_OTHER);
	struct stream stream;

	next_read(&wire, 400 * MS); /* more of the same upload */
	stream = stream_of(&wire, quiet, left);
	if (fin)
		conn_fin(&wire.conn, T0 + fin);
	return wire_close_as(&wire, at, &stream);
}

/* An upload of FTP: no answer on this connection. */
Test(one_way, a_client_that_closes_behind_its_bytes_has_waited_for_no_answer)
{
	const uint32_t message = REQUEST_UNANSWERED | REQUEST_ONE_WAY;
	const uint64_t soon = 400 * MS + GOODBYE_NS, late = soon + 1, end = 900 * MS;

	cr_expect_eq(end_of(soon, end, 1, 0), message);
	cr_expect_eq(end_of(late, end, 1, 0), REQUEST_ABANDONED_SERVICE, "it has given up");
	cr_expect_eq(end_of(late, end, 1, 1), message, "the server had read it");
	cr_expect_eq(end_of(0, end, 1, 1), message, "the server leaves");
	cr_expect_eq(end_of(0, end, 1, 0), REQUEST_ABANDONED_SERVICE);
}

Test(one_way, where_answers_come_a_last_turn_is_a_goodbye)
{
	struct wire wire = first_read(BEGINS_OTHER);
	struct stream stream = stream_of(&wire, 0, 1);

	conn_fin(&wire.conn, T0 + 100);
	cr_expect_eq(wire_close_as(&wire, 200, &stream), REQUEST_GOODBYE);
	cr_expect_eq(end_of(900 * MS, 950 * MS, 0, 1), REQUEST_ABANDONED_SERVICE);
}
