/* SPDX-License-Identifier: Apache-2.0 */
/* A small ELF file of x86-64, written field by field: code at CODE, and symbols. */
#ifndef WORKLOAD_TESTS_ELF_MADE_H
#define WORKLOAD_TESTS_ELF_MADE_H

#include <criterion/criterion.h>

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CODE 0x1000 /* address and offset of .text, of CODE_BYTES */
#define CODE_BYTES 0x1000
#define MADE_SYMBOLS_MAX 64
#define MADE_HEADERS_MAX 20

enum {
	MADE_NONE,
	MADE_TEXT,
	MADE_DATA,
	MADE_SYMTAB,
	MADE_STRTAB,
	MADE_DYNSYM,
	MADE_NOTE,
	MADE_SECTIONS
};

struct made {
	Elf64_Ehdr header;
	Elf64_Phdr headers[MADE_HEADERS_MAX];
	Elf64_Shdr sections[MADE_SECTIONS];
	Elf64_Sym symtab[MADE_SYMBOLS_MAX], dynsym[MADE_SYMBOLS_MAX];
	char strtab[4096];
	uint8_t notes[256];
	uint32_t strtab_len;
};

static inline Elf64_Shdr made_symbols(uint32_t type, size_t at)
{
	return (Elf64_Shdr){ .sh_type = type,
			     .sh_offset = at,
			     .sh_entsize = sizeof(Elf64_Sym),
			     .sh_link = MADE_STRTAB };
}

static inline void made_init(struct made *made)
{
	static const Elf64_Shdr code = { .sh_type = SHT_PROGBITS,
					 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					 .sh_addr = CODE,
					 .sh_size = CODE_BYTES };

	*made = (struct made){
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = offsetof(struct made, headers),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_shoff = offsetof(struct made, sections),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = MADE_SECTIONS },
		.strtab_len = 1,
	};
	made->sections[MADE_TEXT] = code;
	made->sections[MADE_DATA] = code;
	made->sections[MADE_DATA].sh_addr = CODE + CODE_BYTES;
	made->sections[MADE_DATA].sh_flags = SHF_ALLOC | SHF_WRITE;
	made->sections[MADE_SYMTAB] = made_symbols(SHT_SYMTAB, offsetof(struct made, symtab));
	made->sections[MADE_DYNSYM] = made_symbols(SHT_DYNSYM, offsetof(struct made, dynsym));
	made->sections[MADE_STRTAB] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
						    .sh_offset = offsetof(struct made, strtab),
						    .sh_size = sizeof(made->strtab) };
}

/* A symbol of @section, MADE_TEXT or MADE_DATA, in the table @table. Its name is to be unique. */
static inline Elf64_Sym *made_symbol(struct made *made, int table, const char *name,
				     unsigned char info, uint64_t address, uint64_t bytes)
{
	Elf64_Shdr *header = &made->sections[table];
	Elf64_Sym *symbol = table == MADE_SYMTAB ? made->symtab : made->dynsym;
	size_t len = strlen(name) + 1;

	symbol += header->sh_size / sizeof(*symbol);
	header->sh_size += sizeof(*symbol);
	cr_assert_leq(header->sh_size, sizeof(made->symtab));
	cr_assert_leq(made->strtab_len + len, sizeof(made->strtab));
	*symbol = (Elf64_Sym){ .st_name = made->strtab_len,
			       .st_info = info,
			       .st_shndx = MADE_TEXT,
			       .st_value = address,
			       .st_size = bytes };
	memcpy(made->strtab + made->strtab_len, name, len);
	made->strtab_len += (uint32_t)len;
	return symbol;
}

static inline Elf64_Phdr *made_header(struct made *made, uint32_t type, uint64_t at, uint64_t bytes)
{
	cr_assert_lt(made->header.e_phnum, MADE_HEADERS_MAX);
	made->headers[made->header.e_phnum] = (Elf64_Phdr){ .p_type = type,
							    .p_flags = PF_R | PF_X,
							    .p_offset = at,
							    .p_vaddr = at,
							    .p_filesz = bytes,
							    .p_memsz = bytes };
	return &made->headers[made->header.e_phnum++];
}

#define GLOBAL(type) ELF64_ST_INFO(STB_GLOBAL, type)
#define WEAK(type) ELF64_ST_INFO(STB_WEAK, type)
#define LOCAL(type) ELF64_ST_INFO(STB_LOCAL, type)

#endif
