/* SPDX-License-Identifier: Apache-2.0 */
/* What a server sends before its answer, by HTTP/1, and what the request machine makes of it. */
#include <stdio.h>
#include <string.h>

#include "wire.h"

/* How a send ends, when one before has ended as @head, and the answer does not begin in it. */
static uint32_t heads_of(const char *text, size_t bytes, uint32_t head)
{
	for (size_t at = 0; at < bytes;) {
		size_t length = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
		union chunk chunk = { 0 };
		uint32_t taken;

		memcpy(chunk.bytes, text + at, length);
		taken = interim_take(&head, &chunk, (uint32_t)length);
		cr_assert_leq(taken, length);
		if (!taken)
			return BEGINS_ANSWER;
		at += taken;
	}
	return BEGINS_INTERIM + head;
}

static uint32_t sent_of(const char *text)
{
	return heads_of(text, strlen(text), HEAD_NONE);
}

Test(answers, any_1xx_but_101_is_no_answer)
{
	static const char *const interim[] = {
		"HTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/1.1 100 \r\n\r\n",
		"HTTP/1.1 100\r\n\r\n",
		"HTTP/1.0 100 Go\r\n\r\n",
		"HTTP/1.1 102 Processing\r\n\r\n",
		"HTTP/1.1 104 Upload Resumption Supported\r\n\r\n",
		"HTTP/1.1 111 ?\r\n\r\n",
		"HTTP/1.1 199 ?\r\n\r\n",
		"HTTP/1.9 120 ?\r\n\r\n",
		"HTTP/1.1 100 Continue\r\nServer: x\r\nDate: now\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload; as=style\r\n"
		"Link: </script.js>; rel=preload; as=script\r\n\r\n",
		"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
	};

	for (size_t i = 0; i < sizeof(interim) / sizeof(*interim); i++)
		cr_expect_eq(sent_of(interim[i]), BEGINS_INTERIM, "%s", interim[i]);
}

Test(answers, all_else_is_one)
{
	static const char *const answers[] = {
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 202 100\r\n\r\n",
		"HTTP/1.1 10",
		"HTTP/1.1 1x0 \r\n\r\n",
		"HTTP/1.1 10: \r\n\r\n",
		"HTTP/1.1 1/0 \r\n\r\n",
		"HTTP/1.1 10x \r\n\r\n",
		"HTTP/1.1  100\r\n\r\n",
		"HTTP/1.x 100 \r\n\r\n",
		"HTTP/2.0 100 \r\n\r\n",
		"http/1.1 100 \r\n\r\n",
		"0123456789abcdef",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 \r\n\r\nHTTP/1.1 101 Up\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nx",
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		cr_expect_eq(sent_of(answers[i]), BEGINS_ANSWER, "%s", answers[i]);
}

static uint32_t begins_of(const char *text)
{
	union chunk chunk = { 0 };

	memcpy(chunk.bytes, text, strnlen(text, sizeof(chunk.bytes)));
	return answer_begins(&chunk);
}

Test(answers, an_answer_is_known_by_its_status_line)
{
	cr_expect_eq(begins_of("HTTP/1.1 200 OK\r\n"), BEGINS_SUCCESS);
	cr_expect_eq(begins_of("HTTP/1.1 204"), BEGINS_SUCCESS);
	cr_expect_eq(begins_of("HTTP/1.1 101 Switching"), BEGINS_SWITCH);
	cr_expect_eq(begins_of("HTTP/1.0 404"), BEGINS_ANSWER);
	cr_expect_eq(begins_of("HTTP/1.1 301 "), BEGINS_ANSWER);
	cr_expect_eq(begins_of("HTTP/1.1 501 "), BEGINS_ANSWER);
	cr_expect_eq(begins_of("HTTP/1.1 102 "), BEGINS_ANSWER);
	cr_expect_eq(begins_of("HTTP/1.1 111 "), BEGINS_ANSWER);
	cr_expect_eq(begins_of("HTTP/1.1 "), BEGINS_ANSWER);
	cr_expect_eq(begins_of("HTTP/2 200 OK\r\n"), BEGINS_OTHER);
	cr_expect_eq(begins_of("HTTP/1.1\r\n"), BEGINS_OTHER);
	cr_expect_eq(begins_of("HTTP/1.: 200"), BEGINS_OTHER);
	cr_expect_eq(begins_of("HTTP/1./ 200"), BEGINS_OTHER);
	cr_expect_eq(begins_of("GET / HTTP/1.1 "), BEGINS_OTHER);
}

/* Wherever the server cuts it, and wherever its end is in what is looked at together. */
Test(answers, the_head_of_an_interim_answer_may_come_in_two_sends)
{
	char text[200];

	for (int fields = 0; fields < 40; fields++) {
		int length = snprintf(text, sizeof(text),
				      "HTTP/1.1 103 Early Hints\r\nX: %.*s\r\n\r\n", fields,
				      "\r\r0\n\r0123456789012345678901234567890123456789");

		for (int cut = STATUS_BYTES; cut < length; cut++) {
			uint32_t first = heads_of(text, (size_t)cut, HEAD_NONE),
				 head = first - BEGINS_INTERIM;

			cr_expect(head >= HEAD_OPEN && head <= HEAD_OPEN + 3, "%d", first);
			cr_expect_eq(heads_of(text + cut, (size_t)(length - cut), head),
				     BEGINS_INTERIM, "%d bytes of a field, cut at %d", fields, cut);
		}
	}
}

Test(answers, only_an_empty_line_ends_a_head)
{
	cr_expect_neq(sent_of("HTTP/1.1 100 \r\nx\r\n"), BEGINS_INTERIM);
	cr_expect_neq(sent_of("HTTP/1.1 100 \r\n\r\r\n"), BEGINS_INTERIM);
	cr_expect_neq(sent_of("HTTP/1.1 100 \n\n"), BEGINS_INTERIM);
	cr_expect_neq(sent_of("HTTP/1.1 100 \r\n\n\n"), BEGINS_INTERIM);
	cr_expect_neq(sent_of("HTTP/1.1 100 \r\nx\n\r\n"), BEGINS_INTERIM);
	cr_expect_neq(sent_of("HTTP/1.1 100 \rx\r\n"), BEGINS_INTERIM);
}

/* --- the request machine ----------------------------------------------------------------------
 */

/* A request of @begins, read at 100. */
static struct wire in_service(uint32_t begins)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 50);
	wire_read_bytes(&wire, 100, 300, begins, false);
	return wire;
}

/* @bytes that end as @head and in which no answer begins. */
static uint32_t send_interim(struct wire *wire, uint64_t at, uint32_t bytes, uint32_t head)
{
	wire->write_seq += bytes;
	return wire_told_bytes(wire, at, false, bytes, BEGINS_INTERIM + head);
}

/* The answer itself, at @at, is the end of the request of in_service(). */
static void expect_answered(struct wire *wire, uint64_t at)
{
	cr_expect_eq(wire_send(wire, at), REQUEST_ANSWERED);
	wire_close(wire, at + 100 * MS);
	cr_expect_eq(wire->ended, 1);
	EXPECT_LAST(*wire, 50, at - 100);
}

Test(answers, a_body_that_the_server_asks_for_belongs_to_its_request)
{
	struct wire wire = in_service(BEGINS_UPLOAD);

	cr_expect_eq(send_interim(&wire, 200, 17, HEAD_NONE), 0);
	EXPECT_GAUGES(wire, 0, 1);
	wire_arrive(&wire, 300 * MS);
	cr_expect_eq(wire_read_bytes(&wire, 301 * MS, 9000, BEGINS_OTHER, false), 0);
	expect_answered(&wire, 400 * MS);
}

Test(answers, a_request_of_any_method_may_have_several_interim_answers)
{
	struct wire wire = in_service(BEGINS_REQUEST);

	for (uint64_t at = 200; at < 3000 * MS; at += 500 * MS) {
		cr_expect_eq(send_interim(&wire, at, 400, HEAD_NONE), 0);
		cr_expect_eq(wire_settle(&wire, at + 2 * SETTLE_NS), 0);
		EXPECT_GAUGES(wire, 0, 1);
	}
	expect_answered(&wire, 3000 * MS);
}

Test(answers, an_answer_as_long_as_an_interim_one_is_one)
{
	struct wire wire = in_service(BEGINS_REQUEST);

	wire.write_seq += 25;
	cr_expect_eq(wire_told_bytes(&wire, 200, false, 25, BEGINS_ANSWER), REQUEST_ANSWERED);
}

Test(answers, a_request_that_has_only_an_interim_answer_is_abandoned)
{
	struct wire wire = in_service(BEGINS_UPLOAD);

	send_interim(&wire, 200, 25, HEAD_NONE);
	cr_expect_eq(wire_close(&wire, 300 * MS), REQUEST_ABANDONED_SERVICE);
}

Test(answers, an_interim_answer_goes_on_with_the_next_send)
{
	struct wire wire = in_service(BEGINS_REQUEST);

	send_interim(&wire, 200, 40, HEAD_OPEN + 2);
	cr_expect_eq(wire.conn.head, HEAD_OPEN + 2);
	send_interim(&wire, 300, 40, HEAD_NONE);
	cr_expect_eq(wire.conn.head, HEAD_NONE);
	send_interim(&wire, 400, 40, HEAD_OPEN);
	wire_send(&wire, 500);
	wire_arrive(&wire, 1000);
	wire_read(&wire, 1100);
	cr_expect_eq(wire.conn.head, HEAD_NONE, "that was of the request before");
	EXPECT_LAST(wire, 50, 400);
}

/* Whether a send of @bytes would be looked at, after others of @before. */
static bool asks_after(struct wire wire, uint32_t before, uint64_t at, uint32_t bytes)
{
	wire.write_seq += before + bytes;
	return wire_asks_sent(&wire, at, bytes);
}

/* Whether the first one would be. */
static bool asks(const struct wire *wire, uint64_t at, uint32_t bytes)
{
	return asks_after(*wire, 0, at, bytes);
}

Test(answers, only_the_first_bytes_after_a_request_may_be_an_interim_answer)
{
	struct wire wire = in_service(BEGINS_REQUEST);

	cr_expect(asks(&wire, 200, 300));
	cr_expect_not(asks_after(wire, 1, 200, 299), "another thread has sent as well");
	wire_send(&wire, 200);
	cr_expect_not(asks(&wire, 300, 300));
	wire = in_service(BEGINS_TLS);
	cr_expect_not(asks(&wire, 200, 20));
	wire = in_service(BEGINS_OTHER);
	cr_expect_not(asks(&wire, 200, 20));
}

/* A second request, of @begins. */
static struct wire in_second_service(uint32_t begins)
{
	struct wire wire = in_service(BEGINS_UPLOAD);

	wire_send(&wire, 200);
	wire_arrive(&wire, 1000);
	wire_read_bytes(&wire, 1100, 300, begins, false);
	return wire;
}

Test(answers, a_long_one_to_a_later_request_without_a_body_is_not_looked_at)
{
	struct wire wire = in_second_service(BEGINS_REQUEST);

	cr_expect_not(asks(&wire, 1200, 101));
	cr_expect(asks(&wire, 1200, 100));
	wire = in_second_service(BEGINS_UPLOAD);
	cr_expect(asks(&wire, 1200, 101));
	wire = in_second_service(BEGINS_SHORT);
	cr_expect(asks(&wire, 1200, 101));
}

Test(answers, a_server_that_has_sent_interim_answers_is_looked_at)
{
	struct wire wire = in_second_service(BEGINS_REQUEST);

	send_interim(&wire, 1200, 80, HEAD_NONE);
	cr_expect(asks(&wire, 1200, 1000));
	wire_send(&wire, 1300);
	wire_arrive(&wire, 2000);
	wire_read_bytes(&wire, 2100, 300, BEGINS_REQUEST, false);
	cr_expect(asks(&wire, 2200, 1000));
}

/* It was not looked at, and what looks like an answer follows it. */
Test(answers, an_interim_answer_is_found_out_by_the_answer_after_a_pause)
{
	struct wire wire = in_second_service(BEGINS_REQUEST);

	wire_write(&wire);
	wire_told_bytes(&wire, 1200, false, 101, BEGINS_UNSEEN);
	cr_expect_not(asks(&wire, 1199 + PAUSE_NS, 300));
	cr_expect(asks(&wire, 1200 + PAUSE_NS, 300));
	wire_write(&wire);
	cr_expect_eq(wire_told_as(&wire, 300 * MS, false, BEGINS_ANSWER), 0);
	cr_expect(wire.conn.interim);
	cr_expect(wire.conn.paused);
	cr_expect_not(asks(&wire, 400 * MS, 300));
	wire_close(&wire, 500 * MS);
	EXPECT_LAST(wire, 100, 300 * MS - 1100);
	cr_expect_eq(wire.ended, 2);
}

Test(answers, an_answer_that_pauses_is_looked_at_once)
{
	struct wire wire = in_second_service(BEGINS_REQUEST);

	wire_write(&wire);
	wire_told_bytes(&wire, 1200, false, 101, BEGINS_UNSEEN);
	wire_write(&wire);
	wire_told_as(&wire, 300 * MS, false, BEGINS_OTHER);
	cr_expect_not(wire.conn.interim);
	cr_expect_not(asks(&wire, 900 * MS, 300));
	wire_settle(&wire, 2000 * MS);
	cr_expect_not(asks(&wire, 3000 * MS, 300), "it answers nothing");
}

/* Its head was behind the rest of a body, in one read. */
Test(answers, a_request_that_came_with_the_rest_of_a_body_may_have_one)
{
	struct wire wire = in_service(BEGINS_UPLOAD);

	wire_send(&wire, 200);
	wire_arrive(&wire, 1000);
	cr_expect_eq(wire_read_bytes(&wire, 1500, 500, BEGINS_OTHER, false), REQUEST_UNANSWERED);
	cr_expect_eq(send_interim(&wire, 1510, 25, HEAD_NONE), REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 50, 100);
	EXPECT_GAUGES(wire, 0, 1);
	wire_arrive(&wire, 300 * MS);
	cr_expect_eq(wire_read_bytes(&wire, 300 * MS, 500, BEGINS_OTHER, false), 0);
	cr_expect_eq(wire_send(&wire, 400 * MS), REQUEST_ANSWERED);
	wire_close(&wire, 500 * MS);
	EXPECT_LAST(wire, 500, 400 * MS - 1500);
}

Test(answers, of_any_kind_answer_what_came_with_the_rest_of_a_body)
{
	static const uint32_t kinds[] = { BEGINS_ANSWER, BEGINS_SUCCESS, BEGINS_SWITCH };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct wire wire = in_service(BEGINS_UPLOAD);

		wire_send(&wire, 200);
		wire_arrive(&wire, 1000);
		wire_read_bytes(&wire, 1500, 500, BEGINS_OTHER, false);
		wire_write(&wire);
		cr_expect_eq(wire_told_as(&wire, 1510, false, kinds[i]),
			     REQUEST_ENDED | REQUEST_BEGAN | REQUEST_ANSWERED, "%u", kinds[i]);
		EXPECT_LAST(wire, 50, 100);
	}
}
