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
#define MADE_CODE_BYTES 512

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
	uint8_t code[MADE_CODE_BYTES];
	uint32_t strtab_len;
};

static inline Elf64_Shdr made_symbols(uint32_t type, size_t at)
{
	return (Elf64_Shdr){ .sh_type = type,
			     .sh_offset = at,
			     .sh_entsize = sizeof(Elf64_Sym),
			     .sh_link = MADE_STRTAB };
}

/* Names of sections are in front of those of symbols. */
static const char made_names[] = "\0.text\0.symtab\0.dynsym";
enum { MADE_NAME_TEXT = 1, MADE_NAME_SYMTAB = 7, MADE_NAME_DYNSYM = 15 };

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
			    .e_shnum = MADE_SECTIONS,
			    .e_shstrndx = MADE_STRTAB },
		.strtab_len = sizeof(made_names),
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
	memcpy(made->strtab, made_names, sizeof(made_names));
	made->sections[MADE_TEXT].sh_name = MADE_NAME_TEXT;
	made->sections[MADE_SYMTAB].sh_name = MADE_NAME_SYMTAB;
	made->sections[MADE_DYNSYM].sh_name = MADE_NAME_DYNSYM;
}

/* Gives .text bytes: MADE_CODE_BYTES from CODE on, of which these are at @address. */
static inline void made_code(struct made *made, uint64_t address, const uint8_t *bytes, size_t len)
{
	cr_assert_leq(address - CODE + len, sizeof(made->code));
	memcpy(made->code + (address - CODE), bytes, len);
	made->sections[MADE_TEXT].sh_offset = offsetof(struct made, code);
	made->sections[MADE_TEXT].sh_size = sizeof(made->code);
}

/* A pointer to @address that is moved with the file. */
static inline void made_pointer(struct made *made, uint64_t address)
{
	const Elf64_Rela relocation = { .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE),
					.r_addend = (Elf64_Sxword)address };

	memcpy(made->notes, &relocation, sizeof(relocation));
	made->sections[MADE_NOTE] = (Elf64_Shdr){ .sh_type = SHT_RELA,
						  .sh_offset = offsetof(struct made, notes),
						  .sh_size = sizeof(relocation) };
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
