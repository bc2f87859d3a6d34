/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/functions.h"

#include <endian.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTIONS_MAX 4096
#define SEGMENTS_MAX 64
#define NATIVE_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#define NATIVE_DATA (__BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB)

struct search {
	const char *const *names;
	size_t len;
	uint64_t *offsets;
	int found;
	uint64_t file_bytes;
	GElf_Phdr code[SEGMENTS_MAX]; /* the segments that are loaded to be run */
	size_t code_len;
};

static void elf_end_p(Elf **elf)
{
	elf_end(*elf);
}

/* From an address as the file is linked to an offset in it; 0 if no code is loaded there. */
static uint64_t offset_of(const struct search *search, uint64_t address)
{
	for (size_t i = 0; i < search->code_len; i++) {
		const GElf_Phdr *segment = &search->code[i];
		uint64_t offset;

		if (address < segment->p_vaddr || address - segment->p_vaddr >= segment->p_filesz)
			continue;
		if (__builtin_add_overflow(address - segment->p_vaddr, segment->p_offset,
					   &offset) ||
		    offset >= search->file_bytes)
			return 0;
		return offset;
	}
	return 0;
}

/* Not elf_strptr(): that looks for the end of each name, from the end of all of them. */
static bool name_is(const Elf_Data *strings, size_t at, const char *name)
{
	size_t bytes = strlen(name) + 1;

	return at < strings->d_size && bytes <= strings->d_size - at &&
	       memcmp((const char *)strings->d_buf + at, name, bytes) == 0;
}

static void symbol_match(struct search *search, const GElf_Sym *symbol, const Elf_Data *strings)
{
	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF)
		return;
	for (size_t i = 0; i < search->len; i++) {
		if (search->offsets[i] || !name_is(strings, symbol->st_name, search->names[i]))
			continue;
		search->offsets[i] = offset_of(search, symbol->st_value);
		search->found += search->offsets[i] != 0;
	}
}

/* A symbol table, and the section of its names, are read as a whole: both together are bounded. */
static void table_search(struct search *search, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Scn *names = elf_getscn(elf, header->sh_link);
	Elf_Data *symbols, *strings;
	GElf_Shdr names_header;
	GElf_Sym symbol;

	if (!header->sh_entsize || !names || !gelf_getshdr(names, &names_header) ||
	    names_header.sh_type != SHT_STRTAB || header->sh_size > FUNCTIONS_SYMBOLS_BYTES_MAX ||
	    names_header.sh_size > FUNCTIONS_SYMBOLS_BYTES_MAX - header->sh_size)
		return;
	symbols = elf_getdata(section, NULL);
	strings = elf_getdata(names, NULL);
	if (!symbols || !strings || !strings->d_buf)
		return;
	for (int i = 0; gelf_getsym(symbols, i, &symbol); i++)
		symbol_match(search, &symbol, strings);
}

static void segments_read(struct search *search, Elf *elf)
{
	GElf_Phdr segment;
	size_t len;

	search->code_len = 0;
	if (elf_getphdrnum(elf, &len))
		return;
	for (size_t i = 0; i < len && i < SEGMENTS_MAX; i++)
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
		    segment.p_flags & PF_X)
			search->code[search->code_len++] = segment;
}

/*
 * A file has one table of each type (ELF specification, "Sections"): others are not looked at, as
 * libelf keeps what it has read until its end.
 */
static int tables_search(struct search *search, int fd, GElf_Word type)
{
	/* Read, not mapped: a mapping faults if the file shrinks. */
	__attribute__((cleanup(elf_end_p))) Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return -ENOEXEC;
	segments_read(search, elf);
	for (int i = 0; i < SECTIONS_MAX; i++) {
		section = elf_nextscn(elf, section);
		if (!section)
			break;
		if (!gelf_getshdr(section, &header) || header.sh_type != type)
			continue;
		table_search(search, elf, section, &header);
		break;
	}
	return 0;
}

/*
 * libelf makes room for as many sections and segments as the file says. Where it says so in section
 * 0, because the header has no room for the number, that may be any: no program has so many.
 */
static int header_check(int fd)
{
	ElfW(Ehdr) header;
	ssize_t got = pread(fd, &header, sizeof(header), 0);

	if (got < 0)
		return -errno;
	if (got != sizeof(header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != NATIVE_CLASS || header.e_ident[EI_DATA] != NATIVE_DATA)
		return -ENOEXEC;
	return (header.e_shoff && !header.e_shnum) || header.e_phnum == PN_XNUM ? -ENOEXEC : 0;
}

int functions_find(int fd, const char *const *names, size_t len, uint64_t *offsets)
{
	struct search search = { .names = names, .len = len, .offsets = offsets };
	struct stat stat;
	int r;

	if (fstat(fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode) || elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	r = header_check(fd);
	if (r)
		return r;
	search.file_bytes = (uint64_t)stat.st_size;
	memset(offsets, 0, len * sizeof(*offsets));
	r = tables_search(&search, fd, SHT_DYNSYM);
	if (!r && (size_t)search.found < len)
		r = tables_search(&search, fd, SHT_SYMTAB);
	return r ? r : search.found;
}
