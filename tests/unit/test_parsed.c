/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files that are made up, as they arrive; and answers of a parser that is not ours. */
#include "elf_made.h"
#include "parsing.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/utf8.h"

/* --- names ----------------------------------------------------------------------------------- */

static void expect_text(const char *name, const char *text)
{
	static const uint64_t address = 0x1100;
	_cleanup_(parsed_names_free) struct parsed_names names;
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_SYMTAB, name, GLOBAL(STT_FUNC), address, 0x10);
	names = names_in(&made, sizeof(made), &address, 1);
	cr_expect_str_eq(name_in(&names, 0), text);
	cr_expect_eq(names.names[0].bytes, strlen(text));
	cr_expect_eq(names.names[0].begin, address);
}

Test(parsed, names_are_as_they_are_and_safe_to_show)
{
	expect_text("main", "main");
	expect_text("_ZNSt6vectorIiSaIiEE9push_backEOi",
		    "std::vector<int, std::allocator<int> >::push_back");
	expect_text("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
	expect_text("a\033[2Jb\nc\x7f",
		    "a" UTF8_REPLACEMENT "[2Jb" UTF8_REPLACEMENT "c" UTF8_REPLACEMENT);
	expect_text("\xff\xc3", UTF8_REPLACEMENT UTF8_REPLACEMENT);
}

Test(parsed, names_are_as_linked_where_that_is_asked)
{
	static const char name[] = "_ZNSt5mutex4lockEv";
	static const uint64_t address = 0x1100;
	_cleanup_(parsed_names_free) struct parsed_names names;
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_SYMTAB, name, GLOBAL(STT_FUNC), address, 0x10);
	names = names_as(true, &made, sizeof(made), &address, 1);
	cr_expect_str_eq(name_in(&names, 0), name);
}

/* Frame information of two functions of 16 bytes: nothing but where they are (LSB, .eh_frame). */
static void put_frames(struct made *made, uint64_t first, uint64_t second)
{
	static const char name[] = ".eh_frame";
	const struct {
		struct {
			uint32_t len, is_cie;
			uint8_t version, augmentation, code_units, data_units, ra, nops[3];
		} cie;
		struct __attribute__((packed)) {
			uint32_t len, cie_before;
			uint64_t begin, bytes;
		} fde[2];
		uint32_t end;
	} frames = {
		.cie = { .len = 12, .version = 1, .code_units = 1, .data_units = 0x78, .ra = 16 },
		.fde = { { .len = 20, .cie_before = 20, .begin = first, .bytes = 16 },
			 { .len = 20, .cie_before = 44, .begin = second, .bytes = 16 } },
	};

	memcpy(made->notes, &frames, sizeof(frames));
	made->sections[MADE_NOTE] = (Elf64_Shdr){ .sh_name = made->strtab_len,
						  .sh_type = SHT_PROGBITS,
						  .sh_flags = SHF_ALLOC,
						  .sh_addr = 0x8000,
						  .sh_offset = offsetof(struct made, notes),
						  .sh_size = sizeof(frames) };
	cr_assert_leq(made->strtab_len + sizeof(name), sizeof(made->strtab));
	memcpy(made->strtab + made->strtab_len, name, sizeof(name));
	made->strtab_len += sizeof(name);
}

/* Those of others would be wrong: a symbol without a size may be the last before functions that
 * were stripped of theirs. */
Test(parsed, names_in_a_hurry_are_those_of_functions_that_have_an_end)
{
	static const uint8_t calls[] = { 0xe8, 0x1b, 0, 0, 0, 0xc3 }; /* call 0x1100; ret */
	static const uint8_t pushes[] = { 0x53, 0x5b, 0xc3 }; /* push %rbx; pop %rbx; ret */
	static const uint64_t addresses[] = { 0x1010, 0x1048, 0x1088, 0x10e0, 0x1101 };
	static const char *const names[] = { "sized", "framed", "", "bare", "" };
	static const uint64_t begins[] = { 0x1010, 0x1040, 0x1080, 0x10e0, 0x1100 };
	struct made made;

	made_init(&made);
	made_code(&made, 0x10e0, calls, sizeof(calls));
	made_code(&made, 0x1100, pushes, sizeof(pushes));
	put_frames(&made, 0x1040, 0x1080);
	made_symbol(&made, MADE_SYMTAB, "sized", GLOBAL(STT_FUNC), 0x1010, 0x10);
	made_symbol(&made, MADE_SYMTAB, "framed", GLOBAL(STT_FUNC), 0x1040, 0);
	made_symbol(&made, MADE_SYMTAB, "bare", GLOBAL(STT_FUNC), 0x10e0, 0);
	for (int hurry = 0; hurry < 2; hurry++) {
		_cleanup_(parsed_names_free) struct parsed_names found =
			names_as(hurry, &made, sizeof(made), addresses, 5);

		for (size_t i = 0; i < 5; i++) {
			bool known = i < 3 || !hurry;

			cr_expect_str_eq(name_in(&found, i), known ? names[i] : "", "%zu", i);
			cr_expect_eq(found.names[i].begin, known ? begins[i] : 0, "%zu", i);
		}
	}
}

/* Instructions of other machines tell nothing, so there is nothing to wait for. */
Test(parsed, names_in_a_hurry_are_all_names_of_another_machine)
{
	static const uint64_t addresses[] = { 0x1100 };
	struct made made;

	made_init(&made);
	made.header.e_machine = EM_AARCH64;
	made_symbol(&made, MADE_SYMTAB, "unsized", GLOBAL(STT_FUNC), 0x1100, 0);
	for (int hurry = 0; hurry < 2; hurry++) {
		_cleanup_(parsed_names_free) struct parsed_names names =
			names_as(hurry, &made, sizeof(made), addresses, 1);

		cr_expect_str_eq(name_in(&names, 0), "unsized");
	}
}

/* A text of @len times @unit. */
static char *repeated(char *out, const char *unit, size_t len)
{
	out[0] = '\0';
	for (size_t i = 0; i < len; i++)
		memcpy(out + i * strlen(unit), unit, strlen(unit) + 1);
	return out;
}

Test(parsed, long_names_are_cut_where_it_is_seen)
{
	char name[2048], text[2048];

	repeated(name, "a", NAME_BYTES_MAX);
	expect_text(name, name);
	repeated(name, "a", NAME_BYTES_MAX + 1);
	repeated(text, "a", NAME_BYTES_MAX - 3);
	memcpy(text + NAME_BYTES_MAX - 3, "...", 4);
	expect_text(name, text);
	repeated(name, "a", 2000);
	expect_text(name, text);
	/* To whole characters: 169 of 3 bytes, and 3 of the cut. */
	repeated(name, "\x01", 171);
	repeated(text, UTF8_REPLACEMENT, 169);
	memcpy(text + strlen(text), "...", 4);
	expect_text(name, text);
	repeated(name, "\x01", 170);
	expect_text(name, repeated(text, UTF8_REPLACEMENT, 170));
}

/* A name that the end of all names cuts is as long as what there is of it. */
Test(parsed, names_end_with_the_table_of_names)
{
	static const uint64_t address = 0x1100;
	_cleanup_(parsed_names_free) struct parsed_names names;
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_SYMTAB, "function", GLOBAL(STT_FUNC), address, 0x10);
	made.sections[MADE_STRTAB].sh_size = made.strtab_len - strlen("tion") - 1;
	names = names_in(&made, sizeof(made), &address, 1);
	cr_expect_str_eq(name_in(&names, 0), "func");
}

Test(parsed, names_that_find_no_room_are_counted)
{
	enum {
		SYMBOLS = NAMES_MAX,
		EACH = NAME_BYTES_MAX,
		TEXTS = (NAMES_TEXTS_BYTES - 1) / (EACH + 1)
	};
	const size_t symbols_at = sizeof(struct made) + SYMBOLS + EACH + 1;
	const size_t len = symbols_at + SYMBOLS * sizeof(Elf64_Sym);
	_cleanup_(cleanup_free) struct made *made = malloc(len);
	_cleanup_(cleanup_free) uint64_t *addresses = calloc(SYMBOLS, sizeof(*addresses));
	_cleanup_(parsed_names_free) struct parsed_names names;
	char *texts = (char *)(made + 1);
	size_t named = 0;

	made_init(made);
	made->sections[MADE_SYMTAB].sh_offset = symbols_at;
	made->sections[MADE_SYMTAB].sh_size = SYMBOLS * sizeof(Elf64_Sym);
	made->sections[MADE_STRTAB].sh_offset = sizeof(*made);
	made->sections[MADE_STRTAB].sh_size = SYMBOLS + EACH + 1;
	memset(texts, 'a', SYMBOLS + EACH);
	texts[SYMBOLS + EACH] = '\0';
	for (size_t i = 0; i < SYMBOLS; i++) {
		const Elf64_Sym symbol = { .st_name = (uint32_t)i,
					   .st_info = GLOBAL(STT_FUNC),
					   .st_shndx = MADE_TEXT,
					   .st_value = 0x1000 + i,
					   .st_size = 1 };

		memcpy((char *)made + symbols_at + i * sizeof(symbol), &symbol, sizeof(symbol));
		addresses[i] = 0x1000 + i;
	}
	names = names_in(made, len, addresses, SYMBOLS);
	for (size_t i = 0; i < SYMBOLS; i++) {
		named += parsed_names_text(&names, i) != NULL;
		cr_assert_eq(names.names[i].begin, addresses[i]);
	}
	cr_expect_eq(named, TEXTS);
	cr_expect_eq(names.no_room, SYMBOLS - named);
}

Test(parsed, tables_of_files_without_frame_information_are_none_but_have_segments)
{
	const struct parser_question question = { .what = PARSER_TABLE };
	union parser_shared *shared = shared_make();
	struct parser_answer answer = { 0 };
	struct unwind_table table;
	struct made made;

	made_init(&made);
	made_header(&made, PT_LOAD, 0x1000, 0x100);
	cr_assert_eq(parser_read(&question, &made, sizeof(made), shared, &answer), 0);
	cr_expect(parsed_check(&answer));
	cr_expect_eq(answer.table.reason, PARSER_NO_FRAMES);
	cr_expect_eq(answer.table.program.segments_len, 1);
	cr_expect_eq(parsed_table(&answer, shared, &table), -ENODATA);
}

/* --- answers of a parser that is not ours ---------------------------------------------------- */

static const uint64_t asked[] = { 0x1000, 0x2000 };

/* Two names, "one" and "two". */
static union parser_shared *names_shared(struct parser_answer *answer)
{
	static const char texts[] = "\0one\0two";
	union parser_shared *shared = shared_make();

	*answer = (struct parser_answer){ .what = PARSER_NAMES,
					  .names.texts_bytes = sizeof(texts) };
	memcpy(shared->names.texts, texts, sizeof(texts));
	shared->names.names[0] = (struct name){ .text = 1, .bytes = 3, .begin = 0x1000 };
	shared->names.names[1] = (struct name){ .text = 5, .bytes = 3, .begin = 0x1800 };
	return shared;
}

static int take(const struct parser_answer *answer, const union parser_shared *shared)
{
	struct parsed_names names;
	int r = parsed_names(answer, shared, asked, 2, &names);

	if (!r)
		parsed_names_free(&names);
	return r;
}

Test(parsed, names_are_copied)
{
	_cleanup_(parsed_names_free) struct parsed_names names;
	struct parser_answer answer;
	union parser_shared *shared = names_shared(&answer);

	cr_assert_eq(parsed_names(&answer, shared, asked, 2, &names), 0);
	memset(&shared->names, 0xff, sizeof(shared->names));
	cr_expect_str_eq(name_in(&names, 0), "one");
	cr_expect_str_eq(name_in(&names, 1), "two");
	cr_expect_eq(names.names[1].begin, 0x1800);
}

Test(parsed, names_are_checked)
{
	static const struct {
		const char *what;
		struct name name;
	} rows[] = {
		{ "behind all texts", { .text = 9, .bytes = 1 } },
		{ "far behind all texts", { .text = UINT32_MAX, .bytes = 1 } },
		{ "to the end of all texts", { .text = 5, .bytes = 4 } },
		{ "beyond the end of all texts", { .text = 5, .bytes = 500 } },
		{ "without end", { .text = 5, .bytes = UINT32_MAX } },
		{ "shorter than its text", { .text = 5, .bytes = 2 } },
		{ "of two texts", { .text = 1, .bytes = 7 } },
		{ "empty", { .text = 4, .bytes = 0 } },
		{ "none, with a length", { .text = 0, .bytes = 1 } },
		{ "behind its address", { .text = 5, .bytes = 3, .begin = 0x2001 } },
	};
	struct parser_answer answer;
	union parser_shared *shared = names_shared(&answer);

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		shared->names.names[1] = rows[i].name;
		cr_expect_eq(take(&answer, shared), -EPROTO, "%s", rows[i].what);
	}
	shared->names.names[1] = (struct name){ .begin = 0x2000 };
	cr_expect_eq(take(&answer, shared), 0);
}

Test(parsed, texts_are_checked)
{
	struct parser_answer answer;
	union parser_shared *shared = names_shared(&answer);

	shared->names.texts[6] = '\n';
	cr_expect_eq(take(&answer, shared), -EPROTO);
	shared->names.texts[6] = (char)0xff;
	cr_expect_eq(take(&answer, shared), -EPROTO);
	shared->names.texts[6] = 'w';
	cr_expect_eq(take(&answer, shared), 0);
	answer.names.texts_bytes--;
	cr_expect_eq(take(&answer, shared), -EPROTO, "the last has no end");
	answer.names.texts_bytes = 0;
	cr_expect_eq(take(&answer, shared), -EPROTO);
	answer.names.texts_bytes = NAMES_TEXTS_BYTES + 1;
	cr_expect_eq(take(&answer, shared), -EPROTO);
}

Test(parsed, names_have_a_length)
{
	struct parser_answer answer;
	union parser_shared *shared = names_shared(&answer);

	memset(shared->names.texts, 'a', 600);
	answer.names.texts_bytes = 601;
	shared->names.names[0] = (struct name){ .text = 600 - NAME_BYTES_MAX,
						.bytes = NAME_BYTES_MAX };
	shared->names.names[1] = (struct name){ 0 };
	cr_expect_eq(take(&answer, shared), 0);
	shared->names.names[0].text--;
	shared->names.names[0].bytes++;
	cr_expect_eq(take(&answer, shared), -EPROTO);
}

Test(parsed, more_names_than_can_be_asked_are_not_taken)
{
	static uint64_t addresses[NAMES_MAX + 1];
	struct parser_answer answer;
	union parser_shared *shared = names_shared(&answer);
	struct parsed_names names;

	cr_expect_eq(parsed_names(&answer, shared, addresses, NAMES_MAX + 1, &names), -EPROTO);
}

Test(parsed, answers_are_checked)
{
	static const struct parser_answer right = { .what = PARSER_TABLE,
						    .table = { .rows = 1, .rules = 1 } };
	union parser_shared *shared = shared_make();
	struct parser_answer answer = right;
	struct unwind_table table;

	cr_expect(parsed_check(&answer));
	answer.what = PARSER_NAMES;
	cr_expect_not(parsed_check(&answer), "no texts");
	cr_expect_eq(parsed_table(&answer, shared, &table), -EPROTO);
	answer.what = PARSER_NAMES + 1;
	cr_expect_not(parsed_check(&answer));
	answer = right;
	cr_expect_eq(take(&answer, shared), -EPROTO, "an answer to another question");
	answer.table.rows = UNWIND_ROWS_MAX + 1;
	cr_expect_not(parsed_check(&answer));
	answer = right;
	answer.table.rules = UNWIND_RULES_MAX + 1;
	cr_expect_not(parsed_check(&answer));
	answer = right;
	answer.table.rules = 0;
	cr_expect_not(parsed_check(&answer));
	answer = right;
	answer.table.rows = 0;
	cr_expect_not(parsed_check(&answer));
	answer = right;
	answer.table.reason = PARSER_NO_FRAMES;
	cr_expect_not(parsed_check(&answer), "rows of no table");
	answer.table.rows = answer.table.rules = 0;
	cr_expect(parsed_check(&answer));
	cr_expect_eq(parsed_table(&answer, shared, &table), -ENODATA);
	answer.table.reason = PARSER_REASONS;
	cr_expect_not(parsed_check(&answer));
	answer = right;
	answer.table.program.segments_len = PROGRAM_SEGMENTS_MAX + 1;
	cr_expect_not(parsed_check(&answer));
}

Test(parsed, tables_are_copied_as_they_are)
{
	_cleanup_(unwind_table_free) struct unwind_table table = { 0 };
	const struct parser_answer answer = { .what = PARSER_TABLE,
					      .table = { .rows = UNWIND_ROWS_MAX,
							 .rules = UNWIND_RULES_MAX } };
	union parser_shared *shared = shared_make();

	shared->table.rows[UNWIND_ROWS_MAX - 1].address = 7;
	shared->table.rules[UNWIND_RULES_MAX - 1].kind = UINT32_MAX;
	cr_assert_eq(parsed_table(&answer, shared, &table), 0);
	cr_expect_eq(table.rows[UNWIND_ROWS_MAX - 1].address, 7);
	cr_expect_eq(table.rules[UNWIND_RULES_MAX - 1].kind, UINT32_MAX);
}
