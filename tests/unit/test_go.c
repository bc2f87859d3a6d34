/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of Go, by the table for its own tracebacks. Images that are made up have no code. */
#include <criterion/criterion.h>

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/go.h"
#include "unwind/pclntab.h"
#include "unwind/table.h"

enum { NOTHING, NAMES, LINES, CODE, INFO, SECTIONS };

#define TEXT 0x401000UL
#define AT(i) (TEXT + 0x40 * (uint64_t)(i)) /* functions of 64 bytes, with nothing between them */
#define HEADER 72
#define QUANTUM 1
#define MODULE_NAME 39
#define MERGED_NAME 50

/* After 4 bytes there is a frame of 24 bytes, and from 60 on none. */
#define STEPS "\x02\x04\x30\x38\x2f\x04\x00"

static const struct {
	const char *name;
	unsigned char flags;
	bool steps;
} functions[] = {
	{ "main.work", 0, true },
	{ "runtime.systemstack", PCLNTAB_SP_WRITE, true },
	{ "runtime.goexit", PCLNTAB_TOP_FRAME, true },
	{ "runtime.mcall", PCLNTAB_SP_WRITE, true },
	{ "runtime.systemstack2", PCLNTAB_SP_WRITE, true },
	{ "os.write", 0, true },
	{ "runtime.sigreturn__sigaction", 0, true },
	{ "type..eq.x", 0, false },
	{ "runtime.sigtramp", PCLNTAB_TOP_FRAME, true },
};
#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

struct image {
	uint8_t *bytes;
	size_t len;
	Elf64_Ehdr *header;
	Elf64_Shdr *sections;
	uint8_t *table;
};

static void image_free(struct image *image)
{
	free(image->bytes);
}

static void put(uint8_t *at, uint64_t number, size_t bytes)
{
	memcpy(at, &number, bytes);
}

static void words_put(uint8_t *at, const uint64_t *words, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put(at + 8 * i, words[i], 8);
}

/* As Go 1.18 writes it, or as 1.20. Returns its bytes. */
static size_t table_put(uint8_t *table, bool later)
{
	const size_t names = HEADER, steps = names + 512, list = steps + 64,
		     entries = list + 8 * FUNCTIONS + 4;
	const size_t entry_bytes = later ? 44 : 40;
	const uint64_t words[] = { FUNCTIONS, 0, TEXT, names, 0, 0, steps, list };
	size_t name = 1;

	put(table, later ? 0xfffffff1 : 0xfffffff0, 4);
	table[6] = QUANTUM;
	table[7] = 8;
	words_put(table + 8, words, sizeof(words) / sizeof(words[0]));
	memcpy(table + steps + 1, STEPS, sizeof(STEPS));
	for (size_t i = 0; i < FUNCTIONS; i++) {
		uint8_t *entry = table + entries + entry_bytes * i;

		put(table + list + 8 * i, AT(i) - TEXT, 4);
		put(table + list + 8 * i + 4, entries - list + entry_bytes * i, 4);
		put(entry, AT(i) - TEXT, 4);
		put(entry + 4, name, 4);
		put(entry + 16, functions[i].steps, 4);
		entry[later ? 41 : 37] = functions[i].flags;
		memcpy(table + names + name, functions[i].name, strlen(functions[i].name) + 1);
		name += strlen(functions[i].name) + 1;
	}
	put(table + list + 8 * FUNCTIONS, AT(FUNCTIONS) - TEXT, 4);
	return entries + entry_bytes * FUNCTIONS;
}

static struct image image_of(uint16_t machine, bool later)
{
	static const char names[] =
		"\0.names\0.gopclntab\0.text\0.go.buildinfo\0.go.module\0.data.rel.ro";
	static const uint32_t name_at[] = { [NAMES] = 1, [LINES] = 8, [CODE] = 19, [INFO] = 25 };
	struct image image = { .bytes = calloc(1, 4096) };

	cr_assert(image.bytes);
	image.header = (Elf64_Ehdr *)image.bytes;
	image.sections = (Elf64_Shdr *)(image.bytes + 128);
	image.table = image.bytes + 1024;
	*image.header = (Elf64_Ehdr){ .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
						   ELFDATA2LSB, EV_CURRENT },
				      .e_type = ET_EXEC,
				      .e_machine = machine,
				      .e_version = EV_CURRENT,
				      .e_shoff = 128,
				      .e_ehsize = sizeof(Elf64_Ehdr),
				      .e_shentsize = sizeof(Elf64_Shdr),
				      .e_shnum = SECTIONS,
				      .e_shstrndx = NAMES };
	for (size_t i = 1; i < SECTIONS; i++)
		image.sections[i] = (Elf64_Shdr){ .sh_name = name_at[i], .sh_type = SHT_PROGBITS };
	image.sections[NAMES].sh_offset = 512;
	image.sections[NAMES].sh_size = sizeof(names);
	memcpy(image.bytes + 512, names, sizeof(names));
	image.sections[LINES].sh_offset = 1024;
	image.sections[LINES].sh_size = table_put(image.table, later);
	image.sections[CODE].sh_type = SHT_NOBITS;
	image.sections[CODE].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	image.sections[CODE].sh_addr = TEXT;
	image.sections[CODE].sh_size = AT(FUNCTIONS) - TEXT;
	image.len = 1024 + image.sections[LINES].sh_size;
	return image;
}

static int make(const struct image *image, struct unwind_table *table)
{
	return unwind_table_make(image->bytes, image->len, table);
}

static struct unwind_rule rule_at(const struct image *image, uint64_t address)
{
	struct unwind_table table;
	struct unwind_rule rule;

	cr_assert_eq(make(image, &table), 0);
	rule = *unwind_table_find(&table, address);
	unwind_table_free(&table);
	return rule;
}

static void expect_rule(const struct image *image, uint64_t address,
			const struct unwind_rule *wanted)
{
	const struct unwind_rule rule = rule_at(image, address);

	cr_expect_arr_eq(&rule, wanted, sizeof(rule), "%#lx: kind %u, cfa %d, fp %u %d, ra %u %d",
			 address, rule.kind, rule.cfa_offset, rule.fp_place, rule.fp_offset,
			 rule.ra_place, rule.ra_offset);
}

static const struct unwind_rule frameless = {
	.kind = UNWIND_CFA, .ra_place = UNWIND_AT_CFA, .cfa_offset = 8, .ra_offset = -8
};
static const struct unwind_rule framed = { .kind = UNWIND_CFA,
					   .fp_place = UNWIND_AT_CFA,
					   .ra_place = UNWIND_AT_CFA,
					   .cfa_offset = 32,
					   .fp_offset = -16,
					   .ra_offset = -8 };

/* Up to the last byte of a function, behind which the next one begins. */
static void expect_steps(const struct image *image, uint64_t begin)
{
	expect_rule(image, begin, &frameless);
	expect_rule(image, begin + 3, &frameless);
	expect_rule(image, begin + 4, &framed);
	expect_rule(image, begin + 59, &framed);
	expect_rule(image, begin + 60, &frameless);
	expect_rule(image, begin + 63, &frameless);
}

Test(go, functions_move_the_stack_pointer_by_steps)
{
	_cleanup_(image_free) struct image older = image_of(EM_X86_64, false),
					   later = image_of(EM_X86_64, true);

	expect_steps(&older, AT(0));
	expect_steps(&later, AT(0));
}

Test(go, functions_of_arm64_have_both_registers_at_the_bottom_of_their_frames)
{
	_cleanup_(image_free) struct image image = image_of(EM_AARCH64, true);
	const struct unwind_rule leaf = { .kind = UNWIND_CFA }, frame = { .kind = UNWIND_CFA,
									  .fp_place = UNWIND_AT_CFA,
									  .ra_place = UNWIND_AT_CFA,
									  .cfa_offset = 24,
									  .fp_offset = -32,
									  .ra_offset = -24 };

	expect_rule(&image, AT(0), &leaf);
	expect_rule(&image, AT(0) + 4, &frame);
}

Test(go, knows_where_stacks_begin_and_go_on_elsewhere)
{
	for (int later = 0; later < 2; later++) {
		_cleanup_(image_free) struct image image = image_of(EM_X86_64, later);

		cr_expect_eq(rule_at(&image, AT(1)).kind, UNWIND_SWITCH);
		cr_expect_eq(rule_at(&image, AT(2) - 1).kind, UNWIND_SWITCH);
		cr_expect_eq(rule_at(&image, AT(2)).kind, UNWIND_END, "it says so");
		cr_expect_eq(rule_at(&image, AT(3)).kind, UNWIND_END, "by its name");
		cr_expect_eq(rule_at(&image, AT(4)).kind, UNWIND_NONE, "it sets the stack pointer");
		cr_expect_eq(rule_at(&image, AT(7)).kind, UNWIND_NONE, "without steps");
		cr_expect_eq(rule_at(&image, AT(8)).kind, UNWIND_CFA, "a handler has a caller");
		cr_expect_eq(rule_at(&image, AT(9)).kind, UNWIND_NONE, "behind the last");
	}
}

Test(go, on_arm64_has_no_rule_where_another_stack_begins)
{
	_cleanup_(image_free) struct image image = image_of(EM_AARCH64, true);

	cr_expect_eq(rule_at(&image, AT(1)).kind, UNWIND_NONE);
	cr_expect_eq(rule_at(&image, AT(2)).kind, UNWIND_END);
	cr_expect_eq(rule_at(&image, AT(6)).kind, UNWIND_NONE);
}

/* A handler returns to the first byte, and a step looks for the byte before. */
Test(go, has_the_rule_of_a_signal_from_the_byte_before_its_function_on)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64, true);

	expect_rule(&image, AT(6) - 2, &frameless);
	cr_expect_eq(rule_at(&image, AT(6) - 1).kind, UNWIND_SIGNAL);
	cr_expect_eq(rule_at(&image, AT(6)).kind, UNWIND_SIGNAL);
	cr_expect_eq(rule_at(&image, AT(7) - 1).kind, UNWIND_SIGNAL);
}

Test(go, has_names_of_functions)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64, true);
	struct pclntab_function function;
	struct elf_image elf;
	struct pclntab table;

	cr_assert_eq(elf_image_open(image.bytes, image.len, &elf), 0);
	cr_assert_eq(pclntab_find(&elf, &table), 0);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		cr_assert(pclntab_search(&table, AT(i) + 63, &function));
		cr_expect_eq(function.begin, AT(i));
		cr_expect_eq(function.end, AT(i + 1));
		cr_expect_str_eq((const char *)function.name.at, functions[i].name);
	}
	cr_expect(!pclntab_search(&table, AT(0) - 1, &function));
	cr_expect(!pclntab_search(&table, AT(FUNCTIONS), &function));
	cr_expect(!pclntab_function(&table, FUNCTIONS, &function));
	elf_image_close(&elf);
}

/* --- what is not so -------------------------------------------------------------------------- */

Test(go, a_table_that_is_not_understood_tells_nothing)
{
	static const struct {
		size_t at;
		uint8_t byte;
	} wrong[] = {
		{ 0, 0xfa }, /* Go 1.16 */
		{ 0, 0xf2 }, /* of later */
		{ 4, 1 },      { 6, 0 },
		{ 7, 4 },      { 12, 1 }, /* more functions than there is room for */
		{ 26, 1 }, /* the text is elsewhere */
		{ 64 + 3, 1 }, /* the list is elsewhere */
	};
	struct unwind_table table;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		_cleanup_(image_free) struct image image = image_of(EM_X86_64, true);

		image.table[wrong[i].at] = wrong[i].byte;
		cr_expect_eq(make(&image, &table), -ENODATA, "%zu", i);
	}
}

Test(go, a_table_that_is_cut_off_has_the_functions_up_to_there)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64, true);
	struct unwind_table table;

	image.sections[LINES].sh_size -= 44; /* the last entry */
	expect_rule(&image, AT(0), &frameless);
	cr_assert_eq(make(&image, &table), 0);
	cr_expect_eq(table.functions_bad, 1);
	unwind_table_free(&table);
	image.sections[LINES].sh_size = HEADER - 1;
	cr_expect_eq(make(&image, &table), -ENODATA);
}

Test(go, steps_that_make_no_sense_are_no_rule)
{
	static const char *const wrong[] = {
		"\x02\x00", /* over no byte */
		"\x01\x40", /* below what it was */
		"\x80\x80\x80\x80\x20\x40", /* more than 32 bits */
		"\x82\x80\x80\x80\x80\x01\x40", /* more bytes than that takes */
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		_cleanup_(image_free) struct image image = image_of(EM_X86_64, true);

		memcpy(image.table + HEADER + 512 + 1, wrong[i], strlen(wrong[i]) + 1);
		cr_expect_eq(rule_at(&image, AT(2)).kind, UNWIND_END);
		cr_expect_eq(rule_at(&image, AT(0) + 4).kind, UNWIND_NONE, "%zu", i);
	}
}

/* The linker of Go has a section for what the runtime knows of a program, another linker has not.
 */
Test(go, since_1_26_has_the_beginning_of_its_code_elsewhere)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64, true);
	struct unwind_table table;

	put(image.table + 24, 0, 8);
	cr_expect_eq(make(&image, &table), -ENODATA);
	image.sections[INFO].sh_name = MODULE_NAME;
	image.sections[INFO].sh_offset = image.len;
	image.sections[INFO].sh_size = 23 * 8;
	put(image.bytes + image.len + 22 * 8, TEXT, 8);
	image.len += 23 * 8;
	expect_rule(&image, AT(0), &frameless);
	image.sections[INFO].sh_size--;
	cr_expect_eq(make(&image, &table), -ENODATA);
}

Test(go, is_found_among_what_another_linker_has_merged)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64, true);
	Elf64_Shdr *section = &image.sections[LINES];
	struct unwind_table table;

	section->sh_name = MERGED_NAME;
	section->sh_offset -= 64;
	section->sh_size += 64;
	memcpy(image.table - 32, image.table, 8); /* as one might begin, and does not */
	expect_rule(&image, AT(0), &frameless);
	image.sections[INFO].sh_name = NAMES;
	cr_expect_eq(make(&image, &table), -ENODATA, "it is not of Go");
}

/* What its .debug_frame says of functions that set the stack pointer is not true. */
Test(go, is_not_unwound_by_debug_frame)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64, true);
	struct elf_image elf;
	struct unwind_table table;

	image.sections[LINES].sh_name = 1;
	cr_assert_eq(elf_image_open(image.bytes, image.len, &elf), 0);
	cr_expect(go_is(&elf), "by what it says of its build");
	elf_image_close(&elf);
	cr_expect_eq(make(&image, &table), -ENODATA);
}
