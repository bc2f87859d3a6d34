/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that are made from .debug_frame (DWARF 5, 6.4.1). Those made up are of x86-64. */
#include "unwinding.h"

#include <errno.h>
#include <string.h>

#define TO64(n) TO32(n), TO32(0)
#define ONES 0xff, 0xff, 0xff, 0xff
/* A CIE of 20 bytes, as Go writes it: the CFA is rsp + @offset. */
#define DEBUG_COMMON(offset) TO32(16), ONES, 3, 0, REST_OF_COMMON(offset)
#define REST_OF_COMMON(offset) 1, 0x7c, 16, 0x0c, 7, offset, 5, 16, 2, 0
#define DEBUG_COMMON4 TO32(18), ONES, 4, 0, 8, 0, REST_OF_COMMON(8)
/* An FDE of 28 bytes, whose CIE is at @common. */
#define DEBUG_FUNCTION(common, begin, bytes, ...) \
	TO32(24), TO32(common), TO64(begin), TO64(bytes), 0, __VA_ARGS__

#define NOTHING 0, 0, 0 /* a program */
#define PUSHES 0x44, 0x0e, 16 /* after 4 bytes */

/* Of .eh_frame: a CIE of 24 bytes, and a function whose CIE is at 0. */
#define EH_COMMON TO32(20), TO32(0), 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1, 0, 0
#define EH_FUNCTION(begin, bytes) TO32(16), TO32(28), TO32(begin), TO32(bytes), 0, NOTHING

static const struct cfi_machine x86_64 = { .sp = 7, .fp = 6, .ra = 16 };

static int make(const uint8_t *bytes, size_t len, struct unwind_table *table)
{
	const struct frames_section section = {
		.bytes = bytes, .len = len, .machine = &x86_64, .debug = true
	};

	return unwind_table_from(&section, table);
}

Test(debug_frame, makes_a_table)
{
	static const uint8_t bytes[] = { DEBUG_COMMON(8), DEBUG_FUNCTION(0, 0x1000, 0x10, PUSHES),
					 DEBUG_FUNCTION(0, 0x2000, 0x10, NOTHING) };
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	cr_expect_eq(table.functions_bad, 0);
	expect_offset(&table, 0x1003, 8);
	expect_offset(&table, 0x1004, 16);
	expect_offset(&table, 0x2000, 8);
	cr_expect_eq(unwind_table_find(&table, 0x2000)->ra_offset, -8);
	cr_expect_eq(unwind_table_find(&table, 0x1004)->fp_place, UNWIND_KEPT, "it is not of Go");
	unwind_table_free(&table);
}

/* The offset of a CIE there counts from the beginning; that of the second one is 20. */
Test(debug_frame, has_functions_of_whichever_cie_they_name)
{
	static const uint8_t bytes[] = { DEBUG_COMMON(8), DEBUG_COMMON(24),
					 DEBUG_FUNCTION(20, 0x1000, 0x10, NOTHING),
					 DEBUG_FUNCTION(0, 0x2000, 0x10, NOTHING),
					 DEBUG_FUNCTION(4, 0x3000, 0x10, NOTHING) };
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	expect_offset(&table, 0x1000, 24);
	expect_offset(&table, 0x2000, 8);
	expect_offset(&table, 0x3000, 0);
	cr_expect_eq(table.functions_bad, 1);
	unwind_table_free(&table);
}

Test(debug_frame, knows_version_4_with_addresses_of_8_bytes_and_no_segments)
{
	static const uint8_t good[] = { DEBUG_COMMON4, DEBUG_FUNCTION(0, 0x1000, 0x10, NOTHING) };
	uint8_t bytes[sizeof(good)];
	struct unwind_table table;

	cr_assert_eq(make(good, sizeof(good), &table), 0);
	expect_offset(&table, 0x1000, 8);
	unwind_table_free(&table);
	for (size_t i = 8; i < 12; i++) {
		memcpy(bytes, good, sizeof(good));
		bytes[i]++; /* version, augmentation, bytes of an address, of a segment */
		cr_expect_eq(make(bytes, sizeof(bytes), &table), -ENODATA, "%zu", i);
	}
}

Test(debug_frame, knows_lengths_and_ids_of_8_bytes)
{
	static const uint8_t bytes[] = {
		ONES, TO64(20), ONES,    ONES,         3,          0, REST_OF_COMMON(8),
		ONES, TO64(28), TO64(0), TO64(0x1000), TO64(0x10), 0, NOTHING
	};
	struct unwind_table table;

	cr_assert_eq(make(bytes, sizeof(bytes), &table), 0);
	expect_offset(&table, 0x1000, 8);
	unwind_table_free(&table);
}

/* The CIE of a function is one of its own section. */
Test(debug_frame, has_functions_of_two_sections)
{
	static const uint8_t first[] = { EH_COMMON, EH_FUNCTION(0x1000, 0x10) };
	static const uint8_t second[] = { DEBUG_COMMON(8), DEBUG_FUNCTION(0, 0x1000, 0x10, NOTHING),
					  DEBUG_FUNCTION(0, 0x2000, 0x10, NOTHING) };
	const struct frames_section sections[] = {
		{ .bytes = first, .len = sizeof(first), .address = 0x10000, .machine = &x86_64 },
		{ .bytes = second, .len = sizeof(second), .machine = &x86_64, .debug = true },
	};
	struct frames frames = { 0 };

	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(frames_read(&sections[i], &frames), 0);
	cr_assert_eq(frames.functions_len, 2);
	cr_expect_eq(frames.bad, 1, "what both have is taken of the first");
	cr_expect_eq(frames.functions[0].common, 0);
	cr_expect_eq(frames.functions[1].common, 1);
	cr_expect_eq(frames.functions[1].begin, 0x2000);
	frames_free(&frames);
}
