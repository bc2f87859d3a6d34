/* SPDX-License-Identifier: Apache-2.0 */
/* MySQL's protocol, where some commands have no answer: what the request machine makes of it. */
#include "wire.h"

/* As MySQL numbers its commands. */
#define COM_STMT_SEND_LONG_DATA 0x18
#define COM_STMT_CLOSE 0x19

static uint32_t begins_of(uint64_t word)
{
	union line line = { .word = word };

	return protocol_begins(&line, http_method_end(&line), sizeof(word));
}

Test(mysql, the_login_of_mysql_is_known_in_one_piece_and_by_its_header)
{
	cr_expect_eq(begins_of(0x000002000100004dULL), BEGINS_LOGIN);
	cr_expect_eq(begins_of(0x000000000100004dULL), BEGINS_LOGIN);
	cr_expect_eq(begins_of(0x000001000100004dULL), BEGINS_OTHER, "before 4.1");
	cr_expect_eq(begins_of(0x000000010100004dULL), BEGINS_OTHER, "before 4.1");
	cr_expect_eq(begins_of(0x000002000000004dULL), BEGINS_OTHER, "the first packet");
	cr_expect_eq(begins_of(0x0000020001000004ULL), BEGINS_OTHER, "too short");
	cr_expect_eq(begins_of(0x0000020001000020ULL), BEGINS_LOGIN, "32 bytes");
	cr_expect_eq(begins_of(0x000002000100001fULL), BEGINS_OTHER, "31 bytes");
	cr_expect_eq(begins_of(0x000002000100ffffULL), BEGINS_LOGIN, "64 kB");
	cr_expect_eq(begins_of(0x0000020001010000ULL), BEGINS_OTHER, "more");
}

/* The server has greeted, the client logged in by header and payload, the server said yes. */
static struct wire logged_in(void)
{
	struct wire wire = wire_open();

	wire_send(&wire, 10);
	wire_arrive(&wire, 50);
	wire_read_word(&wire, 100, 4, 0x000000000100004dULL);
	wire_read_word(&wire, 101, 0x4d, 0x0000000000000200ULL);
	wire_send(&wire, 200);
	cr_assert_eq(wire.conn.protocol, PROTOCOL_MYSQL);
	return wire;
}

Test(mysql, a_closed_statement_of_mysql_is_no_request)
{
	struct wire wire = logged_in();

	for (uint64_t at = 1000; at < 4000; at += 1000) {
		wire_arrive(&wire, at);
		wire_read_word(&wire, at + 1, 4, 5);
		cr_expect_eq(wire_read_word(&wire, at + 2, 5, COM_STMT_CLOSE), REQUEST_UNANSWERED);
		EXPECT_GAUGES(wire, 0, 0);
	}
	wire_arrive(&wire, 4000);
	cr_expect_eq(wire_read_word(&wire, 4010, 9, 5 | (uint64_t)COM_STMT_CLOSE << 32),
		     REQUEST_UNANSWERED);
	wire_arrive(&wire, 5000);
	cr_expect_eq(wire_read_word(&wire, 5010, 4, 9), REQUEST_BEGAN);
	cr_expect_eq(wire_read_word(&wire, 5011, 9, 3), 0);
	wire_send(&wire, 6000);
	wire_close(&wire, 7000);
	EXPECT_LAST(wire, 10, 990);
	cr_expect_eq(wire.ended, 2);
	cr_expect_eq(wire.unanswered, 4);
}

/* A long value is sent in pieces, before the command that uses it. */
Test(mysql, a_value_that_is_sent_ahead_to_mysql_is_no_request)
{
	struct wire wire = logged_in();

	wire_arrive(&wire, 1000);
	wire_read_word(&wire, 1001, 4, 900);
	cr_expect_eq(wire_read_word(&wire, 1002, 900, COM_STMT_SEND_LONG_DATA), REQUEST_UNANSWERED);
	EXPECT_GAUGES(wire, 0, 0);
	wire_arrive(&wire, 2000);
	cr_expect_eq(wire_read_word(&wire, 2010, 9, 5 | 0x17ULL << 32), REQUEST_BEGAN, "execute");
}

Test(mysql, only_the_first_packet_of_mysql_is_a_command)
{
	struct wire wire = logged_in();

	wire_arrive(&wire, 1000);
	cr_expect_eq(wire_read_word(&wire, 1010, 9, 1 << 24 | 5 | (uint64_t)COM_STMT_CLOSE << 32),
		     REQUEST_ENDED | REQUEST_BEGAN);
}
