/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/functions.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define SECTIONS_MAX 4096
#define SEGMENTS_MAX 64

struct search {
	Elf *elf;
	const char *const *names;
	size_t len;
	uint64_t *offsets;
	int found;
};

static void elf_end_p(Elf **elf)
{
	elf_end(*elf);
}

/* From an address as the file is linked to an offset in it; 0 if no code is loaded there. */
static uint64_t offset_of(Elf *elf, uint64_t address)
{
	GElf_Phdr segment;
	size_t len;

	if (elf_getphdrnum(elf, &len))
		return 0;
	for (size_t i = 0; i < len && i < SEGMENTS_MAX; i++) {
		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD ||
		    !(segment.p_flags & PF_X) || address < segment.p_vaddr ||
		    address - segment.p_vaddr >= segment.p_filesz)
			continue;
		return address - segment.p_vaddr + segment.p_offset;
	}
	return 0;
}

static void symbol_match(struct search *search, const GElf_Sym *symbol, size_t strings)
{
	const char *name;

	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF)
		return;
	name = elf_strptr(search->elf, strings, symbol->st_name);
	if (!name)
		return;
	for (size_t i = 0; i < search->len; i++) {
		if (search->offsets[i] || strcmp(name, search->names[i]) != 0)
			continue;
		search->offsets[i] = offset_of(search->elf, symbol->st_value);
		search->found += search->offsets[i] != 0;
	}
}

static bool section_is_bounded(Elf *elf, size_t index)
{
	Elf_Scn *section = elf_getscn(elf, index);
	GElf_Shdr header;

	return section && gelf_getshdr(section, &header) &&
	       header.sh_size <= FUNCTIONS_SYMBOLS_BYTES_MAX;
}

static void table_search(struct search *search, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data;
	GElf_Sym symbol;

	if (!header->sh_entsize || !section_is_bounded(search->elf, elf_ndxscn(section)) ||
	    !section_is_bounded(search->elf, header->sh_link))
		return;
	data = elf_getdata(section, NULL);
	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++)
		symbol_match(search, &symbol, header->sh_link);
}

static void tables_search(struct search *search, GElf_Word type)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	for (int i = 0; i < SECTIONS_MAX; i++) {
		section = elf_nextscn(search->elf, section);
		if (!section)
			return;
		if (gelf_getshdr(section, &header) && header.sh_type == type)
			table_search(search, section, &header);
	}
}

int functions_find(int fd, const char *const *names, size_t len, uint64_t *offsets)
{
	__attribute__((cleanup(elf_end_p))) Elf *elf = NULL;
	struct search search = { .names = names, .len = len, .offsets = offsets };
	struct stat stat;

	if (fstat(fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode) || elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	/* Read, not mapped: a mapping faults if the file shrinks. */
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF ||
	    gelf_getclass(elf) != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
		return -ENOEXEC;
	search.elf = elf;
	memset(offsets, 0, len * sizeof(*offsets));
	tables_search(&search, SHT_DYNSYM);
	if ((size_t)search.found < len)
		tables_search(&search, SHT_SYMTAB);
	return search.found;
}
