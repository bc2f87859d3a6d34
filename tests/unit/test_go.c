/* SPDX-License-Identifier: Apache-2.0 */
/* What frame information of Go does not say. Images that are made up have no code. */
#include <criterion/criterion.h>

#include <elf.h>
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/elf_image.h"
#include "unwind/go.h"
#include "unwind/table.h"

#define TO32(n) (n) & 0xff, (n) >> 8 & 0xff, (n) >> 16 & 0xff, (n) >> 24 & 0xff
#define TO64(n) TO32(n), TO32(0)
#define FUNCTION(begin) TO32(24), TO32(0), TO64(begin), TO64(0x40), 0x44, 0x0e, 32, 0

enum { NOTHING, NAMES, LINES, FRAMES, SYMBOLS, TEXTS, SECTIONS };

/* Functions of 64 bytes from 0x1000 on, with nothing between them; each makes a frame of 24 bytes.
 */
static const char *const functions[] = {
	"main.work", "runtime.systemstack",  "runtime.goexit.abi0",
	"os.write",  "runtime.systemstack2", "runtime.sigreturn__sigaction.abi0",
};
#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))
#define AT(i) (0x1000 + 0x40 * (uint64_t)(i))

static const uint8_t common[] = { TO32(16), 0xff, 0xff, 0xff, 0xff, 3,  0, 1, 0x7c,
				  16,       0x0c, 7,    8,    5,    16, 2, 0 };

struct image {
	uint8_t *bytes;
	size_t len;
	Elf64_Ehdr *header;
	Elf64_Shdr *sections;
};

static void image_free(struct image *image)
{
	free(image->bytes);
}

/* @bytes more at the end, of section @index. */
static void section_add(struct image *image, size_t index, uint32_t type, const void *bytes,
			size_t len)
{
	memcpy(image->bytes + image->len, bytes, len);
	image->sections[index].sh_type = type;
	image->sections[index].sh_offset = image->len;
	image->sections[index].sh_size = len;
	image->len += len;
}

static void frames_add(struct image *image)
{
	uint8_t frames[sizeof(common) + 28 * FUNCTIONS];

	memcpy(frames, common, sizeof(common));
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const uint8_t function[] = { FUNCTION(AT(i)) };

		cr_assert_eq(sizeof(function), 28);
		memcpy(frames + sizeof(common) + 28 * i, function, sizeof(function));
	}
	section_add(image, FRAMES, SHT_PROGBITS, frames, sizeof(frames));
}

static void symbols_add(struct image *image)
{
	Elf64_Sym symbols[FUNCTIONS + 1] = { 0 };
	char texts[512] = "";
	size_t len = 1;

	for (size_t i = 0; i < FUNCTIONS; i++) {
		symbols[i + 1] = (Elf64_Sym){ .st_name = (uint32_t)len,
					      .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
					      .st_shndx = 1,
					      .st_value = AT(i),
					      .st_size = 0x40 };
		memcpy(texts + len, functions[i], strlen(functions[i]) + 1);
		len += strlen(functions[i]) + 1;
	}
	section_add(image, SYMBOLS, SHT_SYMTAB, symbols, sizeof(symbols));
	image->sections[SYMBOLS].sh_entsize = sizeof(*symbols);
	image->sections[SYMBOLS].sh_link = TEXTS;
	section_add(image, TEXTS, SHT_STRTAB, texts, len);
}

static struct image image_of(uint16_t machine)
{
	static const char names[] = "\0.names\0.gopclntab\0.debug_frame\0.symtab\0.strtab";
	static const uint32_t name_at[] = {
		[NAMES] = 1, [LINES] = 8, [FRAMES] = 19, [SYMBOLS] = 32, [TEXTS] = 40
	};
	struct image image = { .bytes = calloc(1, 8192), .len = 1024 };

	cr_assert(image.bytes);
	image.header = (Elf64_Ehdr *)image.bytes;
	image.sections = (Elf64_Shdr *)(image.bytes + 128);
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
		image.sections[i].sh_name = name_at[i];
	section_add(&image, NAMES, SHT_STRTAB, names, sizeof(names));
	section_add(&image, LINES, SHT_PROGBITS, "", 1);
	frames_add(&image);
	symbols_add(&image);
	return image;
}

static struct unwind_rule rule_at(const struct image *image, uint64_t address)
{
	struct unwind_table table;
	struct unwind_rule rule;

	cr_assert_eq(unwind_table_make(image->bytes, image->len, &table), 0);
	rule = *unwind_table_find(&table, address);
	unwind_table_free(&table);
	return rule;
}

Test(go, knows_functions_by_their_names_with_and_without_the_suffix_of_assembler)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64);

	cr_expect_eq(rule_at(&image, AT(1)).kind, UNWIND_SWITCH);
	cr_expect_eq(rule_at(&image, AT(2) - 1).kind, UNWIND_SWITCH);
	cr_expect_eq(rule_at(&image, AT(2)).kind, UNWIND_END);
	cr_expect_eq(rule_at(&image, AT(3) - 1).kind, UNWIND_END);
	cr_expect_eq(rule_at(&image, AT(3)).kind, UNWIND_CFA);
	cr_expect_eq(rule_at(&image, AT(4)).kind, UNWIND_CFA, "another name");
}

/* A handler returns to the first byte, and a step looks for the byte before. */
Test(go, has_the_rule_of_a_signal_from_the_byte_before_its_function_on)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64);

	cr_expect_eq(rule_at(&image, AT(5) - 2).kind, UNWIND_CFA);
	cr_expect_eq(rule_at(&image, AT(5) - 1).kind, UNWIND_SIGNAL);
	cr_expect_eq(rule_at(&image, AT(5)).kind, UNWIND_SIGNAL);
}

Test(go, keeps_frame_pointers_at_the_top_of_frames)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64);
	const struct unwind_rule without = { .kind = UNWIND_CFA,
					     .ra_place = UNWIND_AT_CFA,
					     .cfa_offset = 8,
					     .ra_offset = -8 },
				 within = { .kind = UNWIND_CFA,
					    .fp_place = UNWIND_AT_CFA,
					    .ra_place = UNWIND_AT_CFA,
					    .cfa_offset = 32,
					    .fp_offset = -16,
					    .ra_offset = -8 };
	struct unwind_rule rule = rule_at(&image, AT(0));

	cr_expect_arr_eq(&rule, &without, sizeof(rule));
	rule = rule_at(&image, AT(0) + 4);
	cr_expect_arr_eq(&rule, &within, sizeof(rule));
}

Test(go, on_arm64_has_no_rule_where_another_stack_begins)
{
	_cleanup_(image_free) struct image image = image_of(EM_AARCH64);
	const struct cfi_common gos = { .data_factor = -4 };
	struct go_code go;
	struct unwind_rule rule = { .kind = UNWIND_CFA, .cfa_offset = 32 };

	cr_assert_eq(go_find(image.bytes, image.len, &go), 0);
	cr_expect(go.is_go && go.arm64);
	cr_expect(go_rule(&go, &gos, AT(0), &rule));
	cr_expect_eq(rule.fp_place, UNWIND_KEPT);
	cr_expect(!go_rule(&go, &gos, AT(1), &rule));
	cr_expect_eq(rule.kind, UNWIND_NONE);
	cr_expect(go_rule(&go, &gos, AT(2), &rule));
	cr_expect_eq(rule.kind, UNWIND_END);
	cr_expect(!go_rule(&go, &gos, AT(5), &rule));
}

Test(go, is_known_by_its_table_of_lines)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64);
	struct unwind_rule rule;

	image.sections[LINES].sh_name = 1;
	cr_expect_eq(rule_at(&image, AT(1)).kind, UNWIND_CFA, "a function of C by that name");
	rule = rule_at(&image, AT(0) + 4);
	cr_expect_eq(rule.fp_place, UNWIND_KEPT);
}

/* Without symbols goroutines begin nowhere: nothing is told rather than what may be wrong. */
Test(go, without_symbols_has_no_rules)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64);

	image.sections[SYMBOLS].sh_link = SECTIONS;
	cr_expect_eq(rule_at(&image, AT(0)).kind, UNWIND_NONE);
	image.sections[SYMBOLS].sh_link = TEXTS;
	image.sections[SYMBOLS].sh_entsize = 16;
	cr_expect_eq(rule_at(&image, AT(0)).kind, UNWIND_NONE);
	image.sections[SYMBOLS].sh_entsize = sizeof(Elf64_Sym);
	cr_expect_eq(rule_at(&image, AT(0)).kind, UNWIND_CFA);
	image.sections[TEXTS].sh_size = 11; /* up to the first name, whose end is cut off */
	cr_expect_eq(rule_at(&image, AT(0)).kind, UNWIND_NONE);
}

/* C, of which the linker has taken what its compiler says. */
Test(go, leaves_what_another_compiler_has_written)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64);
	struct unwind_rule rule;

	image.bytes[image.sections[FRAMES].sh_offset + 11] = 0x78; /* offsets are counted in -8 */
	cr_expect_eq(rule_at(&image, AT(1)).kind, UNWIND_CFA);
	rule = rule_at(&image, AT(0) + 4);
	cr_expect_eq(rule.cfa_offset, 32);
	cr_expect_eq(rule.fp_place, UNWIND_KEPT);
}

/* As Go compresses it. */
Test(go, has_frame_information_that_is_compressed)
{
	_cleanup_(image_free) struct image image = image_of(EM_X86_64);
	Elf64_Shdr *section = &image.sections[FRAMES];
	Elf64_Chdr header = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = section->sh_size };
	uint8_t packed[1024];
	struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(6);
	size_t len;
	struct unwind_table table;

	len = libdeflate_zlib_compress(compressor, image.bytes + section->sh_offset,
				       section->sh_size, packed + sizeof(header),
				       sizeof(packed) - sizeof(header));
	libdeflate_free_compressor(compressor);
	cr_assert(len);
	memcpy(packed, &header, sizeof(header));
	section_add(&image, FRAMES, SHT_PROGBITS, packed, sizeof(header) + len);
	section->sh_flags = SHF_COMPRESSED;
	cr_expect_eq(rule_at(&image, AT(1)).kind, UNWIND_SWITCH);
	cr_expect_eq(rule_at(&image, AT(0) + 4).cfa_offset, 32);

	section->sh_size--;
	cr_expect_eq(unwind_table_make(image.bytes, image.len, &table), -ENODATA,
		     "its end is cut off");
	section->sh_size = sizeof(header) - 1;
	cr_expect_eq(unwind_table_make(image.bytes, image.len, &table), -ENODATA);
	section->sh_size = sizeof(header) + len;
	header.ch_size--;
	memcpy(image.bytes + section->sh_offset, &header, sizeof(header));
	cr_expect_eq(unwind_table_make(image.bytes, image.len, &table), -ENODATA,
		     "more than it says");
	header.ch_size = ELF_IMAGE_INFLATED_MAX + 1;
	memcpy(image.bytes + section->sh_offset, &header, sizeof(header));
	cr_expect_eq(unwind_table_make(image.bytes, image.len, &table), -ENODATA);
	header.ch_type = 2; /* zstd */
	memcpy(image.bytes + section->sh_offset, &header, sizeof(header));
	cr_expect_eq(unwind_table_make(image.bytes, image.len, &table), -ENODATA);
}
