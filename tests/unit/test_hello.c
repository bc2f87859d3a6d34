/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First messages of real clients of TLS, as fixtures/hellos has them, each in its record: OpenSSL
 * that offers nothing, HTTP/1 as well and HTTP/2 alone, curl, Go's net/http, Java's HttpClient and
 * gRPC.
 */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "machine/hello.h"

#define ROOT "tests/unit/fixtures/hellos/"
#define HELLO_MAX 4096

struct bytes {
	uint8_t data[HELLO_MAX];
	size_t len;
};

static struct bytes hello_of(const char *client)
{
	struct bytes bytes = {};
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), ROOT "%s", client);
	file = fopen(path, "rb");
	cr_assert_not_null(file, "%s", path);
	bytes.len = fread(bytes.data, 1, sizeof(bytes.data), file);
	fclose(file);
	cr_assert_gt(bytes.len, TLS_HEADER_BYTES);
	return bytes;
}

/* The walk over the first @len bytes, behind the record's header. */
static int offers_http_2(const struct bytes *bytes, size_t len)
{
	struct hello hello = { .bytes = (uint32_t)(len - TLS_HEADER_BYTES) };
	const uint8_t *data = bytes->data + TLS_HEADER_BYTES;

	for (unsigned int i = 0; i < HELLO_STEPS && hello.at < hello.bytes; i++) {
		struct hello_window window = {};
		size_t there = len - TLS_HEADER_BYTES - hello.at;

		memcpy(window.bytes, data + hello.at,
		       there < sizeof(window) ? there : sizeof(window));
		if (!hello_step(&hello, &window))
			break;
	}
	cr_expect_leq(hello.bytes, len - TLS_HEADER_BYTES);
	return hello_is_http_2(&hello);
}

Test(hello, clients_that_offer_http_2_alone_are_told_from_others)
{
	static const struct {
		const char *client;
		int expected;
	} rows[] = {
		{ "openssl", 0 }, { "openssl-both", 0 }, { "openssl-h2", 1 }, { "curl", 0 },
		{ "go", 0 },      { "java", 0 },         { "grpc", 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bytes bytes = hello_of(rows[i].client);

		cr_expect_eq(offers_http_2(&bytes, bytes.len), rows[i].expected, "%s",
			     rows[i].client);
	}
}

Test(hello, what_is_cut_off_before_the_end_of_the_list_is_not_known)
{
	struct bytes bytes = hello_of("openssl-h2");
	size_t least = 0;

	for (size_t len = TLS_HEADER_BYTES + 1; len <= bytes.len; len++)
		if (offers_http_2(&bytes, len) && !least)
			least = len;
		else
			cr_expect_eq(offers_http_2(&bytes, len), least != 0);
	cr_assert_gt(least, 3);
	cr_expect_arr_eq(bytes.data + least - 3, "\2h2", 3, "it is the last of its list");
}

/* Where @bytes have @part, which is of their list of protocols. */
static uint8_t *list_find(struct bytes *bytes, const char *part, size_t len)
{
	for (size_t i = 0; i + len <= bytes->len; i++)
		if (!memcmp(bytes->data + i, part, len))
			return bytes->data + i;
	cr_assert_fail("it offers something else");
	return NULL;
}

Test(hello, what_follows_the_message_is_not_looked_at)
{
	struct bytes plain = hello_of("openssl"), other = hello_of("openssl-h2");
	const uint8_t *extension = list_find(&other, "\0\20\0\5\0\3\2h2", 9);

	memcpy(plain.data + plain.len, extension, 9);
	cr_expect_not(offers_http_2(&plain, plain.len + 9));
}

Test(hello, a_list_that_is_empty_or_cut_offers_nothing)
{
	struct bytes bytes = hello_of("grpc"), empty = hello_of("openssl-h2");
	static const char offers[] = "\0\14\10grpc-exp\2h2", swapped[] = "\2h2\10grpc-exp";
	uint8_t *list = list_find(&bytes, offers, sizeof(offers) - 1);

	memcpy(list + 2, swapped, sizeof(swapped) - 1);
	cr_expect(offers_http_2(&bytes, bytes.len));
	cr_expect_not(offers_http_2(&bytes, (size_t)(list + 2 + 8 - bytes.data)), "after \"grpc\"");
	list_find(&empty, "\0\3\2h2", 5)[1] = 0;
	cr_expect_not(offers_http_2(&empty, empty.len));
}

static void expect_each_letter_to_count(struct bytes *bytes, uint8_t *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			name[i] ^= 1U << bit;
			cr_expect_not(offers_http_2(bytes, bytes->len), "byte %zu, bit %u", i, bit);
			name[i] ^= 1U << bit;
		}
}

Test(hello, each_letter_of_a_name_counts)
{
	struct bytes bytes = hello_of("openssl-h2"), grpc = hello_of("grpc");

	expect_each_letter_to_count(&bytes, list_find(&bytes, "\0\3\2h2", 5) + 2, 3);
	expect_each_letter_to_count(&grpc, list_find(&grpc, "\10grpc-exp", 9), 5);
}

/* RFC 8446, sections 4 and 4.1.2; RFC 7301, section 3.1. */
Test(hello, each_part_tells_where_the_next_one_is)
{
	static const struct {
		uint16_t part;
		struct hello_window window;
		uint16_t next;
		uint32_t at, end, bytes;
		int more;
	} rows[] = {
		{ HELLO_FIXED, { { 1, 0, 1, 2 } }, HELLO_SESSION, 38, 0, 262, 1 },
		{ HELLO_FIXED, { { 1, 1, 0, 3 } }, HELLO_SESSION, 38, 0, 65543, 1 },
		{ HELLO_FIXED, { { 1, 9, 0, 0 } }, HELLO_SESSION, 38, 0, 100000, 1 },
		{ HELLO_FIXED, { { 2, 0, 1, 2 } }, HELLO_SESSION, 38, 0, 262, 0 },
		{ HELLO_SESSION, { { 32 } }, HELLO_CIPHERS, 33, 0, 100000, 1 },
		{ HELLO_CIPHERS, { { 1, 4 } }, HELLO_COMPRESSION, 262, 0, 100000, 1 },
		{ HELLO_COMPRESSION, { { 1 } }, HELLO_LIST, 2, 0, 100000, 1 },
		{ HELLO_LIST, { { 9, 9 } }, HELLO_EXTENSION, 2, 0, 100000, 1 },
		{ HELLO_EXTENSION, { { 0, 43, 1, 3 } }, HELLO_EXTENSION, 263, 0, 100000, 1 },
		{ HELLO_EXTENSION, { { 0, 16, 0, 5, 0, 3 } }, HELLO_PROTOCOL, 6, 9, 100000, 1 },
		{ HELLO_EXTENSION, { { 0, 16, 1, 2, 1, 0 } }, HELLO_PROTOCOL, 6, 262, 100000, 1 },
		{ HELLO_EXTENSION, { { 0, 16, 0, 2, 0, 0, 9 } }, HELLO_EXTENSION, 0, 0, 100000, 0 },
		{ HELLO_PROTOCOL + 1, { { 1 } }, HELLO_PROTOCOL + 1, 0, 0, 100000, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct hello hello = { .part = rows[i].part, .bytes = 100000 };

		cr_expect_eq(hello_step(&hello, &rows[i].window), rows[i].more, "row %zu", i);
		cr_expect_eq(hello.part, rows[i].next, "row %zu", i);
		cr_expect_eq(hello.at, rows[i].at, "row %zu: %u", i, hello.at);
		cr_expect_eq(hello.end, rows[i].end, "row %zu", i);
		cr_expect_eq(hello.bytes, rows[i].bytes, "row %zu", i);
	}
}

/* Behind it comes the length of the next one, which is that of the digit. */
Test(hello, a_name_of_one_letter_is_another_protocol)
{
	struct hello hello = { .part = HELLO_PROTOCOL, .bytes = 2, .end = 2 };
	struct hello_window window = { "\1h2" };

	cr_expect_not(hello_step(&hello, &window));
	cr_expect_eq(hello.at, hello.end);
	cr_expect_not(hello_is_http_2(&hello));
}

Test(hello, no_byte_leads_the_walk_astray)
{
	struct bytes bytes = hello_of("grpc");

	for (size_t i = TLS_HEADER_BYTES; i < bytes.len; i++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			bytes.data[i] ^= 1U << bit;
			offers_http_2(&bytes, bytes.len);
			bytes.data[i] ^= 1U << bit;
		}
	cr_expect(offers_http_2(&bytes, bytes.len));
}
