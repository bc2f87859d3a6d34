/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/elf_image.h"

#include <endian.h>
#include <errno.h>
#include <libdeflate.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "images are read as they are");

/*
 * libelf makes room for as many sections as the file says. Where it says so in section 0, because
 * the header has no room for the number, that may be any: no program has so many.
 */
static bool header_is_usable(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       (header->e_machine == EM_X86_64 || header->e_machine == EM_AARCH64) &&
	       header->e_phnum != PN_XNUM && !(header->e_shoff && !header->e_shnum);
}

int elf_image_open(const void *bytes, size_t len, struct elf_image *image)
{
	Elf64_Ehdr header;
	size_t sections;
	Elf *elf;

	if (len < sizeof(header) || elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	memcpy(&header, bytes, sizeof(header));
	if (!header_is_usable(&header))
		return -ENOEXEC;
	/* libelf takes a pointer to what may be written, and only reads. */
	elf = elf_memory((char *)(uintptr_t)bytes, len);
	if (!elf || elf_kind(elf) != ELF_K_ELF) {
		elf_end(elf);
		return -ENOEXEC;
	}
	if (elf_getshdrnum(elf, &sections))
		sections = 0;
	*image = (struct elf_image){
		.bytes = bytes,
		.len = len,
		.machine = header.e_machine,
		.sections = sections < ELF_IMAGE_SECTIONS_MAX + 1 ? sections
								  : ELF_IMAGE_SECTIONS_MAX + 1,
		.elf = elf,
	};
	return 0;
}

void elf_image_close(struct elf_image *image)
{
	elf_end(image->elf);
	image->elf = NULL;
}

bool elf_image_section(const struct elf_image *image, size_t index, GElf_Shdr *header)
{
	Elf_Scn *section = index < image->sections ? elf_getscn(image->elf, index) : NULL;

	return section && gelf_getshdr(section, header);
}

/* As they are in the image. */
static bool bytes_of(const struct elf_image *image, const GElf_Shdr *header, struct reader *bytes)
{
	if (header->sh_type == SHT_NOBITS || header->sh_offset > image->len ||
	    header->sh_size > image->len - header->sh_offset)
		return false;
	bytes->at = image->bytes + header->sh_offset;
	bytes->end = bytes->at + header->sh_size;
	bytes->bad = false;
	return true;
}

bool elf_image_bytes(const struct elf_image *image, const GElf_Shdr *header, struct reader *bytes)
{
	return !(header->sh_flags & SHF_COMPRESSED) && bytes_of(image, header, bytes);
}

/* @from fills @len bytes of @to, no more and no less. */
static bool inflate_into(const struct reader *from, void *to, size_t len)
{
	struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
	enum libdeflate_result result = LIBDEFLATE_BAD_DATA;

	if (decompressor)
		result = libdeflate_zlib_decompress(decompressor, from->at, reader_left(from), to,
						    len, NULL);
	libdeflate_free_decompressor(decompressor);
	return result == LIBDEFLATE_SUCCESS;
}

bool elf_image_symbols(const struct elf_image *image, const char *name, struct reader *symbols,
		       struct reader *names)
{
	GElf_Shdr table, texts;

	return elf_image_find(image, name, &table) && elf_image_bytes(image, &table, symbols) &&
	       elf_image_section(image, table.sh_link, &texts) &&
	       elf_image_bytes(image, &texts, names);
}

bool elf_image_symbol_next(struct reader *symbols, Elf64_Sym *symbol)
{
	if (reader_left(symbols) < sizeof(*symbol))
		return false;
	memcpy(symbol, symbols->at, sizeof(*symbol));
	symbols->at += sizeof(*symbol);
	return true;
}

bool elf_image_inflate(const struct elf_image *image, const GElf_Shdr *header, struct reader *bytes,
		       void **inflated)
{
	Elf64_Chdr compressed;

	*inflated = NULL;
	if (!bytes_of(image, header, bytes))
		return false;
	if (!(header->sh_flags & SHF_COMPRESSED))
		return true;
	if (reader_left(bytes) < sizeof(compressed))
		return false;
	memcpy(&compressed, bytes->at, sizeof(compressed));
	bytes->at += sizeof(compressed);
	if (compressed.ch_type != ELFCOMPRESS_ZLIB || !compressed.ch_size ||
	    compressed.ch_size > ELF_IMAGE_INFLATED_MAX)
		return false;
	*inflated = malloc(compressed.ch_size);
	if (!*inflated || !inflate_into(bytes, *inflated, compressed.ch_size)) {
		free(*inflated);
		*inflated = NULL;
		return false;
	}
	bytes->at = *inflated;
	bytes->end = bytes->at + compressed.ch_size;
	return true;
}

/*
 * The names of the sections. Not by elf_strptr(): that inflates them, and looks for the end of each
 * from the end of all.
 */
static bool names_of(const struct elf_image *image, struct reader *names)
{
	GElf_Shdr header;
	size_t index;

	return !elf_getshdrstrndx(image->elf, &index) &&
	       gelf_getshdr(elf_getscn(image->elf, index), &header) &&
	       elf_image_bytes(image, &header, names);
}

static bool name_is(const struct reader *names, size_t at, const char *name)
{
	size_t bytes = strlen(name) + 1;

	return at < reader_left(names) && bytes <= reader_left(names) - at &&
	       memcmp(names->at + at, name, bytes) == 0;
}

bool elf_image_named(const struct elf_image *image, const char *name, GElf_Shdr *header)
{
	struct reader names;

	if (!names_of(image, &names))
		return false;
	for (size_t i = 1; i < image->sections; i++)
		if (elf_image_section(image, i, header) && name_is(&names, header->sh_name, name))
			return true;
	return false;
}

bool elf_image_find(const struct elf_image *image, const char *name, GElf_Shdr *header)
{
	struct reader bytes;

	return elf_image_named(image, name, header) && elf_image_bytes(image, header, &bytes);
}
