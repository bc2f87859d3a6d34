/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of maps as no kernel writes them, or seldom: in a /proc that is made up. */
#include <criterion/criterion.h>

#include <errno.h>

#include "opening.h"

#define PID 7

static FILE *process_file(const struct opening *opening, const char *name)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d", opening->folder, PID);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%d/%s", opening->folder, PID, name);
	file = fopen(path, "we");
	cr_assert_not_null(file);
	return file;
}

static struct opening proc_make(void)
{
	struct opening opening = opening_make();
	FILE *stat = process_file(&opening, "stat");

	fputs("7 (made up) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 6 7 8\n", stat);
	fclose(stat);
	return opening;
}

static struct opened ask(const struct opening *opening)
{
	return opened_of(opening->folder, (struct opener_question){ OPENER_MAPS, .pid = PID });
}

static struct opened told_of(const char *maps)
{
	struct opening opening = proc_make();
	FILE *file = process_file(&opening, "maps");
	struct opened opened;

	fputs(maps, file);
	fclose(file);
	opened = ask(&opening);
	opening_remove(&opening);
	return opened;
}

Test(opener_maps, where_nothing_is_mapped_there_is_no_process)
{
	cr_expect_eq(told_of("").result, -ESRCH);
	cr_expect_eq(told_of("1000-2000 rw-p 0 0:0 0 \n").result, 0);
}

Test(opener_maps, what_is_no_mapping_to_be_run_is_none)
{
	static const char *const lines[] = {
		"\n",
		"nothing\n",
		"1000-2000\n",
		"1000-2000 r-x 00000000 fe:01 7 /file\n",
		"1000-2000 r-xp 00000000 fe:01\n",
		"1000-2000 r-xp 00000000 fe:01 x /file\n",
		"1000-2000 rw-p 00000000 fe:01 7 /file\n",
		"2000-2000 r-xp 00000000 fe:01 7 /file\n",
		"2000-1000 r-xp 00000000 fe:01 7 /file\n",
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n",
		"1000-8000000000000000 r-xp 00000000 fe:01 7 /file\n",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct opened opened = told_of(lines[i]);

		cr_expect_eq(opened.result, 0, "%s", lines[i]);
		cr_expect_eq(opened.answer.len, 0, "%s", lines[i]);
		cr_expect_eq(opened.answer.left_out, 0, "%s", lines[i]);
	}
}

Test(opener_maps, a_kind_is_told_by_inode_and_name)
{
	static const struct {
		const char *line;
		uint32_t kind;
	} lines[] = {
		{ "1000-2000 r-xp 00001000 fe:01 7   /file\n", OPENER_RANGE_FILE },
		{ "1000-2000 --xs 00001000 fe:01 7   /memfd:code (deleted)\n", OPENER_RANGE_FILE },
		{ "1000-2000 r-xp 00000000 00:00 0   [vdso]\n", OPENER_RANGE_VDSO },
		{ "1000-2000 rwxp 00000000 00:00 0 \n", OPENER_RANGE_ANONYMOUS },
		{ "1000-2000 rwxp 00000000 00:00 0\n", OPENER_RANGE_ANONYMOUS },
		{ "1000-2000 rwxp 00000000 00:00 0   [heap]\n", OPENER_RANGE_ANONYMOUS },
		{ "1000-2000 rwxp 00000000 00:00 0   [anon:/lib/libc.so.6]\n",
		  OPENER_RANGE_ANONYMOUS },
		{ "1000-2000 rwxp 00000000 00:00 0   /file\n", OPENER_RANGE_ANONYMOUS },
		{ "1000-2000 rwxp 00001000 00:01 9   anon_inode:[code]\n", OPENER_RANGE_ANONYMOUS },
		{ "1000-2000 rwxp 00001000 00:01 9   [vdso]/file\n", OPENER_RANGE_ANONYMOUS },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct opened opened = told_of(lines[i].line);
		const struct opener_range *range = opened.shared.ranges;
		bool file = lines[i].kind == OPENER_RANGE_FILE;

		cr_assert_eq(opened.answer.len, 1, "%s", lines[i].line);
		cr_expect_eq(range->begin, 0x1000);
		cr_expect_eq(range->end, 0x2000);
		cr_expect_eq(range->kind, lines[i].kind, "%s", lines[i].line);
		cr_expect_eq(range->inode, file ? 7 : 0);
		cr_expect_eq(range->offset, file ? 0x1000 : 0);
		cr_expect_eq(range->dev_major, file ? 0xfe : 0);
		cr_expect_eq(range->path_hash != 0, file);
	}
}

Test(opener_maps, neighbours_that_differ_stay_apart)
{
	static const char *const others[] = {
		"2000-3000 r-xp 00002000 fe:01 7 /file\n", /* goes on: the only one */
		"2000-3000 r-xp 00001000 fe:01 7 /file\n",
		"2000-3000 r-xp 00002000 fe:02 7 /file\n",
		"2000-3000 r-xp 00002000 fd:01 7 /file\n",
		"2000-3000 r-xp 00002000 fe:01 8 /file\n",
		"2000-3000 r-xp 00002000 fe:01 7 /fil\n",
		"2001-3000 r-xp 00002000 fe:01 7 /file\n",
		"2000-3000 r-xp 00000000 00:00 0 \n",
		"2000-3000 r-xp 00000000 00:00 0 [vdso]\n",
	};
	char maps[256];

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct opened opened;

		snprintf(maps, sizeof(maps), "1000-2000 r-xp 00001000 fe:01 7 /file\n%s",
			 others[i]);
		opened = told_of(maps);
		cr_expect_eq(opened.answer.len, i ? 2 : 1, "%s", others[i]);
		cr_expect_eq(opened.shared.ranges[opened.answer.len - 1].end, 0x3000);
	}
}

/* A process changes its mappings while they are read. */
Test(opener_maps, what_lies_in_another_range_is_left_out)
{
	struct opened opened = told_of("1000-4000 r-xp 0 fe:01 7 /file\n"
				       "3000-5000 r-xp 0 fe:01 8 /other\n"
				       "1000-2000 r-xp 0 fe:01 8 /other\n"
				       "4000-5000 r-xp 0 fe:01 9 /third\n");

	cr_expect_eq(opened.answer.len, 2);
	cr_expect_eq(opened.answer.left_out, 2);
	cr_expect_eq(opened.shared.ranges[1].inode, 9);
}

/* @lines of files at even pages, then @text so many times. */
static struct opened told_of_many(size_t lines, const char *text, size_t times)
{
	struct opening opening = proc_make();
	FILE *file = process_file(&opening, "maps");
	struct opened opened;

	for (size_t i = 1; i <= lines; i++)
		fprintf(file, "%zx000-%zx000 r-xp 0 fe:01 7 /file\n", 2 * i, 2 * i + 1);
	for (size_t i = 0; i < times; i++)
		fputs(text, file);
	fclose(file);
	opened = ask(&opening);
	opening_remove(&opening);
	return opened;
}

Test(opener_maps, as_many_as_there_is_room_for_are_told)
{
	for (size_t more = 0; more < 3; more++) {
		struct opened opened = told_of_many(OPENER_RANGES_MAX + more, "", 0);

		cr_expect_eq(opened.answer.len, OPENER_RANGES_MAX);
		cr_expect_eq(opened.answer.left_out, more);
		cr_expect_eq(opened.shared.ranges[0].begin, 0x2000);
	}
}

Test(opener_maps, lines_without_end_are_not_read_to_their_end)
{
	static const char data[] = "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 [anon:data]\n";
	char huge[65536];
	struct opened opened;

	opened = told_of_many(1, data, (4U << 20) / sizeof(data));
	cr_expect_eq(opened.answer.left_out, 0);
	opened = told_of_many(1, data, (16U << 20) / sizeof(data));
	cr_expect_eq(opened.answer.len, 1);
	cr_expect_eq(opened.answer.left_out, 1, "it is not known what else there is");
	memset(huge, 'x', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	opened = told_of_many(1, huge, 512);
	cr_expect_eq(opened.result, 0);
	cr_expect_eq(opened.answer.len, 1);
}

/* The name is cut, so it leads nowhere; what follows is no line. */
Test(opener_maps, a_line_that_is_too_long_is_one_line)
{
	struct opening opening = proc_make();
	FILE *file = process_file(&opening, "maps");
	struct opened opened;

	fputs("1000-2000 r-xp 0 fe:01 7 /", file);
	for (int i = 0; i < 4400; i++)
		fputc('x', file);
	for (int i = 0; i < 400; i++)
		fputs("5000-6000 r-xp 0 fe:01 7 /file", file);
	fputs("\n9000-a000 r-xp 0 fe:01 7 /file\n", file);
	fclose(file);
	opened = ask(&opening);
	cr_assert_eq(opened.answer.len, 2);
	cr_expect_eq(opened.shared.ranges[1].begin, 0x9000);
	opened = opened_of(opening.folder,
			   (struct opener_question){ OPENER_FILE, PID, 0, 0x1000, 7 });
	cr_expect_eq(opened.result, -ENAMETOOLONG);
	opening_remove(&opening);
}
