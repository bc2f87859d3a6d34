/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files made to cost their reader its memory or its time, or to lead it astray. */
#include <criterion/criterion.h>

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "identity/functions.h"

#define MIB ((size_t)1 << 20)
#define TABLE_AT 4096
#define NAMES_AT (2 * MIB)

enum { NOTHING, TABLE, NAMES, OTHER_TABLE, SECTIONS };

/* A program with code at its own addresses, and a symbol table that says where "f" is. */
struct image {
	ElfW(Ehdr) header;
	ElfW(Phdr) code;
	ElfW(Shdr) sections[SECTIONS];
};

static const char *const names[] = { "f" };

static ElfW(Shdr) symbols_at(size_t at, size_t count)
{
	return (ElfW(Shdr)){
		.sh_type = SHT_SYMTAB,
		.sh_offset = at,
		.sh_size = count * sizeof(ElfW(Sym)),
		.sh_entsize = sizeof(ElfW(Sym)),
		.sh_link = NAMES,
	};
}

static struct image image_make(void)
{
	struct image image = {
		.header = {
			.e_type = ET_DYN,
			.e_version = EV_CURRENT,
			.e_phoff = offsetof(struct image, code),
			.e_phnum = 1,
			.e_phentsize = sizeof(image.code),
			.e_shoff = offsetof(struct image, sections),
			.e_shnum = SECTIONS,
			.e_shentsize = sizeof(image.sections[0]),
			.e_ehsize = sizeof(image.header),
		},
		.code = { .p_type = PT_LOAD, .p_flags = PF_X, .p_filesz = MIB },
		.sections = {
			[TABLE] = symbols_at(TABLE_AT, 1),
			[NAMES] = { .sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = 3 },
		},
	};

	memcpy(image.header.e_ident, ELFMAG, SELFMAG);
	image.header.e_ident[EI_CLASS] = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
	image.header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB
										  : ELFDATA2MSB;
	image.header.e_ident[EI_VERSION] = EV_CURRENT;
	return image;
}

static void put(int fd, const void *bytes, size_t len, size_t at)
{
	cr_assert_eq(pwrite(fd, bytes, len, (off_t)at), (ssize_t)len);
}

static void put_symbol(int fd, size_t at, uint64_t address)
{
	const ElfW(Sym)
		symbol = { .st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = address };

	put(fd, &symbol, sizeof(symbol), at);
}

/* @len bytes that take no memory where nothing is put. */
static int image_file(const struct image *image, size_t len)
{
	int fd = memfd_create("functions", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, (off_t)len), 0);
	put(fd, image, sizeof(*image), 0);
	put_symbol(fd, TABLE_AT, 0x1234);
	put(fd, "\0f", 3, NAMES_AT);
	return fd;
}

Test(functions_hostile, the_file_that_others_are_made_of_is_right)
{
	struct image image = image_make();
	_cleanup_(cleanup_close) int fd = image_file(&image, 4 * MIB);
	uint64_t offset;

	cr_expect_eq(functions_find(fd, names, 1, &offset), 1);
	cr_expect_eq(offset, 0x1234);
}

/* Room for each of four million sections would be a gigabyte. */
Test(functions_hostile, more_sections_than_the_header_has_room_for_are_not_read)
{
	struct image image = image_make();
	_cleanup_(cleanup_close) int fd = -1;
	uint64_t offset;

	image.header.e_shnum = 0;
	image.sections[NOTHING].sh_size = SECTIONS;
	fd = image_file(&image, 4 * MIB);
	cr_expect_eq(functions_find(fd, names, 1, &offset), -ENOEXEC);
}

Test(functions_hostile, more_segments_than_the_header_has_room_for_are_not_read)
{
	struct image image = image_make();
	_cleanup_(cleanup_close) int fd = -1;
	uint64_t offset;

	image.header.e_phnum = PN_XNUM;
	image.sections[NOTHING].sh_info = 1;
	fd = image_file(&image, 4 * MIB);
	cr_expect_eq(functions_find(fd, names, 1, &offset), -ENOEXEC);
}

/* What was read of each would be kept: a thousand tables may be the same bytes of the file. */
Test(functions_hostile, one_table_of_a_type_is_read)
{
	struct image image = image_make();
	_cleanup_(cleanup_close) int fd = -1;
	uint64_t offset;

	image.sections[TABLE] = symbols_at(MIB, 1000);
	image.sections[OTHER_TABLE] = symbols_at(TABLE_AT, 1);
	fd = image_file(&image, 4 * MIB);
	cr_expect_eq(functions_find(fd, names, 1, &offset), 0);
}

Test(functions_hostile, a_table_and_its_names_are_bounded_together)
{
	struct image image = image_make();
	_cleanup_(cleanup_close) int fd = -1;
	uint64_t offset;

	image.sections[NAMES].sh_size = FUNCTIONS_SYMBOLS_BYTES_MAX - sizeof(ElfW(Sym));
	fd = image_file(&image, 80 * MIB);
	cr_expect_eq(functions_find(fd, names, 1, &offset), 1);
	image.sections[NAMES].sh_size++;
	put(fd, &image, sizeof(image), 0);
	cr_expect_eq(functions_find(fd, names, 1, &offset), 0);
}

/* To look for the end of each name, from the end of all of them, would take minutes. */
Test(functions_hostile, names_without_an_end_take_no_time, .timeout = 30)
{
	const size_t symbols = 20000, bytes = 60 * MIB;
	struct image image = image_make();
	_cleanup_(cleanup_free) char *text = malloc(bytes);
	_cleanup_(cleanup_close) int fd = -1;
	uint64_t offset;

	cr_assert_not_null(text);
	memset(text, 'a', bytes);
	text[1] = text[2] = '\0';
	image.sections[TABLE] = symbols_at(TABLE_AT, symbols);
	image.sections[NAMES].sh_size = bytes;
	fd = image_file(&image, NAMES_AT);
	for (size_t i = 0; i < symbols; i++)
		put_symbol(fd, TABLE_AT + i * sizeof(ElfW(Sym)), 0);
	put(fd, text, bytes, NAMES_AT);
	cr_expect_eq(functions_find(fd, names, 1, &offset), 0);
}

Test(functions_hostile, a_name_that_the_end_of_all_names_cuts_is_none)
{
	struct image image = image_make();
	_cleanup_(cleanup_close) int fd = -1;
	uint64_t offset;

	image.sections[NAMES].sh_size = 2;
	fd = image_file(&image, 4 * MIB);
	cr_expect_eq(functions_find(fd, names, 1, &offset), 0);
}

Test(functions_hostile, code_that_is_not_in_the_file_is_not_found)
{
	static const struct {
		uint64_t at, address;
		int found;
	} cases[] = {
		{ 4 * MIB - 1, 0, 1 },
		{ 4 * MIB - 1, 1, 0 },
		{ UINT64_MAX - 10, 0, 0 },
		{ UINT64_MAX - 10, 100, 0 }, /* beyond the last of all offsets */
	};
	uint64_t offset;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct image image = image_make();
		_cleanup_(cleanup_close) int fd = -1;

		image.code.p_offset = (ElfW(Off))cases[i].at;
		fd = image_file(&image, 4 * MIB);
		put_symbol(fd, TABLE_AT, cases[i].address);
		cr_expect_eq(functions_find(fd, names, 1, &offset), cases[i].found, "case %zu", i);
	}
}

Test(functions_hostile, another_byte_order_is_no_program_of_this_machine)
{
	struct image image = image_make();
	_cleanup_(cleanup_close) int fd = -1;
	uint64_t offset;

	image.header.e_ident[EI_DATA] ^= ELFDATA2LSB ^ ELFDATA2MSB;
	fd = image_file(&image, 4 * MIB);
	cr_expect_eq(functions_find(fd, names, 1, &offset), -ENOEXEC);
}
