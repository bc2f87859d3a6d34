/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of code and build ids. */
#include "elf_made.h"

#include <link.h>
#include <unistd.h>

#include "profiles/program.h"
#include "unwinding.h"

#define BUILD_ID(...) \
	TO32(4), TO32(sizeof((uint8_t[]){ __VA_ARGS__ })), TO32(3), 'G', 'N', 'U', 0, __VA_ARGS__

static struct program read_program(const void *bytes, size_t len)
{
	_cleanup_(elf_image_close) struct elf_image image = { 0 };
	struct program program;

	cr_assert_eq(elf_image_open(bytes, len, &image), 0);
	program_read(&image, &program);
	cr_expect(program_is_sane(&program));
	return program;
}

static struct program read_made(const struct made *made)
{
	return read_program(made, sizeof(*made));
}

/* The first file that the dynamic linker has loaded: this program, with its headers in memory. */
static int first_take(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(struct dl_phdr_info *)arg = *info;
	return 1;
}

/* By the word of the dynamic linker. */
Test(program, has_the_segments_and_the_build_id_of_the_program_that_runs)
{
	struct program program;
	struct dl_phdr_info info;
	uint32_t len = 0;
	size_t bytes;
	const void *image = image_of("/proc/self/exe", &bytes);

	program = read_program(image, bytes);
	dl_iterate_phdr(first_take, &info);
	for (int i = 0; i < info.dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info.dlpi_phdr[i];

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		cr_expect_eq(program.segments[len].offset, header->p_offset);
		cr_expect_eq(program.segments[len].address, header->p_vaddr);
		cr_expect_eq(program.segments[len++].bytes, header->p_filesz);
	}
	cr_expect_gt(len, 0);
	cr_expect_eq(program.segments_len, len);
	cr_expect_eq(program.segments_more, 0);
}

/* file(1), or its kin, is not on every machine: what ld(1) is told to write is what is read. */
Test(program, has_the_build_id_that_the_linker_was_told)
{
	static const char path[] = "build_id_made_of_a_test";
	struct program program;
	size_t bytes;
	const void *image;
	char command[256];

	snprintf(command, sizeof(command),
		 "echo 'int f;' | gcc -x c -shared -nostdlib -Wl,--build-id=0x0102fe04 -o "
		 "/tmp/%s.%d "
		 "-",
		 path, getpid());
	cr_assert_eq(system(command), 0);
	snprintf(command, sizeof(command), "/tmp/%s.%d", path, getpid());
	image = image_of(command, &bytes);
	unlink(command);
	program = read_program(image, bytes);
	cr_expect_eq(program.build_id_len, 4);
	cr_expect_arr_eq(program.build_id, "\x01\x02\xfe\x04", 4);
}

Test(program, has_only_segments_that_are_loaded_to_be_run)
{
	struct program program;
	struct made made;

	made_init(&made);
	made_header(&made, PT_LOAD, 0, 0x100)->p_flags = PF_R;
	made_header(&made, PT_LOAD, 0x3000, 0x200)->p_vaddr = 0x5000;
	made_header(&made, PT_DYNAMIC, 0x4000, 0x100);
	made_header(&made, PT_LOAD, 0x1000, 0x200);
	program = read_made(&made);
	cr_assert_eq(program.segments_len, 2);
	cr_expect_eq(program.segments[0].offset, 0x3000);
	cr_expect_eq(program.segments[0].address, 0x5000);
	cr_expect_eq(program.segments[0].bytes, 0x200);
	cr_expect_eq(program.segments[1].offset, 0x1000);
	cr_expect_eq(program.begin, 0x1000);
	cr_expect_eq(program.end, 0x5200);
}

Test(program, has_no_segments_that_cannot_be)
{
	struct program program;
	struct made made;

	made_init(&made);
	made_header(&made, PT_LOAD, 0x1000, 0);
	made_header(&made, PT_LOAD, UINT64_MAX - 1, 2)->p_vaddr = 0;
	made_header(&made, PT_LOAD, 0x1000, 2)->p_vaddr = UINT64_MAX - 1;
	made_header(&made, PT_LOAD, 0x1000, 2)->p_vaddr = PROGRAM_ADDRESS_END - 1;
	made_header(&made, PT_LOAD, 0x1000, 1)->p_vaddr = PROGRAM_ADDRESS_END - 1;
	program = read_made(&made);
	cr_expect_eq(program.segments_len, 1);
	cr_expect_eq(program.segments_more, 4);
	cr_expect_eq(program.end, PROGRAM_ADDRESS_END);
}

Test(program, has_a_limit_of_segments)
{
	struct program program;
	struct made made;

	made_init(&made);
	for (uint64_t i = 0; i < PROGRAM_SEGMENTS_MAX + 2; i++)
		made_header(&made, PT_LOAD, 0x1000 * (i + 1), 0x10);
	program = read_made(&made);
	cr_expect_eq(program.segments_len, PROGRAM_SEGMENTS_MAX);
	cr_expect_eq(program.segments_more, 2);
	cr_expect_eq(program.end, 0x1000 * PROGRAM_SEGMENTS_MAX + 0x10);
}

static void notes_put(struct made *made, const uint8_t *notes, size_t len)
{
	memcpy(made->notes, notes, len);
	made_header(made, PT_NOTE, offsetof(struct made, notes), len);
}

Test(program, has_the_build_id_among_other_notes)
{
	static const uint8_t notes[] = { TO32(4),
					 TO32(4),
					 TO32(1),
					 'G',
					 'N',
					 'U',
					 0,
					 1,
					 2,
					 3,
					 4,
					 TO32(3),
					 TO32(1),
					 TO32(3),
					 'G',
					 'o',
					 0,
					 0,
					 9,
					 0,
					 0,
					 0,
					 BUILD_ID(5, 6, 7, 8, 9),
					 0,
					 0,
					 0,
					 BUILD_ID(1) };
	struct program program;
	struct made made;

	made_init(&made);
	notes_put(&made, notes, sizeof(notes));
	program = read_made(&made);
	cr_expect_eq(program.build_id_len, 5);
	cr_expect_arr_eq(program.build_id, "\5\6\7\10\11", 5);
}

Test(program, has_the_build_id_of_a_section_where_no_segment_has_it)
{
	static const uint8_t notes[] = { BUILD_ID(1, 2, 3, 4) };
	struct program program;
	struct made made;

	made_init(&made);
	memcpy(made.notes, notes, sizeof(notes));
	made_header(&made, PT_NOTE, sizeof(made), 1);
	made.sections[MADE_NOTE] = (Elf64_Shdr){ .sh_type = SHT_NOTE,
						 .sh_offset = offsetof(struct made, notes),
						 .sh_size = sizeof(notes) };
	program = read_made(&made);
	cr_expect_eq(program.build_id_len, 4);
	made.sections[MADE_NOTE].sh_size--;
	program = read_made(&made);
	cr_expect_eq(program.build_id_len, 0, "it does not end there");
}

Test(program, has_no_build_id_that_is_longer_than_the_longest)
{
	uint8_t notes[16 + PROGRAM_BUILD_ID_MAX + 4] = { TO32(4), TO32(PROGRAM_BUILD_ID_MAX),
							 TO32(3), 'G',
							 'N',     'U' };
	struct made made;

	made_init(&made);
	notes_put(&made, notes, sizeof(notes));
	cr_expect_eq(read_made(&made).build_id_len, PROGRAM_BUILD_ID_MAX);
	made.notes[4]++;
	cr_expect_eq(read_made(&made).build_id_len, 0);
}

Test(program, that_another_process_tells_is_checked)
{
	struct program program, told;
	struct made made;

	made_init(&made);
	made_header(&made, PT_LOAD, 0x1000, 0x10);
	program = read_made(&made);
	told = program;
	told.segments_len = PROGRAM_SEGMENTS_MAX + 1;
	cr_expect_not(program_is_sane(&told));
	told = program;
	told.build_id_len = PROGRAM_BUILD_ID_MAX + 1;
	cr_expect_not(program_is_sane(&told));
	told = program;
	told.segments[0].bytes = 0;
	cr_expect_not(program_is_sane(&told));
	told = program;
	told.segments[0].address = PROGRAM_ADDRESS_END;
	cr_expect_not(program_is_sane(&told));
	told = program;
	told.begin--;
	cr_expect_not(program_is_sane(&told));
	told = program;
	told.end++;
	cr_expect_not(program_is_sane(&told));
	cr_expect(program_is_sane(&program));
}
