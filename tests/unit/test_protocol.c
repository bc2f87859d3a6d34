/* SPDX-License-Identifier: Apache-2.0 */
/* What bytes begin with, and what the request machine makes of it. */
#include <ctype.h>
#include <string.h>

#include "wire.h"

static union line line_of(const char *text)
{
	union line line = { 0 };

	memcpy(line.bytes, text, strnlen(text, sizeof(line.bytes)));
	return line;
}

/* As the first read of a connection. */
static uint32_t read_of(const char *text)
{
	union line line = line_of(text);

	return protocol_begins(&line, http_method_end(&line), (uint32_t)strlen(text));
}

/* As a later one of a connection of HTTP/1. */
static uint32_t later_of(const char *text)
{
	union line line = line_of(text);

	return http_begins(&line, http_method_end(&line), (uint32_t)strlen(text));
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

Test(protocol, a_tunnel_is_known_by_its_method_and_a_server)
{
	cr_expect_eq(read_of("CONNECT example.org:443 HTTP/1.1\r\n"), BEGINS_TUNNEL);
	cr_expect_eq(read_of("CONNECT 192.0.2.1:443 HTTP/1.1\r\n"), BEGINS_TUNNEL);
	cr_expect_eq(read_of("CONNECT [::1]:443 HTTP/1.1\r\n"), BEGINS_TUNNEL);
	cr_expect_eq(read_of("CONNECT X:1 HTTP/1.1\r\n"), BEGINS_TUNNEL);
	cr_expect_eq(later_of("CONNECT zebra:443"), BEGINS_TUNNEL);
	cr_expect_eq(read_of("CONNECT {\"verbose\":false}\r\n"), BEGINS_OTHER, "NATS");
	cr_expect_eq(read_of("CONNECT\naccept-version:1.2\n"), BEGINS_OTHER, "STOMP");
	cr_expect_eq(read_of("CONNECT @:443 HTTP/1.1\r\n"), BEGINS_OTHER);
	cr_expect_eq(read_of("CONNECT /x HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(later_of("CONNECTS x"), BEGINS_SHORT);
}

Test(protocol, the_name_or_address_of_a_server_begins_with_a_letter_a_digit_or_a_bracket)
{
	for (int c = 1; c < 256; c++) {
		char text[] = "CONNECT ?:443 HTTP/1.1\r\n";

		*strchr(text, '?') = (char)c;
		cr_expect_eq(read_of(text) == BEGINS_TUNNEL, isalnum(c) || c == '[', "%#x", c);
	}
}

Test(protocol, any_token_is_a_method)
{
	static const char *const methods[] = {
		"PROPFIND /",
		"MKCOL /dav/x",
		"DELETE http://x/",
		"UPDATEREDIRECTREF /x",
		"M-SEARCH * HT",
		"BASELINE-CONTROL /x",
		"!#$%&'*+-.^_`|~09Zz /",
		"BREW http",
		"123456789012345678901234567 /",
	};

	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		cr_expect_eq(later_of(methods[i]), BEGINS_UPLOAD, "%s", methods[i]);
	cr_expect_eq(read_of("PROPFIND /x HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(read_of("ACL /x HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(read_of("Zap /x HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(read_of("M-SEARCH * HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(read_of("get /x HTTP/1.1\r\n"), BEGINS_OTHER, "a key of memcached");
	cr_expect_eq(later_of("get /x HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(later_of("GET /x HTTP/1.1\r\n"), BEGINS_REQUEST);
}

Test(protocol, an_empty_line_may_come_before_a_request)
{
	cr_expect_eq(later_of("\r\nGET /x HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(later_of("\n\n\n\nPUT /x HTTP/1.1\r\n"), BEGINS_UPLOAD);
	cr_expect_eq(later_of("\r\n"), BEGINS_OTHER, "behind a body");
}

Test(protocol, a_few_bytes_may_begin_a_request)
{
	static const char *const parts[] = { "P",       "PROPFIND", "POST ",    "DELETE h",
					     "GET htt", "\r\nG",    "OPTIONS *" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		cr_expect_eq(later_of(parts[i]), BEGINS_SHORT, "%s", parts[i]);
}

Test(protocol, the_rest_of_a_body_is_not_taken_for_a_request)
{
	static const char *const rests[] = {
		"name=value&other=1",
		"{\"key\": 1}",
		"<xml/>",
		"5\r\nhello\r\n",
		"0\r\n\r\n",
		"Hello world, it is",
		"see also * there",
		"\x80PUT /",
		"--boundary\r\n",
		" GET /",
		"1234567890123456789012345678 /",
		"\x7f",
		"{",
		"GET abcd",
		"see *aHT there",
		"see * Hello",
		"see a HTML file",
		"M@ /x",
		"",
	};

	for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++)
		cr_expect_eq(later_of(rests[i]), BEGINS_OTHER, "%s", rests[i]);
}

Test(protocol, tls_is_known_by_the_record_of_its_handshake)
{
	cr_expect_eq(read_of("\x16\x03\x01\x02"), BEGINS_TLS);
	cr_expect_eq(read_of("\x16\x03\x03"), BEGINS_TLS);
}

Test(protocol, what_only_looks_like_http_is_not)
{
	static const char *const others[] = { "GET key\r\n",  "PUT key 1\r\n", "POST\r\n",
					      "get /",        "GET  /",        "GET *key",
					      "*2\r\n$3\r\n", "\x17\x03\x01",  "",
					      "GE",           "USER x\r\n",    "HTTP/1.1 200" };

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		cr_expect_eq(read_of(others[i]), BEGINS_OTHER, "%s", others[i]);
}

Test(protocol, the_preface_of_http_2_is_known)
{
	cr_expect_eq(read_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), BEGINS_PREFACE);
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
	cr_expect_not(wire_asks_sent(&wire, 310, 100), "read with the last send");
	wire_read_bytes(&wire, 301, 500, BEGINS_OTHER, false);
	cr_expect(wire_asks_sent(&wire, 310, 100));
}

/* Its head was behind the rest, in one read: that it is answered is how it is known. */
static struct wire answered_with_rest(bool seen, uint64_t queue_ns)
{
	struct wire wire = answered_early();

	if (seen)
		wire_arrive(&wire, 1000);
	wire_read_bytes(&wire, 1000 + queue_ns, 500, BEGINS_OTHER, false);
	EXPECT_GAUGES(wire, 0, 0);
	wire_write(&wire);
	cr_expect_eq(wire_told_as(&wire, 1010 + queue_ns, false, BEGINS_ANSWER),
		     REQUEST_BEGAN | REQUEST_ANSWERED | REQUEST_ENDED);
	EXPECT_LAST(wire, 50, 100);
	wire_close(&wire, 9000 * MS);
	return wire;
}

Test(protocol, a_request_that_came_with_the_rest_of_a_body_is_counted)
{
	struct wire wire = answered_with_rest(true, 500);

	EXPECT_LAST(wire, 500, 10);
}

/* 32 bits tell of four seconds. */
Test(protocol, one_that_has_waited_too_long_with_the_rest_of_a_body_is_counted_as_lost)
{
	struct wire wire = answered_with_rest(true, 0xfffffffeULL);

	EXPECT_LAST(wire, 0xfffffffeULL, 10);
	wire = answered_with_rest(true, 0xffffffffULL);
	EXPECT_LAST(wire, QUEUE_UNKNOWN, 10);
	wire = answered_with_rest(false, 500);
	EXPECT_LAST(wire, QUEUE_UNKNOWN, 10);
}

/* Go's net/http reads one byte ahead. */
Test(protocol, a_request_may_begin_with_a_read_of_one_byte)
{
	struct wire wire = answered_early();

	wire_arrive(&wire, 1000);
	cr_expect_eq(wire_read_bytes(&wire, 1100, 1, BEGINS_SHORT, true),
		     REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_GAUGES(wire, 0, 1);
	cr_expect_eq(wire_read_bytes(&wire, 1200, 300, BEGINS_UPLOAD, false), 0);
	wire_send(&wire, 1500);
	wire_close(&wire, 9000);
	EXPECT_LAST(wire, 100, 400);
	cr_expect_eq(wire.ended, 2);
}

Test(protocol, a_short_rest_of_a_body_is_found_out_by_the_request_that_follows)
{
	struct wire wire = answered_early();

	wire_arrive(&wire, 1000);
	wire_read_bytes(&wire, 1100, 3, BEGINS_SHORT, false);
	wire_arrive(&wire, 5000);
	cr_expect_eq(wire_read_bytes(&wire, 5100, 300, BEGINS_REQUEST, false),
		     REQUEST_UNANSWERED | REQUEST_BEGAN);
	wire_send(&wire, 6000);
	wire_close(&wire, 9000);
	EXPECT_LAST(wire, 100, 900);
}

/* Nor does it take the cost of a look where nothing speaks for a rest. */
Test(protocol, what_crosses_the_answer_is_looked_at_before_any_body_was_seen)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_REQUEST, false);
	wire_send(&wire, 200);
	cr_expect_not(wire_asks(&wire, 200));
	cr_expect(wire_asks(&wire, 199), "it had come before the answer");
	wire_cross(&wire, 1000);
	cr_expect_eq(wire_read_bytes(&wire, 1100, 500, BEGINS_OTHER, false), REQUEST_UNANSWERED);
	EXPECT_GAUGES(wire, 0, 0);
	wire_arrive(&wire, 2000);
	cr_expect_eq(wire_read_bytes(&wire, 2100, 500, BEGINS_OTHER, false), REQUEST_UNANSWERED,
		     "and so is all that comes later");
	wire_settle(&wire, 3000 * MS);
	cr_expect(wire_asks(&wire, 199));
}

/* A connection without a body so far is not looked at with each read. */
Test(protocol, a_first_rest_is_found_out_by_the_request_that_follows)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_REQUEST, false);
	wire_send(&wire, 200);
	wire_arrive(&wire, 1000);
	wire_read_bytes(&wire, 1100, 300, BEGINS_UPLOAD, false); /* not looked at */
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

Test(protocol, a_first_read_that_nobody_could_look_at_leaves_the_protocol_to_the_next)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_UNSEEN, false);
	wire_send(&wire, 200);
	cr_expect(wire_asks(&wire, 0));
	wire_arrive(&wire, 1000);
	wire_read_bytes(&wire, 1100, 300, BEGINS_TLS, false);
	cr_expect_eq(wire.conn.protocol, PROTOCOL_TLS);
	cr_expect_not(wire_asks(&wire, 0), "what is encrypted tells nothing");
}

Test(protocol, a_protocol_that_is_not_known_by_its_first_read_is_not_asked_for_again)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, BEGINS_OTHER, false);
	wire_send(&wire, 200);
	cr_expect_not(wire_asks(&wire, 0));
	cr_expect_not(wire_asks_sent(&wire, 310, 100));
	wire_arrive(&wire, 500);
	wire_read_bytes(&wire, 600, 300, BEGINS_OTHER, false);
	cr_expect_not(wire_asks(&wire, 0), "while one is in service");
	wire_send(&wire, 700);
	wire_arrive(&wire, 1000);
	cr_expect_eq(wire_read_bytes(&wire, 1100, 300, BEGINS_PREFACE, false),
		     REQUEST_ENDED | REQUEST_BEGAN);
}
