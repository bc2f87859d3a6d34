/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/elf.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTIONS_MAX 256
#define NAME_LEN 32 /* longer than any name that is looked for */

/* All @size bytes at @offset: 0, -ENOEXEC if the file ends before, or -errno. */
static int elf_read(int fd, void *out, size_t size, uint64_t offset)
{
	ssize_t got;

	if (offset > INT64_MAX)
		return -ENOEXEC;
	do {
		got = pread(fd, out, size, (off_t)offset);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	return (size_t)got == size ? 0 : -ENOEXEC;
}

static bool elf_header_usable(const Elf64_Ehdr *header)
{
	return header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       (header->e_type == ET_EXEC || header->e_type == ET_DYN) &&
	       header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shnum <= SECTIONS_MAX &&
	       header->e_shstrndx < header->e_shnum;
}

static int elf_section_read(int fd, const Elf64_Ehdr *header, unsigned int index, Elf64_Shdr *out)
{
	uint64_t offset;

	if (__builtin_add_overflow(header->e_shoff, index * sizeof(*out), &offset))
		return -ENOEXEC;
	return elf_read(fd, out, sizeof(*out), offset);
}

/* @name is NUL-padded; a name that reaches the end of the file or of the table is cut there. */
static int elf_name_read(int fd, const Elf64_Shdr *strings, uint32_t at, char name[NAME_LEN])
{
	uint64_t offset, len;
	ssize_t got;

	memset(name, 0, NAME_LEN);
	if (at >= strings->sh_size || __builtin_add_overflow(strings->sh_offset, at, &offset) ||
	    offset > INT64_MAX)
		return -ENOEXEC;
	len = strings->sh_size - at;
	if (len > NAME_LEN - 1)
		len = NAME_LEN - 1;
	got = pread(fd, name, len, (off_t)offset);
	return got < 0 ? -errno : 0;
}

static bool elf_sections_have_go(int fd, const Elf64_Ehdr *header)
{
	Elf64_Shdr strings, section;
	char name[NAME_LEN];

	if (elf_section_read(fd, header, header->e_shstrndx, &strings) < 0 ||
	    strings.sh_type != SHT_STRTAB)
		return false;
	for (unsigned int i = 0; i < header->e_shnum; i++) {
		if (elf_section_read(fd, header, i, &section) < 0)
			return false;
		if (elf_name_read(fd, &strings, section.sh_name, name) < 0)
			continue;
		if (strcmp(name, ".go.buildinfo") == 0 || strcmp(name, ".note.go.buildid") == 0)
			return true;
	}
	return false;
}

int elf_go_detect(int fd, bool *go)
{
	Elf64_Ehdr header;
	struct stat stat;
	int r;

	if (fstat(fd, &stat) < 0)
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -ENOEXEC;
	/* A 32-bit header is shorter by 12 bytes, but no executable ends there. */
	r = elf_read(fd, &header, sizeof(header), 0);
	if (r < 0)
		return r;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	/* The structures are read as they are in the file: both ends must be little endian. */
	*go = __BYTE_ORDER == __LITTLE_ENDIAN && elf_header_usable(&header) &&
	      elf_sections_have_go(fd, &header);
	return 0;
}
