/* SPDX-License-Identifier: Apache-2.0 */
/* What bytes begin with, and what the request machine makes of it. */
#include <string.h>

#include "wire.h"

#define MS 1000000ULL

static uint64_t word_of(const char *text)
{
	uint64_t word = 0;

	memcpy(&word, text, strnlen(text, sizeof(word)));
	return word;
}

static uint32_t read_of(const char *text)
{
	return protocol_read_begins(word_of(text));
}

static uint32_t sent_of(const char *text)
{
	return protocol_sent_begins(word_of(text + PROTOCOL_SENT_AT), (uint32_t)strlen(text));
}

Test(protocol, requests_of_http_are_known_by_method_and_target)
{
	cr_expect_eq(read_of("GET / HTTP/1.1\r\n"), BEGINS_REQUEST);
	cr_expect_eq(read_of("HEAD /x HTTP/1.1\r\n"), BEGINS_REQUEST);
	cr_expect_eq(read_of("GET http://x/ HTTP/1.1\r\n"), BEGINS_REQUEST);
	cr_expect_eq(read_of("OPTIONS * HTTP/1.1\r\n"), BEGINS_REQUEST);
	cr_expect_eq(read_of("POST /x HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(read_of("POST http://x/ HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(read_of("PUT /x HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(read_of("PATCH /x HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(read_of("DELETE / HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(read_of("GET /"), BEGINS_REQUEST);
}

Test(protocol, tls_is_known_by_the_record_of_its_handshake)
{
	cr_expect_eq(read_of("\x16\x03\x01\x02"), BEGINS_TLS);
	cr_expect_eq(read_of("\x16\x03\x03"), BEGINS_TLS);
}

Test(protocol, what_only_looks_like_http_is_not)
{
	static const char *const others[] = { "GET key\r\n",  "PUT key 1\r\n", "POST\r\n",
					      "get /",        "GET  /",        "PRI /",
					      "*2\r\n$3\r\n", "\x17\x03\x01",  "",
					      "GE",           "USER x\r\n",    "HTTP/1.1 200" };

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		cr_expect_eq(read_of(others[i]), BEGINS_OTHER, "%s", others[i]);
}

Test(protocol, the_preface_of_http_2_is_known)
{
	cr_expect_eq(read_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), BEGINS_PREFACE);
}

Test(protocol, a_request_to_go_on_is_no_answer)
{
	cr_expect_eq(sent_of("HTTP/1.1 100 Continue\r\n\r\n"), BEGINS_CONTINUE);
	cr_expect_eq(sent_of("HTTP/1.1 202 Accepted\r\n\r\n"), BEGINS_ANSWER);
	cr_expect_eq(sent_of("HTTP/1.0 200 OK\r\n\r\n"), BEGINS_ANSWER);
	cr_expect_eq(sent_of("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
		     BEGINS_ANSWER);
	cr_expect_eq(sent_of("0123456789abcdef"), BEGINS_OTHER);
}

/* --- what a server reads after its answer ------------------------------------------------------
 */

/* A request with a body that is answered early: read at 100, answered at 200. */
static struct wire answered_early(void)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	cr_expect_eq(wire_read_bytes(&wire, 100, 300, BEGINS_UPLOAD, false), REQUEST_BEGAN);
	wire_send(&wire, 200);
	return wire;
}

Test(protocol, the_rest_of_a_body_is_of_the_answered_request)
{
	struct wire wire = answered_early();

	wire_arrive(&wire, 50 * MS);
	cr_expect_eq(wire_read_bytes(&wire, 50 * MS + 100, 500, BEGINS_OTHER, false),
		     REQUEST_UNANSWERED);
	EXPECT_GAUGES(wire, 0, 0);
	wire_arrive(&wire, 300 * MS);
	cr_expect_eq(wire_read_bytes(&wire, 300 * MS + 7, 300, BEGINS_UPLOAD, false),
		     REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 50, 100);
	wire_send(&wire, 300 * MS + 1000);
	wire_close(&wire, 301 * MS);
	EXPECT_LAST(wire, 7, 993);
}

Test(protocol, the_rest_of_a_body_abandons_nothing)
{
	struct wire wire = answered_early();

	wire_settle(&wire, 2000 * MS);
	wire_arrive(&wire, 3000 * MS);
	cr_expect_eq(wire_read_bytes(&wire, 3000 * MS, 500, BEGINS_OTHER, false),
		     REQUEST_UNANSWERED);
	cr_expect_eq(wire_close(&wire, 4000 * MS), 0);
	cr_expect_eq(wire.ended, 1);
}

Test(protocol, an_answer_goes_on_while_the_rest_of_the_body_is_read)
{
	struct wire wire = answered_early();

	for (uint64_t at = 1000; at < 9000; at += 1000) {
		wire_arrive(&wire, at);
		wire_read_bytes(&wire, at, 500, BEGINS_OTHER, false);
		wire_write(&wire);
		cr_expect_eq(wire_told_as(&wire, at + 500, false, BEGINS_OTHER), 0);
	}
	wire_close(&wire, 20000);
	cr_expect_eq(wire.ended, 1);
	EXPECT_LAST(wire, 50, 8400);
}

/* However much what follows looks like one. */
Test(protocol, an_answer_that_goes_on_is_no_second_one)
{
	struct wire wire = answered_early();

	wire_write(&wire);
	cr_expect_eq(wire_told_as(&wire, 300, false, BEGINS_ANSWER), 0);
	wire_arrive(&wire, 300);
	wire_read_bytes(&wire, 300, 500, BEGINS_OTHER, false);
	cr_expect_not(conn_asks_sent_bytes(&wire.conn, wire.write_seq), "read with the last send");
	wire_read_bytes(&wire, 301, 500, BEGINS_OTHER, false);
	cr_expect(conn_asks_sent_bytes(&wire.conn, wire.write_seq));
}

/* Its head was behind the rest, in one read: that it is answered is how it is known. */
Test(protocol, a_request_that_came_with_the_rest_of_a_body_is_counted_as_lost)
{
	struct wire wire = answered_early();

	wire_arrive(&wire, 1000);
	wire_read_bytes(&wire, 2000, 500, BEGINS_OTHER, false);
	wire_write(&wire);
	cr_expect_eq(wire_told_as(&wire, 3000, false, BEGINS_ANSWER),
		     REQUEST_BEGAN | REQUEST_ANSWERED | REQUEST_ENDED);
	EXPECT_LAST(wire, 50, 100);
	wire_close(&wire, 9000);
	EXPECT_LAST(wire, QUEUE_UNKNOWN, 1000);
}

/* A connection without a body so far is not looked at with each read. */
Test(protocol, a_first_rest_is_found_out_by_the_request_that_follows)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_REQUEST, false);
	wire_send(&wire, 200);
	wire_arrive(&wire, 1000);
	wire_read_bytes(&wire, 1100, 300, BEGINS_UPLOAD, false); /* nobody looks */
	wire_send(&wire, 1200);
	wire_arrive(&wire, 2000);
	wire_read_bytes(&wire, 2100, 500, BEGINS_OTHER, false);
	EXPECT_GAUGES(wire, 0, 1);
	wire_arrive(&wire, 2500);
	cr_expect_eq(wire_read_bytes(&wire, 2600, 500, BEGINS_OTHER, false), 0, "more of it");
	wire_arrive(&wire, 9000);
	cr_expect_eq(wire_read_bytes(&wire, 9005, 300, BEGINS_REQUEST, false),
		     REQUEST_UNANSWERED | REQUEST_BEGAN);
	wire_send(&wire, 9100);
	wire_arrive(&wire, 10000);
	cr_expect_eq(wire_read_bytes(&wire, 10001, 500, BEGINS_OTHER, false), REQUEST_UNANSWERED);
	EXPECT_GAUGES(wire, 0, 0);
	wire_close(&wire, 20000);
	EXPECT_LAST(wire, 5, 95);
	cr_expect_eq(wire.ended, 3);
}

Test(protocol, a_body_may_look_like_a_request)
{
	struct wire wire = answered_early();

	wire_arrive(&wire, 1000);
	wire_read_bytes(&wire, 1100, 300, BEGINS_UPLOAD, false);
	wire_arrive(&wire, 5000);
	cr_expect_eq(wire_read_bytes(&wire, 5100, 300, BEGINS_REQUEST, false), 0);
	wire_send(&wire, 6000);
	wire_close(&wire, 9000);
	EXPECT_LAST(wire, 100, 4900);
}

/* Sent ahead, and taken in a read of its own: one turn, from the first. */
Test(protocol, a_request_that_has_waited_with_the_one_before_does_not_begin_anew)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_REQUEST, false);
	wire_send(&wire, 200);
	wire_arrive(&wire, 1000);
	wire_arrive(&wire, 1010);
	wire_read_bytes(&wire, 1100, 300, BEGINS_REQUEST, true);
	cr_expect_eq(wire_read_bytes(&wire, 1200, 300, BEGINS_REQUEST, false), 0);
	wire_arrive(&wire, 1200);
	cr_expect_eq(wire_read_bytes(&wire, 1300, 300, BEGINS_REQUEST, false), 0, "at once");
	wire_send(&wire, 1500);
	wire_close(&wire, 9000);
	EXPECT_LAST(wire, 100, 400);
}

Test(protocol, a_body_that_the_server_asks_for_belongs_to_its_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_UPLOAD, false);
	wire.write_seq += PROTOCOL_CONTINUE_BYTES;
	cr_expect_eq(wire_told_as(&wire, 200, false, BEGINS_CONTINUE), 0);
	EXPECT_GAUGES(wire, 0, 1);
	wire_arrive(&wire, 300 * MS);
	cr_expect_eq(wire_read_bytes(&wire, 301 * MS, 9000, BEGINS_OTHER, false), 0);
	cr_expect_eq(wire_send(&wire, 400 * MS), REQUEST_ANSWERED);
	wire_close(&wire, 500 * MS);
	cr_expect_eq(wire.ended, 1);
	EXPECT_LAST(wire, 50, 400 * MS - 100);
}

Test(protocol, an_answer_as_long_as_a_request_to_go_on_is_one)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_REQUEST, false);
	wire.write_seq += PROTOCOL_CONTINUE_BYTES;
	cr_expect_eq(wire_told_as(&wire, 200, false, BEGINS_ANSWER), REQUEST_ANSWERED);
}

Test(protocol, a_request_of_any_method_may_be_asked_to_go_on)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_REQUEST, false);
	wire.write_seq += PROTOCOL_CONTINUE_BYTES;
	cr_expect_eq(wire_told_as(&wire, 200, false, BEGINS_CONTINUE), 0);
	EXPECT_GAUGES(wire, 0, 1);
}

Test(protocol, a_first_read_that_nobody_could_look_at_leaves_the_protocol_to_the_next)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_UNSEEN, false);
	wire_send(&wire, 200);
	cr_expect(conn_asks_bytes(&wire.conn));
	wire_arrive(&wire, 1000);
	wire_read_bytes(&wire, 1100, 300, BEGINS_TLS, false);
	cr_expect_eq(wire.conn.protocol, PROTOCOL_TLS);
	cr_expect_not(conn_asks_bytes(&wire.conn), "what is encrypted tells nothing");
}

Test(protocol, a_protocol_that_is_not_known_by_its_first_read_is_not_asked_for_again)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_OTHER, false);
	wire_send(&wire, 200);
	cr_expect_not(conn_asks_bytes(&wire.conn));
	cr_expect_not(conn_asks_sent_bytes(&wire.conn, wire.write_seq));
	wire_arrive(&wire, 500);
	wire_read_bytes(&wire, 600, 300, BEGINS_OTHER, false);
	cr_expect_not(conn_asks_bytes(&wire.conn), "while one is in service");
	wire_send(&wire, 700);
	wire_arrive(&wire, 1000);
	cr_expect_eq(wire_read_bytes(&wire, 1100, 300, BEGINS_PREFACE, false),
		     REQUEST_ENDED | REQUEST_BEGAN);
}

/* --- TLS ---------------------------------------------------------------------------------------
 */

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

Test(protocol, the_end_of_a_handshake_is_not_where_a_request_begins)
{
	struct wire wire = second_message(9);

	cr_expect_eq(go_on(&wire, 300 * MS, 0), REQUEST_UNANSWERED | REQUEST_BEGAN);
	wire_send(&wire, 300 * MS + 105);
	wire_close(&wire, 301 * MS);
	EXPECT_LAST(wire, 5, 100);
}

Test(protocol, what_follows_at_once_belongs_to_the_same_request)
{
	struct wire wire = second_message(4);

	cr_expect_eq(go_on(&wire, 19 * MS, 0), 0);
	wire = second_message(4);
	cr_expect_eq(go_on(&wire, 59 * MS, 20 * MS), 0, "two round trips of 20 ms");
	cr_expect_eq(go_on(&wire, 200 * MS, 20 * MS), REQUEST_UNANSWERED | REQUEST_BEGAN);
}

/* In pieces of which the first is short, and more in all than 16 bits can tell. */
Test(protocol, an_upload_that_begins_with_a_short_message_is_one_request)
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

Test(protocol, what_follows_within_10_ms_and_two_round_trips_belongs_to_the_same_request)
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

Test(protocol, a_long_message_is_an_upload_however_slow)
{
	struct wire wire = second_message(UNANSWERED_BYTES + 1);

	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0);
	wire_send(&wire, 300 * MS + 100);
	wire_close(&wire, 301 * MS);
	EXPECT_LAST(wire, 0, 290 * MS + 100);
}

Test(protocol, the_first_message_of_a_connection_wants_an_answer)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 9, BEGINS_TLS, false);
	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0);
}

Test(protocol, a_request_of_another_protocol_may_come_as_slowly_as_it_likes)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read(&wire, 100);
	wire_send(&wire, 200);
	wire_arrive(&wire, 10 * MS);
	wire_read_bytes(&wire, 10 * MS, 9, BEGINS_OTHER, false);
	cr_expect_eq(go_on(&wire, 300 * MS, 0), 0);
}

/* --- multiplexed connections -------------------------------------------------------------------
 */

Test(protocol, http_2_is_counted_and_not_measured)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	cr_expect_eq(wire_read_bytes(&wire, 100, 300, BEGINS_PREFACE, false), REQUEST_MULTIPLEXED);
	EXPECT_GAUGES(wire, 0, 0);
	wire_arrive(&wire, 500);
	EXPECT_GAUGES(wire, 1, 0);
	conn_take(&wire.conn);
	EXPECT_GAUGES(wire, 0, 0);
	cr_expect_eq(wire_close(&wire, 900), 0);
	cr_expect_not(conn_is_over(&wire.conn), "it was open, for the gauge of connections");
}

/* @times: the client sends while it has not got the answer; @waits: and how often it has. */
static uint32_t mix(struct wire *wire, int times, int waits)
{
	uint32_t events = 0;

	for (int i = 0; i < times; i++) {
		for (int j = 0; j <= waits; j++) {
			conn_mixes(&wire->conn, j > 0);
			wire_arrive(wire, 1000);
			events |= wire->conn.closed ? 0 : wire_read(wire, 1000);
			wire_send(wire, 1500);
		}
	}
	return events;
}

Test(protocol, a_client_that_does_not_wait_for_answers_shares_its_connection)
{
	struct wire wire = wire_open();

	cr_expect_not(mix(&wire, 7, 0) & REQUEST_MULTIPLEXED);
	cr_expect(mix(&wire, 1, 0) & REQUEST_MULTIPLEXED);
	wire = wire_open();
	cr_expect(mix(&wire, 100, 3) & REQUEST_MULTIPLEXED, "one of four");
	cr_expect_eq(wire.multiplexed, 1);
}

Test(protocol, a_client_that_mostly_waits_does_not)
{
	struct wire wire = wire_open();

	cr_expect_not(mix(&wire, 1000, 4) & REQUEST_MULTIPLEXED);
	wire = wire_open();
	conn_mixes(&wire.conn, 1);
	cr_expect_not(mix(&wire, 1, 9) & REQUEST_MULTIPLEXED, "it has always waited");
}

Test(protocol, who_did_not_wait_so_often_shares_although_it_waits_once)
{
	struct wire wire = wire_open();

	for (int i = 0; i < 8; i++)
		conn_mixes(&wire.conn, 0);
	conn_mixes(&wire.conn, 1);
	wire_arrive(&wire, 50);
	cr_expect_eq(wire_read(&wire, 100), REQUEST_MULTIPLEXED);
	wire_arrive(&wire, 150);
	cr_expect_eq(wire_read(&wire, 200), 0, "once");
}

Test(protocol, http_1_does_not_share)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_REQUEST, false);
	wire_send(&wire, 200);
	cr_expect_not(mix(&wire, 100, 0) & REQUEST_MULTIPLEXED);
}
