/* SPDX-License-Identifier: Apache-2.0 */
/* Where images of ELF files say that their frame information is. Those made up have no code. */
#include "unwinding.h"

#include <elf.h>
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/elf_image.h"
#include "unwind/image.h"
#include "unwind/table.h"

#define ADDRESS 0x10000 /* that the section is linked at */
#define SECTIONS_MAX 4096 /* that are looked at, behind the first, which is none */

static const char names[] = "\0.names\0.debug_frame\0.eh_frame";
#define NAMES_AT 1
#define FRAMES_AT 21
#define DEBUG_AT 8
#define DEBUG_BYTES_MAX 256

/* A CIE and a function at 0x1000 of arm64: the CFA is sp + 32, and x29 and x30 are saved below. */
static const uint8_t frames[] = { TO32(20),   TO32(0), 1,    'z',  'R',      0,        4,
				  0x78,       30,      1,    0x03, 0x0c,     31,       32,
				  0x9d,       4,       0x9e, 3,    TO32(16), TO32(28), TO32(0x1000),
				  TO32(0x10), 0,       0,    0,    0 };

/* A header, names, sections of which the one at @index is .eh_frame, and its bytes at the end. */
struct image {
	uint8_t *bytes;
	size_t len;
	Elf64_Ehdr *header;
	Elf64_Shdr *section; /* .eh_frame */
};

static void image_free(struct image *image)
{
	free(image->bytes);
}

static struct image image_with(uint16_t machine, uint16_t index)
{
	const size_t sections_at = sizeof(Elf64_Ehdr) + 32;
	const size_t frames_at = sections_at + (index + 2UL) * sizeof(Elf64_Shdr);
	struct image image = { .len = frames_at + sizeof(frames) };
	Elf64_Shdr *sections;

	image.bytes = calloc(1, image.len + DEBUG_BYTES_MAX);
	cr_assert(image.bytes);
	image.header = (Elf64_Ehdr *)image.bytes;
	*image.header = (Elf64_Ehdr){ .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
						   ELFDATA2LSB, EV_CURRENT },
				      .e_type = ET_DYN,
				      .e_machine = machine,
				      .e_version = EV_CURRENT,
				      .e_shoff = sections_at,
				      .e_ehsize = sizeof(Elf64_Ehdr),
				      .e_shentsize = sizeof(Elf64_Shdr),
				      .e_shnum = (uint16_t)(index + 2),
				      .e_shstrndx = (uint16_t)(index + 1) };
	memcpy(image.bytes + sizeof(Elf64_Ehdr), names, sizeof(names));
	sections = (Elf64_Shdr *)(image.bytes + sections_at);
	for (uint16_t i = 1; i < index; i++)
		sections[i].sh_type = SHT_PROGBITS;
	image.section = &sections[index];
	*image.section = (Elf64_Shdr){ .sh_name = FRAMES_AT,
				       .sh_type = SHT_PROGBITS,
				       .sh_addr = ADDRESS,
				       .sh_offset = frames_at,
				       .sh_size = sizeof(frames) };
	sections[index + 1] = (Elf64_Shdr){ .sh_name = NAMES_AT,
					    .sh_type = SHT_STRTAB,
					    .sh_offset = sizeof(Elf64_Ehdr),
					    .sh_size = sizeof(names) };
	memcpy(image.bytes + frames_at, frames, sizeof(frames));
	return image;
}

static int find(const struct image *image, struct frames_section *section)
{
	_cleanup_(elf_image_close) struct elf_image elf = { 0 };
	int r = elf_image_open(image->bytes, image->len, &elf);

	return r ? r : image_frames(&elf, section);
}

Test(unwind_image, has_a_section_of_frame_information)
{
	_cleanup_(image_free) struct image image = image_with(EM_AARCH64, 1);
	struct frames_section section;

	cr_assert_eq(find(&image, &section), 0);
	cr_expect_eq(section.bytes, image.bytes + image.len - sizeof(frames));
	cr_expect_eq(section.len, sizeof(frames));
	cr_expect_eq(section.address, ADDRESS);
}

Test(unwind_image, names_registers_by_the_numbers_of_its_machine)
{
	_cleanup_(image_free) struct image image = image_with(EM_AARCH64, 1);
	const struct unwind_rule wanted = { .kind = UNWIND_CFA,
					    .fp_place = UNWIND_AT_CFA,
					    .ra_place = UNWIND_AT_CFA,
					    .cfa_offset = 32,
					    .fp_offset = -32,
					    .ra_offset = -24 };
	struct unwind_table table;

	cr_assert_eq(unwind_table_make(image.bytes, image.len, &table), 0);
	cr_expect_arr_eq(unwind_table_find(&table, 0x1000), &wanted, sizeof(wanted));
	unwind_table_free(&table);
	image.header->e_machine = EM_X86_64;
	cr_expect_eq(unwind_table_make(image.bytes, image.len, &table), -ENODATA,
		     "there register 30 is another");
}

Test(unwind_image, that_libelf_does_not_know_is_none)
{
	_cleanup_(image_free) struct image image = image_with(EM_AARCH64, 1);
	struct frames_section section;

	image.header->e_ident[EI_VERSION] = EV_NONE;
	cr_expect_eq(find(&image, &section), -ENOEXEC);
}

Test(unwind_image, has_no_bytes_of_a_section_that_is_not_in_the_file)
{
	_cleanup_(image_free) struct image image = image_with(EM_AARCH64, 1);
	const uint64_t offset = image.section->sh_offset;
	struct frames_section section;

	image.section->sh_type = SHT_NOBITS; /* as in a file of debug information */
	cr_expect_eq(find(&image, &section), -ENODATA);
	image.section->sh_type = SHT_PROGBITS;
	image.section->sh_size++;
	cr_expect_eq(find(&image, &section), -ENODATA);
	image.section->sh_size = 0;
	image.section->sh_offset = image.len + 1;
	cr_expect_eq(find(&image, &section), -ENODATA);
	image.section->sh_offset = offset;
	image.section->sh_name = NAMES_AT;
	cr_expect_eq(find(&image, &section), -ENODATA, "another name");
}

Test(unwind_image, has_no_names_where_those_are_not_in_the_file_as_they_are)
{
	_cleanup_(image_free) struct image image = image_with(EM_AARCH64, 1);
	Elf64_Shdr *of_names = image.section + 1;
	struct frames_section section;

	of_names->sh_flags = SHF_COMPRESSED;
	cr_expect_eq(find(&image, &section), -ENODATA);
	of_names->sh_flags = 0;
	of_names->sh_size--;
	cr_expect_eq(find(&image, &section), -ENODATA, "the name has no end");
	of_names->sh_size++;
	image.section->sh_flags = SHF_COMPRESSED;
	cr_expect_eq(find(&image, &section), -ENODATA);
	image.section->sh_flags = 0;
	cr_expect_eq(find(&image, &section), 0);
}

/* Each is a step of the search. */
Test(unwind_image, is_not_searched_for_ever)
{
	struct frames_section section;

	for (uint16_t index = SECTIONS_MAX - 1; index <= SECTIONS_MAX + 1; index++) {
		_cleanup_(image_free) struct image image = image_with(EM_AARCH64, index);

		cr_expect_eq(find(&image, &section), index <= SECTIONS_MAX ? 0 : -ENODATA, "%u",
			     index);
	}
}

/* --- .debug_frame ---------------------------------------------------------------------------- */

/* Of x86-64, a CIE and a function at 0x1000: the CFA is rsp + 24. */
static const uint8_t debug_frames[] = {
	TO32(16), 0xff,         0xff,    0xff,       0xff,    3,  0, 1, 0x7c,
	16,       0x0c,         7,       24,         5,       16, 2, 0, TO32(24),
	TO32(0),  TO32(0x1000), TO32(0), TO32(0x10), TO32(0), 0,  0, 0, 0
};

/* What follows the section is that in place of .eh_frame; with @header it is compressed. */
static void debug_set(struct image *image, const Elf64_Chdr *header)
{
	struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(6);
	uint8_t *to = image->bytes + image->len;
	size_t len = sizeof(debug_frames);

	cr_assert(compressor);
	if (header) {
		memcpy(to, header, sizeof(*header));
		len = libdeflate_zlib_compress(compressor, debug_frames, len, to + sizeof(*header),
					       DEBUG_BYTES_MAX - sizeof(*header));
		cr_assert(len);
		len += sizeof(*header);
	} else {
		memcpy(to, debug_frames, len);
	}
	libdeflate_free_compressor(compressor);
	image->section->sh_name = DEBUG_AT;
	image->section->sh_offset = image->len;
	image->section->sh_size = len;
	image->section->sh_flags = header ? SHF_COMPRESSED : 0;
	image->len += len;
}

static int make_debug(const struct image *image)
{
	struct unwind_table table;
	int r = unwind_table_make(image->bytes, image->len, &table);

	if (r)
		return r;
	cr_expect_eq(unwind_table_find(&table, 0x1000)->cfa_offset, 24);
	unwind_table_free(&table);
	return 0;
}

Test(unwind_image, has_debug_frame_as_it_is_or_compressed)
{
	const Elf64_Chdr header = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = sizeof(debug_frames) };
	_cleanup_(image_free) struct image plain = image_with(EM_X86_64, 1),
					   compressed = image_with(EM_X86_64, 1);

	debug_set(&plain, NULL);
	cr_expect_eq(make_debug(&plain), 0);
	debug_set(&compressed, &header);
	cr_expect_eq(make_debug(&compressed), 0);
	compressed.section->sh_size--;
	cr_expect_eq(make_debug(&compressed), -ENODATA, "its end is cut off");
	compressed.section->sh_size = sizeof(header) - 1;
	cr_expect_eq(make_debug(&compressed), -ENODATA);
}

Test(unwind_image, has_no_more_of_it_than_it_says_and_may_be)
{
	const Elf64_Chdr headers[] = {
		{ .ch_type = ELFCOMPRESS_ZLIB, .ch_size = sizeof(debug_frames) - 1 },
		{ .ch_type = ELFCOMPRESS_ZLIB, .ch_size = sizeof(debug_frames) + 1 },
		{ .ch_type = ELFCOMPRESS_ZLIB, .ch_size = 0 },
		{ .ch_type = ELFCOMPRESS_ZLIB, .ch_size = ELF_IMAGE_INFLATED_MAX + 1 },
		{ .ch_type = 2 /* zstd */, .ch_size = sizeof(debug_frames) },
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		_cleanup_(image_free) struct image image = image_with(EM_X86_64, 1);

		debug_set(&image, &headers[i]);
		cr_expect_eq(make_debug(&image), -ENODATA, "%zu", i);
	}
}
