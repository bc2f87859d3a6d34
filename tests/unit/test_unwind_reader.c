/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of DWARF. */
#include <criterion/criterion.h>

#include "unwind/reader.h"

#define LEN(array) (sizeof(array) / sizeof((array)[0]))
#define BYTES(...) .len = sizeof((uint8_t[]){ __VA_ARGS__ }), .bytes = { __VA_ARGS__ }
#define AT 0x10000 /* where a pointer is */

struct written {
	size_t len;
	uint8_t bytes[12];
	int64_t value;
};

static struct reader reader_of(const struct written *row)
{
	return (struct reader){ row->bytes, row->bytes + row->len, false };
}

static void expect_read(const struct reader *reader, int64_t value, int64_t wanted, size_t row)
{
	cr_expect_eq(value, wanted, "row %zu: %#lx", row, (unsigned long)value);
	cr_expect_eq(reader_left(reader), 0, "row %zu", row);
	cr_expect_not(reader->bad, "row %zu", row);
}

Test(unwind_reader, knows_numbers_of_any_length)
{
	static const struct written rows[] = {
		{ .value = 0 },
		{ BYTES(0xff), 0xff },
		{ BYTES(0x01, 0x80), 0x8001 },
		{ BYTES(0x01, 0, 0, 0x80), 0x80000001 },
		{ BYTES(1, 2, 3, 4, 5, 6, 7, 8), 0x0807060504030201 },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct reader reader = reader_of(&rows[i]);

		expect_read(&reader, (int64_t)reader_number(&reader, rows[i].len), rows[i].value,
			    i);
	}
}

Test(unwind_reader, knows_the_sign_of_a_number)
{
	static const struct written rows[] = {
		{ BYTES(0x7f), 0x7f },
		{ BYTES(0x80), -0x80 },
		{ BYTES(0xff, 0x7f), 0x7fff },
		{ BYTES(0x00, 0x80), -0x8000 },
		{ BYTES(0xff, 0xff, 0xff, 0x7f), INT32_MAX },
		{ BYTES(0x00, 0x00, 0x00, 0x80), INT32_MIN },
		{ BYTES(0, 0, 0, 0, 0, 0, 0, 0x80), INT64_MIN },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct reader reader = reader_of(&rows[i]);

		expect_read(&reader, reader_signed(&reader, rows[i].len), rows[i].value, i);
	}
}

/* DWARF 5, 7.6, and what has more than 64 bits. */
Test(unwind_reader, knows_numbers_that_tell_their_length)
{
	static const struct written rows[] = {
		{ BYTES(0x02), 2 },
		{ BYTES(0x7f), 127 },
		{ BYTES(0x80, 0x01), 128 },
		{ BYTES(0xb9, 0x64), 12857 },
		{ BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), -1 },
		{ BYTES(0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f),
		  1 },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct reader reader = reader_of(&rows[i]);

		expect_read(&reader, (int64_t)reader_uleb(&reader), rows[i].value, i);
	}
}

Test(unwind_reader, knows_the_sign_of_numbers_that_tell_their_length)
{
	static const struct written rows[] = {
		{ BYTES(0x01), 1 },
		{ BYTES(0x3f), 63 },
		{ BYTES(0x40), -64 },
		{ BYTES(0x7e), -2 },
		{ BYTES(0xff, 0x00), 127 },
		{ BYTES(0x80, 0x7f), -128 },
		{ BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40), INT64_MIN / 2 },
		{ BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f), INT64_MIN },
		{ BYTES(0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f), 1 },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct reader reader = reader_of(&rows[i]);

		expect_read(&reader, reader_sleb(&reader), rows[i].value, i);
	}
}

/* LSB 5.0, 10.5.1. */
Test(unwind_reader, knows_pointers_in_the_encodings_that_linkers_write)
{
	static const struct {
		uint8_t encoding;
		struct written written;
	} rows[] = {
		{ 0x00, { BYTES(1, 0, 0, 0, 0, 0, 0, 0x7f), 0x7f00000000000001 } },
		{ 0x02, { BYTES(0x00, 0x80), 0x8000 } },
		{ 0x03, { BYTES(0x00, 0x00, 0x00, 0x80), 0x80000000 } },
		{ 0x04, { BYTES(1, 0, 0, 0, 0, 0, 0, 0x7f), 0x7f00000000000001 } },
		{ 0x0a, { BYTES(0x00, 0x80), -0x8000 } },
		{ 0x0b, { BYTES(0x00, 0x00, 0x00, 0x80), INT32_MIN } },
		{ 0x0c, { BYTES(0, 0, 0, 0, 0, 0, 0, 0x80), INT64_MIN } },
		{ 0x1a, { BYTES(0xfe, 0xff), AT - 2 } },
		{ 0x1b, { BYTES(0x02, 0, 0, 0), AT + 2 } },
		{ 0x1c, { BYTES(0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), AT - 2 } },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct reader reader = reader_of(&rows[i].written);

		expect_read(&reader, (int64_t)reader_pointer(&reader, rows[i].encoding, AT),
			    rows[i].written.value, i);
	}
}

Test(unwind_reader, is_bad_at_other_encodings)
{
	static const uint8_t encodings[] = { 0x01, 0x05, 0x09, 0x0d, 0x23, 0x33, 0x83, 0xff };
	static const struct written row = { BYTES(1, 2, 3, 4, 5, 6, 7, 8), 0 };

	for (size_t i = 0; i < LEN(encodings); i++) {
		struct reader reader = reader_of(&row);
		uint64_t value = reader_pointer(&reader, encodings[i], 0);

		cr_expect(reader.bad, "%#x", encodings[i]);
		cr_expect_eq(reader_number(&reader, 1), 0, "%#x", encodings[i]);
		cr_expect(encodings[i] & 0x80 || !value, "%#x: %lu", encodings[i], value);
	}
}

Test(unwind_reader, reads_zeros_behind_the_end)
{
	static const struct written row = { BYTES(1, 2), 0 };
	struct reader reader = reader_of(&row), part;

	cr_expect_eq(reader_number(&reader, 4), 0);
	cr_expect(reader.bad);
	cr_expect_eq(reader_number(&reader, 1), 0);
	cr_expect_eq(reader_uleb(&reader), 0);
	cr_expect_eq(reader_sleb(&reader), 0);
	cr_expect_eq(reader_signed(&reader, 8), 0);
	reader = reader_of(&row);
	part = reader_part(&reader, 3);
	cr_expect(reader.bad);
	cr_expect_eq(reader_left(&part), 0);
	cr_expect_not(reader_text(&reader));
}
