/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "discovery/mapped.h"

static void read_line(struct mapped *mapped, const char *text)
{
	char line[PROC_PATH_LEN + 512];

	snprintf(line, sizeof(line), "%s", text);
	cr_expect_eq(mapped_line(line, mapped), 0);
}

Test(mapped, finds_the_libraries_by_the_names_they_have_had)
{
	static const struct {
		const char *name;
		enum mapped_kind kind;
	} cases[] = {
		{ "libc.so.6", MAPPED_GLIBC },
		{ "libc-2.31.so", MAPPED_GLIBC },
		{ "libpthread.so.0", MAPPED_LIBPTHREAD },
		{ "libpthread-2.31.so", MAPPED_LIBPTHREAD },
		{ "ld-musl-aarch64.so.1", MAPPED_MUSL },
		{ "libc.so", MAPPED_MUSL },
	};
	char line[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mapped mapped = { 0 };

		snprintf(line, sizeof(line),
			 "7f1200000000-7f1200155000 r-xp 00026000 fe:01 393 /usr/lib/%s",
			 cases[i].name);
		read_line(&mapped, line);
		for (int kind = 0; kind < MAPPED_KINDS; kind++)
			cr_expect_eq(mapped.files[kind].found, kind == (int)cases[i].kind, "%s",
				     cases[i].name);
		cr_expect_eq(mapped.files[cases[i].kind].inode, 393);
		cr_expect_not(mapped.files[cases[i].kind].deleted);
	}
}

Test(mapped, tells_a_file_that_is_no_longer_there)
{
	struct mapped mapped = { 0 };

	read_line(&mapped, "7f12-7f13 r-xp 00026000 fe:01 7 /lib/libc.so.6 (deleted)");
	cr_expect(mapped.files[MAPPED_GLIBC].deleted);
	cr_expect_str_eq(mapped.files[MAPPED_GLIBC].path, "/lib/libc.so.6");
}

Test(mapped, takes_the_first_of_each_kind)
{
	struct mapped mapped = { 0 };

	read_line(&mapped, "7f12-7f13 r-xp 0 fe:01 7 /a/libc.so.6");
	read_line(&mapped, "7f14-7f15 r-xp 0 fe:01 8 /b/libc.so.6");
	cr_expect_str_eq(mapped.files[MAPPED_GLIBC].path, "/a/libc.so.6");
	cr_expect_eq(mapped.files[MAPPED_GLIBC].inode, 7);
}

Test(mapped, nothing_is_found_where_nothing_is)
{
	static const char *const lines[] = {
		"",
		"/",
		"/lib/libc.so.6",
		"7f12-7f13 r--p 0 fe:01 7 /lib/libc.so.6", /* not run */
		"7f12-7f13 r-xp 0 fe:01 7 /lib/libcrypt.so.1",
		"7f12-7f13 r-xp 0 fe:01 7 /lib/libc.so.6.bak",
		"7f12-7f13 r-xp 0 fe:01 0 [vdso]",
		"7f12-7f13 rwxpppppppppppppp 0 fe:01 x /lib/libc.so.6",
		"zz /lib/libc.so.6",
	};
	struct mapped mapped = { 0 };

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		read_line(&mapped, lines[i]);
	for (int kind = 0; kind < MAPPED_KINDS; kind++)
		cr_expect_not(mapped.files[kind].found);
}

Test(mapped, a_path_that_does_not_fit_is_left_out)
{
	static const char head[] = "7f12-7f13 r-xp 0 fe:01 7 /";
	char line[PROC_PATH_LEN + 512];
	struct mapped mapped = { 0 };

	memset(line, 'a', sizeof(line));
	memcpy(line, head, sizeof(head) - 1);
	memcpy(line + sizeof(line) - sizeof("/libc.so.6"), "/libc.so.6", sizeof("/libc.so.6"));
	cr_expect_eq(mapped_line(line, &mapped), 0);
	cr_expect_not(mapped.files[MAPPED_GLIBC].found);
}
