/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, and the entries of .eh_frame that they are made from. Those made up are of x86-64. */
#include "unwinding.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define AT 0x10000 /* that the section is linked at */

/* A CIE of 24 bytes: the CFA is rsp + 8, and rip is right below it. */
#define COMMON(version, letter, encoding, ra)                                                      \
	TO32(20), TO32(0), version, 'z', letter, 0, 1, 0x78, ra, 1, encoding, 0x0c, 7, 8, 0x90, 1, \
		0, 0
#define ABSOLUTE 0x03 /* of 4 bytes */
#define RELATIVE 0x1b
#define USUAL COMMON(1, 'R', ABSOLUTE, 16)
/* An FDE of 20 bytes at offset @place of the section, whose CIE is at 0. */
#define FUNCTION(place, begin, bytes, ...) \
	TO32(16), TO32((place) + 4), TO32(begin), TO32(bytes), 0, __VA_ARGS__
#define NOTHING 0, 0, 0 /* a program */
#define PUSHES 0x44, 0x0e, 16 /* after 4 bytes */

static const struct cfi_machine x86_64 = { .sp = 7, .fp = 6, .ra = 16 };

static int make(const uint8_t *bytes, size_t len, struct unwind_table *table)
{
	const struct frames_section section = {
		.bytes = bytes, .len = len, .address = AT, .machine = &x86_64
	};

	return unwind_table_from(&section, table);
}

Test(unwind_table, has_the_rules_of_functions_and_none_between_them)
{
	static const uint8_t bytes[] = { USUAL, FUNCTION(24, 0x2000, 0x20, PUSHES),
					 FUNCTION(44, 0x1000, 0x10, NOTHING) };
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	cr_expect_eq(table.functions, 2);
	cr_expect_eq(table.functions_bad, 0);
	expect_offset(&table, 0xfff, 0);
	expect_offset(&table, 0x1000, 8);
	expect_offset(&table, 0x100f, 8);
	expect_offset(&table, 0x1010, 0);
	expect_offset(&table, 0x2003, 8);
	expect_offset(&table, 0x2004, 16);
	expect_offset(&table, 0x201f, 16);
	expect_offset(&table, 0x2020, 0);
	cr_expect_eq(table.rows_len, 5);
	cr_expect_eq(table.rules_len, 3);
	unwind_table_free(&table);
}

Test(unwind_table, needs_no_row_for_what_goes_on)
{
	static const uint8_t bytes[] = { USUAL, FUNCTION(24, 0x1000, 0x11, NOTHING),
					 FUNCTION(44, 0x1020, 0x10, NOTHING),
					 FUNCTION(64, 0x1040, 0x10, NOTHING) };
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	expect_offset(&table, 0x1018, 8);
	expect_offset(&table, 0x1030, 0);
	expect_offset(&table, 0x1040, 8);
	cr_expect_eq(table.rows_len, 4);
	unwind_table_free(&table);
}

Test(unwind_table, needs_no_row_for_what_begins_behind_a_function)
{
	static const uint8_t bytes[] = { USUAL, FUNCTION(24, 0x1000, 4, PUSHES) };
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	expect_offset(&table, 0x1003, 8);
	expect_offset(&table, 0x1004, 0);
	cr_expect_eq(table.rows_len, 2);
	unwind_table_free(&table);
}

Test(unwind_table, has_no_rule_behind_the_last_function)
{
	static const uint8_t bytes[] = { USUAL, FUNCTION(24, 0x1000, 0x10, NOTHING),
					 FUNCTION(44, 0x1014, 0, NOTHING) /* empty */ };
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	expect_offset(&table, 0x100f, 8);
	expect_offset(&table, 0x1010, 0);
	unwind_table_free(&table);
}

Test(unwind_table, has_addresses_relative_to_where_they_are_written)
{
	static const uint8_t bytes[] = { COMMON(1, 'R', RELATIVE, 16),
					 FUNCTION(24, -0x1000, 0x10, NOTHING) };
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	expect_offset(&table, AT + 32 - 0x1000, 8);
	expect_offset(&table, AT + 32 - 0x1000 - 1, 0);
	unwind_table_free(&table);
}

/* How the bytes of a CIE may be written, of which the CFA is rsp + 8. */
Test(unwind_table, knows_functions_in_common_in_every_form)
{
	static const struct {
		const char *what;
		uint8_t bytes[64];
	} rows[] = {
		{ "version 3, whose registers may be long",
		  { TO32(20), TO32(0), 3, 'z', 'R', 0, 1, 0x78, 0x90, 0, 1, ABSOLUTE, 0x0c, 7, 8,
		    0x90, 1, 0 } },
		{ "where data for exceptions are",
		  { TO32(20), TO32(0), 1, 'z', 'L', 'R', 0, 1, 0x78, 16, 2, RELATIVE, ABSOLUTE,
		    0x0c, 7, 8, 0x90, 1 } },
		{ "a function for exceptions",
		  { TO32(24), TO32(0), 1, 'z', 'P', 'R',      0,    1, 0x78, 16,   6,
		    0x9b,     1,       2, 3,   4,   ABSOLUTE, 0x0c, 7, 8,    0x90, 1 } },
		{ "a key that signs",
		  { TO32(20), TO32(0), 1, 'z', 'B', 'R', 0, 1, 0x78, 16, 1, ABSOLUTE, 0x0c, 7, 8,
		    0x90, 1 } },
		{ "a long length",
		  { TO32(0xffffffff), TO32(20), TO32(0), TO32(0), 1, 'z', 'R', 0, 1, 0x78, 16, 1,
		    ABSOLUTE, 0x0c, 7, 8, 0x90, 1 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		static const uint8_t functions[][20] = {
			{ FUNCTION(24, 0x1000, 0x10, NOTHING) },
			{ FUNCTION(28, 0x1000, 0x10, NOTHING) },
			{ FUNCTION(32, 0x1000, 0x10, NOTHING) },
		};
		const uint8_t *begin = rows[i].bytes;
		const size_t at = *begin == 0xff ? 32 : *begin + 4;
		struct unwind_table table;
		uint8_t bytes[64];

		memcpy(bytes, begin, sizeof(bytes));
		memcpy(bytes + at, functions[(at - 24) / 4], 20);
		cr_assert_eq(make(bytes, at + 20, &table), 0, "%s", rows[i].what);
		expect_offset(&table, 0x1000, 8);
		unwind_table_free(&table);
	}
}

Test(unwind_table, leaves_out_functions_that_it_does_not_understand_and_counts_them)
{
	static const struct {
		const char *what;
		uint8_t bytes[64];
	} rows[] = {
		{ "a version of later", { COMMON(2, 'R', ABSOLUTE, 16) } },
		{ "a return address in another register", { COMMON(1, 'R', ABSOLUTE, 15) } },
		{ "a return address in a register that is written long in version 1",
		  { TO32(20), TO32(0), 1, 'z', 'R', 0, 1, 0x78, 0x90, 0, 1, ABSOLUTE, 0x0c, 7, 8,
		    0x90, 1 } },
		{ "indirect addresses", { COMMON(1, 'R', 0x83, 16) } },
		{ "addresses relative to data", { COMMON(1, 'R', 0x33, 16) } },
		{ "addresses of no known form", { COMMON(1, 'R', 0x0f, 16) } },
		{ "a letter of later", { COMMON(1, '?', ABSOLUTE, 16) } },
		{ "another letter of later",
		  { TO32(20), TO32(0), 1, 'z', 'R', '?', 0, 1, 0x78, 16, 1, ABSOLUTE, 0x0c, 7, 8,
		    0x90, 1 } },
		{ "a personality of no known form", { COMMON(1, 'P', 0x0f, 16) } },
		{ "no end of the letters",
		  { TO32(20), TO32(0), 1, 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z',
		    'z', 'z', 'z', 'z' } },
		{ "letters without a length", { TO32(20), TO32(0), 1, 'e', 'h', 0, 1, 0x78, 16 } },
		{ "a length beyond the entry",
		  { TO32(20), TO32(0), 1, 'z', 'R', 0, 1, 0x78, 16, 100 } },
		{ "a program that does not end",
		  { TO32(20), TO32(0), 1, 'z', 'R', 0, 1, 0x78, 16, 1, ABSOLUTE, 0, 0, 0, 0, 0, 0,
		    0x0c } },
	};
	static const uint8_t functions[] = { FUNCTION(24, 0x1000, 0x10, NOTHING) };
	struct unwind_table table;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t bytes[64];

		memcpy(bytes, rows[i].bytes, sizeof(bytes));
		memcpy(bytes + 24, functions, sizeof(functions));
		cr_expect_eq(make(bytes, 44, &table), -ENODATA, "%s", rows[i].what);
	}
}

Test(unwind_table, counts_functions_that_lead_nowhere)
{
	static const uint8_t bytes[] = { USUAL,
					 FUNCTION(24, 0x1000, 0x10, NOTHING),
					 FUNCTION(1000, 0x2000, 0x10, NOTHING), /* no such CIE */
					 FUNCTION(40, 0x3000, 0x10, NOTHING), /* a function */
					 FUNCTION(84, 0, 0x10, NOTHING), /* left out when linked */
					 FUNCTION(104, 0x4000, 0, NOTHING), /* empty */
					 FUNCTION(124, 0x1008, 0x10, NOTHING), /* overlaps */
					 FUNCTION(144, 0x5000, 0x10, 0x44, 0x0e, 0x80) };
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	cr_expect_eq(table.functions, 7);
	cr_expect_eq(table.functions_bad, 6);
	expect_offset(&table, 0x1000, 8);
	expect_offset(&table, 0x1014, 0);
	expect_offset(&table, 0x2000, 0);
	expect_offset(&table, 0x5000, 0);
	unwind_table_free(&table);
}

Test(unwind_table, ends_where_the_section_does)
{
	static const uint8_t bytes[] = { USUAL, FUNCTION(24, 0x1000, 0x10, NOTHING),
					 FUNCTION(44, 0x2000, 0x10, NOTHING), TO32(0),
					 FUNCTION(68, 0x3000, 0x10, NOTHING) };
	struct unwind_table table;

	for (size_t len = 0; len <= sizeof(bytes); len++) {
		_cleanup_(cleanup_free) uint8_t *copy = malloc(len ? len : 1); /* for ASan */
		int r;

		memcpy(copy, bytes, len);
		r = make(copy, len, &table);
		cr_expect_eq(r, len < 44 ? -ENODATA : 0, "%zu", len);
		if (r)
			continue;
		expect_offset(&table, 0x2000, len < 64 ? 0 : 8);
		expect_offset(&table, 0x3000, 0);
		unwind_table_free(&table);
	}
}

/* Zeros of the CIE's own program, where an entry would end the section. */
Test(unwind_table, counts_functions_whose_cie_is_none)
{
	static const uint8_t bytes[] = { TO32(24),
					 TO32(0),
					 1,
					 'z',
					 'R',
					 0,
					 1,
					 0x78,
					 16,
					 1,
					 ABSOLUTE,
					 0x0c,
					 7,
					 8,
					 0x90,
					 1,
					 0,
					 0,
					 0,
					 0,
					 0,
					 0,
					 FUNCTION(28, 0x1000, 0x10, NOTHING),
					 TO32(16),
					 TO32(28),
					 TO32(0x2000),
					 TO32(0x10),
					 0,
					 NOTHING };
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	cr_expect_eq(table.functions, 2);
	cr_expect_eq(table.functions_bad, 1);
	expect_offset(&table, 0x1000, 8);
	expect_offset(&table, 0x2000, 0);
	unwind_table_free(&table);
}

Test(unwind_table, is_read_from_frames_that_can_be_read_again)
{
	static const uint8_t bytes[] = { USUAL, FUNCTION(24, 0x1000, 0x10, NOTHING) };
	const struct frames_section section = {
		.bytes = bytes, .len = sizeof(bytes), .address = AT, .machine = &x86_64
	};
	struct frames frames = { 0 };

	for (int i = 0; i < 2; i++) {
		cr_expect_eq(frames_read(&section, &frames), 0);
		cr_expect_eq(frames.functions_len, 1);
		cr_expect_eq(frames.commons_len, 1);
		frames_free(&frames);
	}
}

Test(unwind_table, ends_at_an_entry_that_has_no_room_for_its_id)
{
	static const uint8_t bytes[] = { USUAL, FUNCTION(24, 0x1000, 0x10, NOTHING), TO32(2), 0,
					 0,     FUNCTION(50, 0x2000, 0x10, NOTHING) };
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	expect_offset(&table, 0x1000, 8);
	cr_expect_eq(table.functions, 1);
	unwind_table_free(&table);
}

/* A function with more states than a file may have. */
Test(unwind_table, has_a_limit_of_rules)
{
	enum { STATES = UNWIND_RULES_MAX + 10 };
	static const uint8_t head[] = { USUAL, FUNCTION(24, 0x1000, 4 * STATES, NOTHING) };
	static uint8_t bytes[sizeof(head) + STATES * 4];
	const uint32_t len = sizeof(bytes) - 28;
	struct unwind_table table;

	memcpy(bytes, head, sizeof(head));
	memcpy(bytes + 24, &len, sizeof(len));
	for (uint32_t i = 0; i < STATES; i++) {
		uint8_t *step = bytes + sizeof(head) + 4 * (size_t)i;

		step[0] = 0x44;
		step[1] = 0x0e;
		step[2] = (uint8_t)(0x80 | (i & 0x7f));
		step[3] = (uint8_t)(1 + (i >> 7));
	}
	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	cr_expect_eq(table.rules_len, UNWIND_RULES_MAX);
	cr_expect_geq(table.states_bad, 10);
	expect_offset(&table, 0x1000 + 4, 128);
	expect_offset(&table, 0x1000 + 4 * STATES - 4, 0);
	unwind_table_free(&table);
}

/* Without letters addresses are absolute and of 8 bytes, and functions have no data of their own.
 */
Test(unwind_table, has_functions_of_a_cie_without_letters)
{
	static const uint8_t bytes[] = {
		TO32(16),   TO32(0), 1,    0,    1,  0x78,     16,       0x0c,         7,
		8,          0x90,    1,    0,    0,  TO32(24), TO32(24), TO32(0x1000), TO32(0),
		TO32(0x10), TO32(0), 0x44, 0x0e, 16, 0
	};
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	expect_offset(&table, 0x1003, 8);
	expect_offset(&table, 0x1004, 16);
	unwind_table_free(&table);
}

/* What they refer to must be a CIE, which begins where they say. */
Test(unwind_table, leaves_out_functions_of_no_cie)
{
	static const uint8_t bytes[] = {
		USUAL,   USUAL,    TO32(16),      TO32(52 - 8), TO32(0x1000), TO32(0x10), 0,
		NOTHING, TO32(16), TO32(72 - 24), TO32(0x2000), TO32(0x10),   0,          NOTHING
	};
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	cr_expect_eq(table.functions_bad, 1);
	expect_offset(&table, 0x1000, 0);
	expect_offset(&table, 0x2000, 8);
	unwind_table_free(&table);
}

Test(unwind_table, has_no_rule_where_the_cfa_is_by_another_register)
{
	static const uint8_t bytes[] = { USUAL, FUNCTION(24, 0x1000, 0x10, 0x0d, 3, 0),
					 FUNCTION(44, 0x2000, 0x10, NOTHING) };
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	cr_expect_eq(table.states_bad, 1);
	expect_offset(&table, 0x1000, 0);
	expect_offset(&table, 0x2000, 8);
	unwind_table_free(&table);
}

Test(unwind_table, has_limits_of_what_an_entry_costs)
{
	static const uint8_t common[] = { USUAL };
	const size_t len = (FRAMES_COMMONS_MAX + 1) * sizeof(common);
	_cleanup_(cleanup_free) uint8_t *bytes = malloc(len);
	struct unwind_table table;

	cr_assert_not_null(bytes);
	for (size_t i = 0; i < len; i += sizeof(common))
		memcpy(bytes + i, common, sizeof(common));
	cr_expect_eq(make(bytes, len, &table), -E2BIG);
	cr_expect_eq(make(bytes, len - sizeof(common), &table), -ENODATA);
}

Test(unwind_table, is_made_of_elf_files_of_64_bits_only)
{
	struct unwind_table table;
	Elf64_Ehdr header;
	size_t bytes;
	const void *image = image_of("/proc/self/exe", &bytes);

	cr_expect_eq(unwind_table_make("#!/bin/sh", 9, &table), -ENOEXEC);
	cr_expect_eq(unwind_table_make(image, sizeof(header) - 1, &table), -ENOEXEC);
	memcpy(&header, image, sizeof(header));
	header.e_ident[EI_CLASS] = ELFCLASS32;
	cr_expect_eq(unwind_table_make(&header, sizeof(header), &table), -ENOEXEC);
	memcpy(&header, image, sizeof(header));
	header.e_machine = EM_S390;
	cr_expect_eq(unwind_table_make(&header, sizeof(header), &table), -ENOEXEC);
	memcpy(&header, image, sizeof(header));
	header.e_shnum = 0; /* it would be in section 0, and any */
	cr_expect_eq(unwind_table_make(&header, sizeof(header), &table), -ENOEXEC);
	memcpy(&header, image, sizeof(header)); /* its sections are not there */
	cr_expect_neq(unwind_table_make(&header, sizeof(header), &table), 0);
	header.e_shoff = 0;
	header.e_shnum = 0;
	cr_expect_eq(unwind_table_make(&header, sizeof(header), &table), -ENODATA);
	cr_expect_eq(unwind_table_make(image, bytes, &table), 0);
	cr_expect_eq(table.functions_bad * 100 / table.functions, 0);
	unwind_table_free(&table);
	unwind_table_free(&table); /* of nothing */
}
