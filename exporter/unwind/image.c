/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/image.h"

#include <endian.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <string.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "images are read as they are");

#define SECTIONS_MAX 4096

static void elf_end_p(Elf **elf)
{
	elf_end(*elf);
}

/* System V ABI for x86-64, figure 3.36; DWARF for the 64-bit Arm architecture, 4.1. */
static const struct cfi_machine *machine_of(const Elf64_Ehdr *header)
{
	static const struct cfi_machine x86_64 = { .sp = 7, .fp = 6, .ra = 16 };
	static const struct cfi_machine arm64 = { .sp = 31, .fp = 29, .ra = 30 };

	if (header->e_machine == EM_X86_64)
		return &x86_64;
	return header->e_machine == EM_AARCH64 ? &arm64 : NULL;
}

/*
 * libelf makes room for as many sections as the file says. Where it says so in section 0, because
 * the header has no room for the number, that may be any: no program has so many.
 */
static bool header_is_usable(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       header->e_phnum != PN_XNUM && !(header->e_shoff && !header->e_shnum);
}

/* Whether the bytes of a section are in the image as they are. */
static bool section_is_there(const GElf_Shdr *header, size_t bytes)
{
	return header->sh_type != SHT_NOBITS && !(header->sh_flags & SHF_COMPRESSED) &&
	       header->sh_offset <= bytes && header->sh_size <= bytes - header->sh_offset;
}

/*
 * The names of the sections. Not by elf_strptr(): that inflates them, and looks for the end of each
 * from the end of all.
 */
static struct reader names_of(Elf *elf, const uint8_t *image, size_t bytes)
{
	struct reader names = { image, image, false };
	GElf_Shdr header;
	size_t index;
	Elf_Scn *section;

	if (elf_getshdrstrndx(elf, &index))
		return names;
	section = elf_getscn(elf, index);
	if (!section || !gelf_getshdr(section, &header) || !section_is_there(&header, bytes))
		return names;
	names.at = image + header.sh_offset;
	names.end = names.at + header.sh_size;
	return names;
}

static bool name_is(struct reader names, size_t at, const char *name)
{
	size_t bytes = strlen(name) + 1;

	return at < reader_left(&names) && bytes <= reader_left(&names) - at &&
	       memcmp(names.at + at, name, bytes) == 0;
}

/* The header of the section called @name, whose bytes are there. */
static bool section_find(Elf *elf, const uint8_t *image, size_t bytes, const char *name,
			 GElf_Shdr *header)
{
	struct reader names = names_of(elf, image, bytes);
	Elf_Scn *section = NULL;

	for (int i = 0; i < SECTIONS_MAX; i++) {
		section = elf_nextscn(elf, section);
		if (!section)
			return false;
		if (gelf_getshdr(section, header) && name_is(names, header->sh_name, name))
			return section_is_there(header, bytes);
	}
	return false;
}

int image_frames(const void *image, size_t bytes, struct frames_section *section)
{
	__attribute__((cleanup(elf_end_p))) Elf *elf = NULL;
	Elf64_Ehdr header;
	GElf_Shdr found;

	if (bytes < sizeof(header))
		return -ENOEXEC;
	memcpy(&header, image, sizeof(header));
	*section = (struct frames_section){ .machine = machine_of(&header) };
	if (!header_is_usable(&header) || !section->machine || elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	/* libelf takes a pointer to what may be written, and only reads. */
	elf = elf_memory((char *)(uintptr_t)image, bytes);
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return -ENOEXEC;
	if (!section_find(elf, image, bytes, ".eh_frame", &found))
		return -ENODATA;
	section->bytes = (const uint8_t *)image + found.sh_offset;
	section->len = found.sh_size;
	section->address = found.sh_addr;
	return 0;
}
