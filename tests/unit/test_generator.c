/* SPDX-License-Identifier: Apache-2.0 */
/* What programs that generate code export, and where V8 has its builtins: in images made up. */
#include "unwinding.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/elf_image.h"
#include "unwind/generator.h"
#include "unwind/table.h"

#define V8 "_ZN2v86Script3RunENS_5LocalINS_7ContextEEE"
#define HOTSPOT "gHotSpotVMStructs"
#define CPYTHON "PyUnstable_WritePerfMapEntry"
#define TEXT 0x800U /* that .text begins at */
#define FUNCTION 0x1000U /* the only one that frame information tells of; 16 bytes */
#define GAP (256U << 10)

static const char names[] = "\0.names\0.text\0.eh_frame\0.dynsym\0.dynstr";
enum { NAMES_AT = 1, TEXT_AT = 8, FRAMES_AT = 14, SYMBOLS_AT = 24, TEXTS_AT = 32 };
enum {
	NONE,
	TEXT_SECTION,
	FRAMES_SECTION,
	SYMBOLS_SECTION,
	TEXTS_SECTION,
	NAMES_SECTION,
	SECTIONS
};

/* A CIE of x86-64, with the CFA at rsp + 8, and a function. */
static const uint8_t frames[] = { TO32(20), TO32(0), 1, 'z',  'R',      0,        1,
				  0x78,     16,      1, 0x03, 0x0c,     7,        8,
				  0x90,     1,       0, 0,    TO32(16), TO32(28), TO32(FUNCTION),
				  TO32(16), 0,       0, 0,    0 };

struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[SECTIONS];
	char names[64];
	uint8_t frames[sizeof(frames)];
	Elf64_Sym symbols[3];
	char texts[128];
};

static void section_set(struct image *image, int index, uint32_t name, uint32_t type, size_t at,
			size_t bytes)
{
	image->sections[index] =
		(Elf64_Shdr){ .sh_name = name, .sh_type = type, .sh_offset = at, .sh_size = bytes };
}

/* It has @symbol, in the section @section. */
static struct image image_with(const char *symbol, uint16_t section, uint64_t text_bytes)
{
	struct image image = {
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT },
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_shoff = offsetof(struct image, sections),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = SECTIONS,
			.e_shstrndx = NAMES_SECTION,
		},
		.symbols[2] = { .st_name = 1, .st_shndx = section },
	};

	section_set(&image, TEXT_SECTION, TEXT_AT, SHT_PROGBITS, 0, text_bytes);
	image.sections[TEXT_SECTION].sh_addr = TEXT;
	section_set(&image, FRAMES_SECTION, FRAMES_AT, SHT_PROGBITS, offsetof(struct image, frames),
		    sizeof(frames));
	section_set(&image, SYMBOLS_SECTION, SYMBOLS_AT, SHT_DYNSYM,
		    offsetof(struct image, symbols), sizeof(image.symbols));
	image.sections[SYMBOLS_SECTION].sh_link = TEXTS_SECTION;
	section_set(&image, TEXTS_SECTION, TEXTS_AT, SHT_STRTAB, offsetof(struct image, texts),
		    strlen(symbol) + 2);
	section_set(&image, NAMES_SECTION, NAMES_AT, SHT_STRTAB, offsetof(struct image, names),
		    sizeof(image.names));
	memcpy(image.names, names, sizeof(names));
	memcpy(image.frames, frames, sizeof(frames));
	memcpy(image.texts + 1, symbol, strlen(symbol));
	return image;
}

static enum generator found_in(const struct image *image)
{
	_cleanup_(elf_image_close) struct elf_image elf = { 0 };

	cr_assert_eq(elf_image_open(image, sizeof(*image), &elf), 0);
	return generator_find(&elf);
}

static struct unwind_table made_of(const struct image *image)
{
	struct unwind_table table;

	cr_assert_eq(unwind_table_make(image, sizeof(*image), &table), 0);
	return table;
}

static void expect_builtins(const struct unwind_table *table, uint64_t address, bool builtins)
{
	const struct unwind_rule rule = generator_rule(true), none = { 0 };

	cr_expect_arr_eq(unwind_table_find(table, address), builtins ? &rule : &none, sizeof(rule),
			 "%#lx", address);
}

Test(generator, is_known_by_what_it_exports)
{
	static const struct {
		const char *symbol;
		uint16_t section;
		enum generator generator;
	} cases[] = {
		{ V8, TEXT_SECTION, GENERATOR_V8 },
		{ HOTSPOT, TEXT_SECTION, GENERATOR_HOTSPOT },
		{ CPYTHON, TEXT_SECTION, GENERATOR_CPYTHON },
		{ CPYTHON, SHN_UNDEF, GENERATOR_NONE },
		{ V8, SHN_UNDEF, GENERATOR_NONE },
		{ HOTSPOT, SHN_UNDEF, GENERATOR_NONE },
		{ HOTSPOT "x", TEXT_SECTION, GENERATOR_NONE },
		{ "x" HOTSPOT, TEXT_SECTION, GENERATOR_NONE },
		{ "", TEXT_SECTION, GENERATOR_NONE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct image image = image_with(cases[i].symbol, cases[i].section, GAP);

		cr_expect_eq(found_in(&image), cases[i].generator, "%zu", i);
	}
}

Test(generator, is_none_where_the_image_does_not_say_it)
{
	struct image image = image_with(HOTSPOT, TEXT_SECTION, GAP);

	image.sections[TEXTS_SECTION].sh_size--;
	cr_expect_eq(found_in(&image), GENERATOR_NONE, "the name has no end");
	image = image_with(HOTSPOT, TEXT_SECTION, GAP);
	image.symbols[2].st_name = UINT32_MAX;
	cr_expect_eq(found_in(&image), GENERATOR_NONE);
	image = image_with(HOTSPOT, TEXT_SECTION, GAP);
	image.sections[SYMBOLS_SECTION].sh_link = SECTIONS;
	cr_expect_eq(found_in(&image), GENERATOR_NONE);
	image = image_with(HOTSPOT, TEXT_SECTION, GAP);
	image.sections[SYMBOLS_SECTION].sh_size--;
	cr_expect_eq(found_in(&image), GENERATOR_NONE, "the symbol is cut");
	image.sections[SYMBOLS_SECTION].sh_offset = UINT64_MAX;
	cr_expect_eq(found_in(&image), GENERATOR_NONE);
}

Test(generator, has_its_builtins_where_no_frame_information_is)
{
	const uint64_t end = FUNCTION + 16 + GAP;
	struct image image = image_with(V8, TEXT_SECTION, end - TEXT);
	struct unwind_table table = made_of(&image);

	expect_builtins(&table, FUNCTION - 1, false);
	expect_offset(&table, FUNCTION, 8);
	expect_offset(&table, FUNCTION + 15, 8);
	expect_builtins(&table, FUNCTION + 16, true);
	expect_builtins(&table, end - 1, true);
	expect_builtins(&table, end, false);
	unwind_table_free(&table);
}

Test(generator, may_have_them_before_all_others)
{
	struct image image = image_with(V8, TEXT_SECTION, 0);
	struct unwind_table table;

	memcpy(image.frames + 32, (uint8_t[]){ TO32(TEXT + GAP) }, 4);
	image.sections[TEXT_SECTION].sh_size = 2 * GAP - 1;
	table = made_of(&image);
	expect_builtins(&table, TEXT - 1, false);
	expect_builtins(&table, TEXT, true);
	expect_builtins(&table, TEXT + GAP - 1, true);
	expect_offset(&table, TEXT + GAP, 8);
	expect_builtins(&table, TEXT + GAP + 16, false);
	unwind_table_free(&table);
}

Test(generator, leaves_alone_what_is_none)
{
	struct image others[] = {
		image_with("other", TEXT_SECTION, 2 * GAP),
		image_with(HOTSPOT, TEXT_SECTION, 2 * GAP),
		image_with(CPYTHON, TEXT_SECTION, 2 * GAP),
		image_with(V8, SHN_UNDEF, 2 * GAP),
		image_with(V8, TEXT_SECTION, FUNCTION + 16 + GAP - 1 - TEXT),
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct unwind_table table = made_of(&others[i]);

		expect_offset(&table, FUNCTION, 8);
		expect_builtins(&table, FUNCTION + 16, false);
		expect_builtins(&table, FUNCTION + GAP / 2, false);
		unwind_table_free(&table);
	}
}

Test(generator, of_arm64_has_builtins_that_are_not_followed)
{
	struct image image = image_with(V8, TEXT_SECTION, 2 * GAP);
	struct unwind_table table;

	image.header.e_machine = EM_AARCH64;
	image.frames[14] = 30; /* the return address */
	image.frames[18] = 31; /* the stack pointer */
	image.frames[20] = 0x9e;
	table = made_of(&image);
	cr_expect_eq(found_in(&image), GENERATOR_V8);
	expect_offset(&table, FUNCTION, 8);
	expect_builtins(&table, FUNCTION + 16, false);
	unwind_table_free(&table);
}

Test(generator, may_say_that_its_code_is_anywhere)
{
	struct image image = image_with(V8, TEXT_SECTION, UINT64_MAX - TEXT);
	struct unwind_table table = made_of(&image);

	expect_builtins(&table, UINT64_MAX - 1, true);
	unwind_table_free(&table);
	image = image_with(V8, TEXT_SECTION, UINT64_MAX);
	table = made_of(&image);
	expect_builtins(&table, FUNCTION + GAP, false);
	unwind_table_free(&table);
}
