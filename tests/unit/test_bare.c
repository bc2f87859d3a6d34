/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions there are that no frame information tells of, in files that are made up. */
#include "elf_made.h"
#include "unwinding.h"

#include <errno.h>

#define ENTRY 0x1010
#define CALLED 0x1040

#define PUSH_RBX 0x53
#define POP_RBX 0x5b
#define RET 0xc3
#define CALL(n) 0xe8, n, 0, 0, 0
#define TO(from, to) ((to) - (from)-5) /* of a call at @from */

/* push %rbx; pop %rbx; ret */
static const uint8_t pushes[] = { PUSH_RBX, POP_RBX, RET };

static struct made made_with(uint64_t address, const uint8_t *bytes, size_t len)
{
	struct made made;

	made_init(&made);
	made_code(&made, address, bytes, len);
	return made;
}

static struct unwind_table table_made(const struct made *made)
{
	struct unwind_table table;

	cr_assert_eq(unwind_table_make(made, sizeof(*made), &table), 0);
	for (size_t i = 1; i < table.rows_len; i++)
		cr_expect_gt(table.rows[i].address, table.rows[i - 1].address);
	return table;
}

static void expect_pushes(const struct made *made, uint64_t address, bool known)
{
	struct unwind_table table = table_made(made);

	expect_offset(&table, address, known ? 8 : 0);
	expect_offset(&table, address + 1, known ? 16 : 0);
	expect_offset(&table, address + 2, known ? 8 : 0);
	unwind_table_free(&table);
}

Test(bare, functions_are_told_by_symbols)
{
	static const int tables[] = { MADE_SYMTAB, MADE_DYNSYM };

	for (size_t i = 0; i < 2; i++)
		for (uint64_t bytes = 0; bytes < 2; bytes++) {
			struct made made = made_with(ENTRY, pushes, sizeof(pushes));

			made_symbol(&made, tables[i], "f", LOCAL(STT_FUNC), ENTRY,
				    bytes * sizeof(pushes));
			expect_pushes(&made, ENTRY, true);
		}
}

/* xor %ebp, %ebp; call g; hlt; and g is endless too: it may have a name or none. */
Test(bare, what_the_kernel_begins_has_no_caller)
{
	static const uint8_t begins[] = { 0x31, 0xed, CALL(0x70), 0xf4 };

	for (int named = 0; named < 2; named++) {
		struct made made = made_with(ENTRY, begins, sizeof(begins));
		struct unwind_table table;

		made.header.e_entry = ENTRY;
		if (named)
			made_symbol(&made, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), ENTRY, 0);
		table = table_made(&made);
		for (uint64_t at = ENTRY; at < ENTRY + sizeof(begins); at++)
			cr_expect_eq(unwind_table_find(&table, at)->kind, UNWIND_END);
		cr_expect_eq(unwind_table_find(&table, ENTRY + sizeof(begins))->kind, UNWIND_NONE);
		unwind_table_free(&table);
	}
}

/* Linkers write any address as the entry point of a library. */
Test(bare, an_entry_point_that_returns_has_a_caller)
{
	struct made made = made_with(ENTRY, pushes, sizeof(pushes));

	made.header.e_entry = ENTRY;
	expect_pushes(&made, ENTRY, true);
}

Test(bare, functions_are_found_by_those_that_call_them)
{
	const uint8_t calls[] = { CALL(TO(ENTRY, CALLED)), RET };
	struct made made = made_with(CALLED, pushes, sizeof(pushes));

	made_code(&made, ENTRY, calls, sizeof(calls));
	made_symbol(&made, MADE_DYNSYM, "f", GLOBAL(STT_FUNC), ENTRY, sizeof(calls));
	expect_pushes(&made, CALLED, true);
	/* but not in the midst of another */
	made.code[CALLED - 1 - CODE] = RET;
	made_symbol(&made, MADE_DYNSYM, "g", GLOBAL(STT_FUNC), CALLED - 1, 8);
	expect_pushes(&made, CALLED, false);
}

Test(bare, a_function_ends_where_the_next_one_begins)
{
	const uint8_t runs_on[] = { PUSH_RBX, PUSH_RBX, POP_RBX };
	struct made made = made_with(ENTRY, runs_on, sizeof(runs_on));
	struct unwind_table table;

	made_symbol(&made, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), ENTRY, 0);
	made_symbol(&made, MADE_SYMTAB, "g", GLOBAL(STT_FUNC), ENTRY + 2, 1);
	table = table_made(&made);
	expect_offset(&table, ENTRY + 1, 16);
	expect_offset(&table, ENTRY + 2, 8);
	expect_offset(&table, ENTRY + 3 + 16, 0);
	unwind_table_free(&table);
}

Test(bare, a_handler_of_signals_returns_to_a_function_of_its_own)
{
	static const uint8_t returns[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	struct made made = made_with(ENTRY, returns, sizeof(returns));
	struct unwind_table table = table_made(&made);

	cr_expect_eq(unwind_table_find(&table, ENTRY - 2)->kind, UNWIND_NONE);
	cr_expect_eq(unwind_table_find(&table, ENTRY - 1)->kind, UNWIND_SIGNAL);
	cr_expect_eq(unwind_table_find(&table, ENTRY + 8)->kind, UNWIND_SIGNAL);
	unwind_table_free(&table);
	made_symbol(&made, MADE_SYMTAB, "__restore_rt", LOCAL(STT_FUNC), ENTRY, sizeof(returns));
	table = table_made(&made);
	cr_expect_eq(unwind_table_find(&table, ENTRY + 8)->kind, UNWIND_SIGNAL);
	unwind_table_free(&table);
}

static void expect_no_table(const struct made *made)
{
	struct unwind_table table;

	cr_expect_eq(unwind_table_make(made, sizeof(*made), &table), -ENODATA);
}

Test(bare, what_was_moved_out_of_a_function_is_none)
{
	struct made made = made_with(ENTRY, pushes, sizeof(pushes));

	made_symbol(&made, MADE_SYMTAB, "f.cold", LOCAL(STT_FUNC), ENTRY, sizeof(pushes));
	expect_no_table(&made);
}

Test(bare, symbols_may_lie)
{
	struct made made = made_with(ENTRY, pushes, sizeof(pushes));

	made_symbol(&made, MADE_SYMTAB, "before", GLOBAL(STT_FUNC), CODE - 1, 16);
	made_symbol(&made, MADE_SYMTAB, "behind", GLOBAL(STT_FUNC), CODE + MADE_CODE_BYTES, 16);
	made_symbol(&made, MADE_SYMTAB, "object", GLOBAL(STT_OBJECT), ENTRY, 16);
	made_symbol(&made, MADE_SYMTAB, "elsewhere", GLOBAL(STT_FUNC), ENTRY, 16)->st_shndx =
		SHN_UNDEF;
	expect_no_table(&made);
	made_symbol(&made, MADE_SYMTAB, "long", GLOBAL(STT_FUNC), ENTRY, UINT64_MAX);
	expect_pushes(&made, ENTRY, true);
}

Test(bare, functions_of_arm64_are_not_followed)
{
	struct made made = made_with(ENTRY, pushes, sizeof(pushes));

	made.header.e_machine = EM_AARCH64;
	made_symbol(&made, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), ENTRY, sizeof(pushes));
	expect_no_table(&made);
}

/* --- functions that never return ------------------------------------------------------------- */

#define FOREVER 0xeb, 0xfe /* 1: jmp 1b */

/* f calls @callee, and behind that is another function, of which nothing tells. */
static struct made made_endless(uint64_t callee)
{
	static const uint8_t forever[] = { FOREVER };
	const uint8_t code[] = { PUSH_RBX, CALL((uint8_t)TO(ENTRY + 1, callee)), /* */
				 PUSH_RBX, POP_RBX, RET };
	struct made made = made_with(ENTRY, code, sizeof(code));

	made_code(&made, CALLED, forever, sizeof(forever));
	made_symbol(&made, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), ENTRY, 0);
	return made;
}

Test(bare, nothing_is_behind_a_call_that_does_not_return)
{
	const struct made made = made_endless(CALLED);
	struct unwind_table table = table_made(&made);

	expect_offset(&table, CALLED, 8);
	expect_offset(&table, ENTRY, 8);
	expect_offset(&table, ENTRY + 1, 16);
	expect_offset(&table, ENTRY + 6, 0);
	unwind_table_free(&table);
}

/* It ends with another stack than it began with: so what is behind the call is not of it. */
Test(bare, what_is_not_understood_has_no_rules)
{
	struct made made = made_endless(CALLED + 2);
	struct unwind_table table;

	made_symbol(&made, MADE_SYMTAB, "g", GLOBAL(STT_FUNC), CALLED, 0);
	table = table_made(&made);

	expect_offset(&table, ENTRY, 0);
	expect_offset(&table, ENTRY + 1, 0);
	unwind_table_free(&table);
}

/* --- what may be functions ------------------------------------------------------------------- */

#define LEA(from, to) 0x48, 0x8d, 0x3d, (uint8_t)((to) - (from)-7), 0, 0, 0 /* ..., %rdi */

static struct made made_lea(const uint8_t *there, size_t len)
{
	const uint8_t takes[] = { LEA(ENTRY, CALLED), RET };
	struct made made = made_with(ENTRY, takes, sizeof(takes));

	made_code(&made, CALLED, there, len);
	made_symbol(&made, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), ENTRY, 0);
	return made;
}

Test(bare, functions_are_found_by_their_addresses)
{
	struct made made = made_lea(pushes, sizeof(pushes));

	expect_pushes(&made, CALLED, true);
	made = made_with(CALLED, pushes, sizeof(pushes));
	made_symbol(&made, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), ENTRY, 0);
	made_pointer(&made, CALLED);
	expect_pushes(&made, CALLED, true);
}

/* Threads begin with one that ends them: it calls what is known. */
Test(bare, functions_that_never_return_are_found_by_their_addresses)
{
	const uint8_t ends[] = { PUSH_RBX, 0xe8, (uint8_t)TO(CALLED + 1, ENTRY),
				 0xff,     0xff, 0xff, /* */
				 FOREVER };
	struct made made = made_lea(ends, sizeof(ends));
	struct unwind_table table = table_made(&made);

	expect_offset(&table, CALLED, 8);
	expect_offset(&table, CALLED + 6, 16);
	unwind_table_free(&table);
}

Test(bare, data_and_labels_are_no_functions)
{
	/* The last one is as a label of an interpreter: it calls f, and goes on by a table. */
	static const uint8_t none[] = { PUSH_RBX, 0x06 }, zeros[8], label[] = { POP_RBX, RET },
			     forever[] = { PUSH_RBX, FOREVER },
			     goes_on[] = { 0xe8, (uint8_t)TO(CALLED, ENTRY), 0xff, 0xff, 0xff, 0xff,
					   0xe0 };
	static const struct {
		const uint8_t *bytes;
		size_t len;
	} those[] = { { none, 2 }, { zeros, 8 }, { label, 2 }, { forever, 3 }, { goes_on, 7 } };

	for (size_t i = 0; i < sizeof(those) / sizeof(*those); i++) {
		struct made made = made_lea(those[i].bytes, those[i].len);
		struct unwind_table table = table_made(&made);

		expect_offset(&table, CALLED, 0);
		unwind_table_free(&table);
	}
}

/* f: push %rbx; lea 1f, %rdi; 1: pop %rbx; ret */
Test(bare, a_label_does_not_end_its_function)
{
	const uint8_t code[] = { PUSH_RBX, LEA(0, 7), POP_RBX, RET };
	struct made made = made_with(ENTRY, code, sizeof(code));
	struct unwind_table table;

	made_symbol(&made, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), ENTRY, 0);
	table = table_made(&made);
	expect_offset(&table, ENTRY + 1, 16);
	expect_offset(&table, ENTRY + 8, 16);
	expect_offset(&table, ENTRY + 9, 8);
	unwind_table_free(&table);
}

/* --- limits ---------------------------------------------------------------------------------- */

#define ROUNDS 64
#define CALLS 6 /* bytes */
#define LAST (MADE_CODE_BYTES / CALLS - 1)

/* Each calls the one before it: more than are looked for. */
Test(bare, functions_that_are_found_one_by_one_are_bounded)
{
	static const uint8_t calls[CALLS] = { 0xe8, 0xf5, 0xff, 0xff, 0xff, RET };
	struct made made = made_with(CODE, calls, sizeof(calls));
	struct unwind_table table;

	for (uint64_t i = 0; i <= LAST; i++)
		made_code(&made, CODE + i * CALLS, calls, sizeof(calls));
	made_symbol(&made, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), CODE + LAST * CALLS, CALLS);
	table = table_made(&made);
	expect_offset(&table, CODE + LAST * CALLS, 8);
	expect_offset(&table, CODE + (LAST - ROUNDS) * CALLS, 8);
	expect_offset(&table, CODE + (LAST - ROUNDS - 1) * CALLS, 0);
	unwind_table_free(&table);
}
