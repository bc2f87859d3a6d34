/* SPDX-License-Identifier: Apache-2.0 */
/* What a proxy sends before its client's bytes, and what the request machine makes of it. */
#include <string.h>

#include "wire.h"

#define LINE "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n"
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define GET "GET / HTTP/1.1\r\n\r\n"

/* Text of a length, as it may have zeroes within. */
struct text {
	const char *bytes;
	size_t length;
};
#define TEXT(literal) ((struct text){ literal, sizeof(literal) - 1 })
#define LINE_TEXT TEXT(LINE)
/* Of TCP over IPv4: 12 bytes follow. Of the proxy itself: none. */
#define HEADER_TEXT                     \
	TEXT(SIGNATURE "\x21\x11\0\x0c" \
		       "123456789012")
#define LOCAL_TEXT TEXT(SIGNATURE "\x20\0\0\0")

static uint32_t take(struct preamble *preamble, struct text text)
{
	union preamble_window window = { 0 };

	memcpy(window.bytes, text.bytes,
	       text.length < PREAMBLE_LINE_MAX ? text.length : PREAMBLE_LINE_MAX);
	return preamble_take(preamble, &window, (uint32_t)text.length);
}

/* How much of a connection's first read is a preamble, and whether that ends with it. */
static void expect_taken(struct text text, uint32_t taken, bool ends)
{
	struct preamble preamble = { 0 };
	uint64_t word = 0;

	memcpy(&word, text.bytes, text.length < 8 ? text.length : 8);
	if (!preamble_begins(word, (uint32_t)text.length)) {
		cr_expect_eq(taken, 0, "%s", text.bytes);
		return;
	}
	cr_expect_eq(take(&preamble, text), taken, "%s", text.bytes);
	cr_expect_eq(!preamble.version, ends || !taken, "%s", text.bytes);
}

Test(preamble, a_line_of_version_1_ends_with_its_end)
{
	expect_taken(LINE_TEXT, sizeof(LINE) - 1, true);
	expect_taken(TEXT(LINE GET), sizeof(LINE) - 1, true);
	expect_taken(TEXT("PROXY UNKNOWN\r\n"), 15, true);
	expect_taken(TEXT("PROXY UNKNOWN\r"), 14, false);
	expect_taken(TEXT("PROXY "), 6, false);
	expect_taken(TEXT("P"), 1, false);
}

Test(preamble, a_header_of_version_2_tells_how_much_follows)
{
	expect_taken(HEADER_TEXT, 28, true);
	expect_taken(TEXT(SIGNATURE "\x21\x11\0\x0c"
				    "123456789012" GET),
		     28, true);
	expect_taken(TEXT(SIGNATURE "\x21\x11\0\x0c"
				    "12345678901"),
		     27, false);
	expect_taken(LOCAL_TEXT, 16, true);
	expect_taken(TEXT(SIGNATURE "\x20\0\0\0" GET), 16, true);
	expect_taken(TEXT(SIGNATURE "\x20\0\0"), 15, false);
	expect_taken(TEXT(SIGNATURE "\x21\x11\x01\x02"
				    "1"),
		     17, false);
	expect_taken(TEXT(SIGNATURE), 12, false);
	expect_taken(TEXT("\r"), 1, false);
	expect_taken(TEXT("\r\n\r\n"), 4, false);
}

Test(preamble, other_first_bytes_are_none)
{
	expect_taken(TEXT(GET), 0, false);
	expect_taken(TEXT("POST / HTTP/1.1\r\n"), 0, false);
	expect_taken(TEXT("PRI * HTTP/2.0\r\n"), 0, false);
	expect_taken(TEXT("PROXIED\r\n"), 0, false);
	expect_taken(TEXT("PROX!"), 0, false);
	expect_taken(TEXT("proxy x\r\n"), 0, false);
	expect_taken(TEXT("\r\nGET / HTTP/1.1\r\n"), 0, false);
	expect_taken(TEXT("\r\n\r\nx"), 0, false);
	expect_taken(TEXT("\r\n\r\n\0\r\nQUITx"), 0, false);
	expect_taken(TEXT("\r\n\r\n\0\r\nQ!"), 0, false);
}

/* Of @length characters before its end. */
static struct text line_of(char *room, size_t length)
{
	memset(room, 'x', length);
	memcpy(room, "PROXY ", 6);
	memcpy(room + length, "\r\n", 2);
	return (struct text){ room, length + 2 };
}

Test(preamble, a_line_has_107_bytes_at_most)
{
	char room[200];
	struct preamble preamble = { 0 };

	expect_taken(line_of(room, 105), 107, true);
	expect_taken(line_of(room, 106), 0, false);
	cr_expect_eq(take(&preamble, (struct text){ room, 106 }), 106);
	cr_expect_eq(take(&preamble, (struct text){ room + 106, 2 }), 0);
	cr_expect_eq(preamble.version, 0);
}

/* As it comes in two reads, cut anywhere. */
static void expect_cut(struct text text)
{
	for (size_t cut = 1; cut < text.length; cut++) {
		struct preamble preamble = { 0 };

		cr_expect_eq(take(&preamble, (struct text){ text.bytes, cut }), cut);
		cr_expect_neq(preamble.version, 0, "cut at %zu", cut);
		cr_expect_eq(take(&preamble, (struct text){ text.bytes + cut, text.length - cut }),
			     text.length - cut, "cut at %zu", cut);
		cr_expect_eq(preamble.version, 0, "cut at %zu", cut);
	}
}

static void expect_bytes(struct text text)
{
	struct preamble preamble = { 0 };

	for (size_t at = 0; at < text.length; at++) {
		cr_expect_eq(take(&preamble, (struct text){ text.bytes + at, 1 }), 1);
		cr_expect_eq(!preamble.version, at + 1 == text.length, "byte %zu", at);
	}
}

Test(preamble, it_may_come_in_pieces)
{
	char room[400] = SIGNATURE "\x21\x11\x01\x2c"; /* 300 bytes: 12 and further fields */

	expect_cut(LINE_TEXT);
	expect_cut(HEADER_TEXT);
	expect_cut(LOCAL_TEXT);
	expect_cut((struct text){ room, 316 });
	expect_bytes(LINE_TEXT);
	expect_bytes(HEADER_TEXT);
	expect_bytes(LOCAL_TEXT);
	expect_bytes((struct text){ room, 316 });
}

Test(preamble, the_longest_header_has_64_kb)
{
	struct preamble preamble = { 0 };
	char room[PREAMBLE_LINE_MAX] = SIGNATURE "\x21\x11\xff\xff";

	cr_expect_eq(take(&preamble, (struct text){ room, 70000 }), 16 + 0xffff);
	cr_expect_eq(preamble.version, 0);
	cr_expect_eq(take(&preamble, (struct text){ room, 65550 }), 65550);
	cr_expect_eq(preamble.left, 1);
}

/* --- the request machine ----------------------------------------------------------------------
 */

/* Takes @text, of which @first bytes had come first. */
static uint32_t read_text(struct wire *wire, uint64_t at, struct text text, uint32_t first)
{
	struct reading reading = { .now = T0 + at,
				   .arrived = conn_take(&wire->conn),
				   .next = wire->conn.next_ns,
				   .first_bytes = first,
				   .sent_seq = wire->write_seq,
				   .bytes = (uint32_t)text.length };
	struct request ended = { UNTOUCHED, UNTOUCHED };
	union line line = { 0 };

	conn_left(&wire->conn, false);
	memcpy(line.bytes, text.bytes, text.length < LINE_BYTES ? text.length : LINE_BYTES);
	if (conn_asks_preamble(&wire->conn, line.word, reading.bytes))
		reading.skipped = take(&wire->conn.preamble, text);
	if (reading.skipped == text.length) {
		reading.skipped = 0;
		reading.begins = conn_begins_preamble(&wire->conn);
	} else if (conn_asks_bytes(&wire->conn, &reading)) {
		text.bytes += reading.skipped;
		text.length -= reading.skipped;
		memset(&line, 0, sizeof(line));
		memcpy(line.bytes, text.bytes, text.length < LINE_BYTES ? text.length : LINE_BYTES);
		reading.begins = conn_begins(&wire->conn, &line, http_method_end(&line),
					     (uint32_t)text.length);
	}
	return wire_count(wire, conn_read(&wire->conn, &reading, &ended), &ended);
}

static const struct text preambles[] = { { LINE, sizeof(LINE) - 1 },
					 { SIGNATURE "\x21\x11\0\x0c"
						     "123456789012",
					   28 },
					 { SIGNATURE "\x20\0\0\0", 16 } };
#define EACH_PREAMBLE(text)                       \
	for (const struct text *text = preambles; \
	     text < preambles + sizeof(preambles) / sizeof(*preambles); text++)

/* The preamble of a connection arrives at 100 and is read at 200. */
static struct wire preamble_read(struct text text)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(read_text(&wire, 200, text, (uint32_t)text.length), REQUEST_PREAMBLE);
	cr_expect_eq(wire.ended, 0);
	return wire;
}

Test(preamble, it_is_no_request)
{
	EACH_PREAMBLE(text)
	{
		struct wire wire = preamble_read(*text);

		EXPECT_GAUGES(wire, 0, 0);
		cr_expect_eq(wire.conn.protocol, PROTOCOL_NEW);
		wire_arrive(&wire, 500 * MS);
		EXPECT_GAUGES(wire, 1, 0);
		cr_expect_eq(read_text(&wire, 500 * MS + 30, TEXT(GET), 18), REQUEST_BEGAN);
		cr_expect_eq(wire.conn.protocol, PROTOCOL_HTTP);
		wire_send(&wire, 500 * MS + 100);
		cr_expect_eq(wire_close(&wire, 600 * MS), REQUEST_ENDED);
		EXPECT_LAST(wire, 30, 70);
	}
}

Test(preamble, a_connection_that_has_only_one_leaves_no_trace)
{
	EACH_PREAMBLE(text)
	{
		struct wire wire = preamble_read(*text);
		struct stream stream = wire_stream(&wire);

		cr_expect_eq(wire_close(&wire, 300), 0);
		wire = preamble_read(*text);
		conn_fin(&wire.conn, T0 + 150);
		cr_expect_eq(wire_close(&wire, 900 * MS), 0);
		wire = preamble_read(*text);
		stream.leaving = 1;
		cr_expect_eq(wire_close_as(&wire, 300, &stream), 0);
	}
}

/* A health check: whether the server has read it by then is a matter of microseconds. */
Test(preamble, one_that_is_reset_at_once_and_unread_is_a_goodbye)
{
	for (int late = 0; late <= 1; late++) {
		struct wire wire = wire_open();
		struct stream stream;

		wire_arrive(&wire, 100);
		stream = wire_stream(&wire);
		stream.reset = 1;
		cr_expect_eq(wire_close_as(&wire, 100 + GOODBYE_NS + (uint64_t)late, &stream),
			     late ? REQUEST_ABANDONED_QUEUED : REQUEST_GOODBYE);
	}
}

Test(preamble, a_request_that_is_reset_at_once_is_abandoned)
{
	struct wire wire = wire_open();
	struct stream stream;

	wire_arrive(&wire, 100);
	wire_read_bytes(&wire, 200, 300, BEGINS_REQUEST, false);
	stream = wire_stream(&wire);
	stream.reset = 1;
	cr_expect_eq(wire_close_as(&wire, 300, &stream), REQUEST_ABANDONED_SERVICE);
	wire = preamble_read(preambles[0]);
	wire_arrive(&wire, 300);
	read_text(&wire, 400, TEXT(GET), 18);
	wire_send(&wire, 500);
	wire_arrive(&wire, 600);
	stream = wire_stream(&wire);
	stream.reset = 1;
	cr_expect_eq(wire_close_as(&wire, 700, &stream), REQUEST_ENDED | REQUEST_ABANDONED_QUEUED);
}

Test(preamble, a_server_may_speak_first_behind_one)
{
	struct wire wire = preamble_read(preambles[0]);

	cr_expect_eq(wire_send(&wire, 300), REQUEST_UNREQUESTED);
	wire_arrive(&wire, 1000);
	cr_expect_eq(read_text(&wire, 1100, TEXT("\x4d\0\0\x01\0\x02\0\0"), 8), REQUEST_BEGAN);
	cr_expect_eq(wire.conn.protocol, PROTOCOL_MYSQL);
}

/* In one read, and the proxy has sent both in one. */
Test(preamble, a_request_may_come_with_it)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(read_text(&wire, 150, TEXT(LINE GET), sizeof(LINE GET) - 1), REQUEST_BEGAN);
	cr_expect_eq(wire.conn.protocol, PROTOCOL_HTTP);
	cr_expect_eq(wire.conn.taken, sizeof(GET) - 1);
	wire_send(&wire, 250);
	wire_close(&wire, 300);
	EXPECT_LAST(wire, 50, 100);
}

Test(preamble, a_request_that_is_read_with_it_has_waited_since_its_own_arrival)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 500 * MS);
	read_text(&wire, 501 * MS, TEXT(LINE GET), sizeof(LINE) - 1);
	wire_send(&wire, 502 * MS);
	wire_close(&wire, 503 * MS);
	EXPECT_LAST(wire, 1 * MS, 1 * MS);
	/* Its first bytes had come with the preamble. */
	wire = wire_open();
	wire_arrive(&wire, 100);
	wire_arrive(&wire, 500 * MS);
	read_text(&wire, 501 * MS, TEXT(LINE GET), sizeof(LINE));
	wire_send(&wire, 502 * MS);
	wire_close(&wire, 503 * MS);
	EXPECT_LAST(wire, 501 * MS - 100, 1 * MS);
	/* No hook has seen when. */
	wire = wire_open();
	read_text(&wire, 501 * MS, TEXT(LINE GET), 0);
	wire_send(&wire, 502 * MS);
	wire_close(&wire, 503 * MS);
	EXPECT_LAST(wire, QUEUE_UNKNOWN, 1 * MS);
}

Test(preamble, the_protocol_is_told_by_what_is_behind_it)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	read_text(&wire, 150, TEXT(LINE "\x16\x03\x01"), 1);
	cr_expect_eq(wire.conn.protocol, PROTOCOL_TLS);
	wire = preamble_read(preambles[1]);
	wire_arrive(&wire, 300);
	cr_expect_eq(read_text(&wire, 400, TEXT("PRI * HTTP/2.0\r\n\r\n"), 1), REQUEST_MULTIPLEXED);
	wire = wire_open();
	wire_arrive(&wire, 100);
	cr_expect_eq(read_text(&wire, 150, TEXT(SIGNATURE "\x20\0\0\0PRI * HTTP/2.0\r\n"), 1),
		     REQUEST_MULTIPLEXED);
	wire = preamble_read(preambles[2]);
	wire_arrive(&wire, 300);
	read_text(&wire, 400, TEXT("hello"), 5);
	cr_expect_eq(wire.conn.protocol, PROTOCOL_OTHER);
}

/* Byte by byte: the first ones may be those of a request. */
Test(preamble, in_pieces_it_is_no_request_either)
{
	EACH_PREAMBLE(text)
	{
		struct wire wire = wire_open();
		size_t sure = text->bytes[0] == 'P' ? 6 : 12;

		wire_arrive(&wire, 100);
		for (size_t at = 0; at < text->length; at++) {
			uint32_t events = read_text(&wire, 200,
						    (struct text){ text->bytes + at, 1 }, 1);

			cr_expect_eq(events, at + 1 >= sure ? REQUEST_PREAMBLE
					     : at           ? 0
							    : REQUEST_BEGAN);
			EXPECT_GAUGES(wire, 0, at + 1 < sure);
			cr_expect_eq(conn_is_unread(&wire.conn), at + 1 == text->length);
		}
		cr_expect_eq(wire.conn.protocol, PROTOCOL_NEW);
		wire_arrive(&wire, 500 * MS);
		cr_expect_eq(read_text(&wire, 500 * MS + 5, TEXT(GET), 18), REQUEST_BEGAN);
		wire_send(&wire, 501 * MS);
		cr_expect_eq(wire_close(&wire, 600 * MS), REQUEST_ENDED);
		EXPECT_LAST(wire, 5, 1 * MS - 5);
		cr_expect_eq(wire.conn.protocol, PROTOCOL_HTTP);
	}
}

Test(preamble, the_last_piece_may_bring_the_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(read_text(&wire, 200, TEXT("PRO"), 3), REQUEST_BEGAN);
	wire_arrive(&wire, 300);
	cr_expect_eq(read_text(&wire, 400, TEXT("XY UNKNOWN\r\nPRI * HTTP/2.0\r\n"), 28),
		     REQUEST_MULTIPLEXED);
	wire = wire_open();
	wire_arrive(&wire, 100);
	read_text(&wire, 200, TEXT("PRO"), 3);
	wire_arrive(&wire, 300);
	cr_expect_eq(read_text(&wire, 400, TEXT("XY UNKNOWN\r\n" GET), 30), REQUEST_BEGAN);
	wire_send(&wire, 600);
	wire_close(&wire, 700);
	EXPECT_LAST(wire, 100, 200);
}

Test(preamble, a_request_may_begin_like_one)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(read_text(&wire, 200, TEXT("P"), 1), REQUEST_BEGAN);
	cr_expect_eq(read_text(&wire, 300, TEXT("UT /x HTTP/1.1\r\n"), 16), 0);
	cr_expect_eq(wire.conn.taken, 17);
	wire_send(&wire, 500);
	wire_close(&wire, 700);
	EXPECT_LAST(wire, 100, 300);
	wire = wire_open();
	wire_arrive(&wire, 100);
	read_text(&wire, 200, TEXT("PR"), 2);
	cr_expect_eq(wire_close(&wire, 900 * MS), REQUEST_ABANDONED_SERVICE);
}

Test(preamble, only_the_first_bytes_of_a_connection_are_one)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read_bytes(&wire, 200, 5, BEGINS_UNSEEN, false);
	wire_send(&wire, 300);
	wire_arrive(&wire, 400);
	cr_expect_eq(read_text(&wire, 500, LINE_TEXT, 5), REQUEST_ENDED | REQUEST_BEGAN);
	wire = wire_open();
	wire_arrive(&wire, 100);
	wire_read_bytes(&wire, 200, 5, BEGINS_UNSEEN, false);
	wire_send(&wire, 300);
	wire_settle(&wire, 2000 * MS);
	wire_arrive(&wire, 3000 * MS);
	cr_expect_eq(read_text(&wire, 3000 * MS, LINE_TEXT, 5), REQUEST_BEGAN);
	wire = wire_open();
	wire_arrive(&wire, 100);
	wire_read_bytes(&wire, 200, 5, BEGINS_UNSEEN, false);
	wire_send(&wire, 300);
	wire_arrive(&wire, 400);
	wire_read_bytes(&wire, 500, 5, BEGINS_UNSEEN, false);
	cr_expect_eq(read_text(&wire, 600, LINE_TEXT, 5), 0, "more of a later one");
	wire = wire_open();
	wire_arrive(&wire, 100);
	read_text(&wire, 200, TEXT("hello"), 5);
	wire_send(&wire, 300);
	wire_arrive(&wire, 400);
	cr_expect_eq(read_text(&wire, 500, LINE_TEXT, 5), REQUEST_ENDED | REQUEST_BEGAN);
}
