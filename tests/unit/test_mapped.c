/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "identity/mapped.h"
#include "identity/maps.h"

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
		"7f12-7f13 r 0 fe:01 7 /lib/libc.so.6",
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

/* --- opening -------------------------------------------------------------------------------- */

#define LIBRARY "/library"

/* A process's folder in /proc with a file below its root. */
struct place {
	char folder[32];
	int dir_fd;
	struct mapped_file file;
};

static struct place place_make(void)
{
	struct place place = { .folder = "/tmp/mapped-XXXXXX", .file = { .path = LIBRARY } };
	struct stat stat;
	int fd;

	cr_assert_not_null(mkdtemp(place.folder));
	place.dir_fd = open(place.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(place.dir_fd, 0);
	cr_assert_eq(mkdirat(place.dir_fd, "root", 0700), 0);
	fd = openat(place.dir_fd, "root" LIBRARY, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	cr_assert_eq(fstat(fd, &stat), 0);
	cr_assert_eq(symlinkat("root" LIBRARY, place.dir_fd, "exe"), 0);
	close(fd);
	place.file.inode = stat.st_ino;
	return place;
}

static void place_remove(struct place *place)
{
	unlinkat(place->dir_fd, "exe", 0);
	unlinkat(place->dir_fd, "root" LIBRARY, 0);
	unlinkat(place->dir_fd, "root", AT_REMOVEDIR);
	close(place->dir_fd);
	rmdir(place->folder);
}

Test(mapped, the_file_that_was_mapped_is_opened)
{
	struct place place = place_make();
	int library = mapped_open(place.dir_fd, &place.file);
	int executable = maps_open_executable(place.dir_fd, 0);

	cr_expect_geq(library, 0);
	cr_expect_geq(executable, 0);
	close(library);
	close(executable);
	place_remove(&place);
}

Test(mapped, a_file_that_has_taken_its_name_is_not_opened)
{
	struct place place = place_make();

	place.file.inode++;
	cr_expect_eq(mapped_open(place.dir_fd, &place.file), -ENOENT);
	place_remove(&place);
}

/* The kernel would wait 45 s for its holder, and for as long again with each file. */
Test(mapped, nobody_waits_for_the_holder_of_a_lease, .timeout = 20)
{
	struct place place = place_make();
	int held = openat(place.dir_fd, "root" LIBRARY, O_RDWR | O_CLOEXEC);

	signal(SIGIO, SIG_IGN); /* the holder is asked to give it up, and does not */
	cr_assert_eq(fcntl(held, F_SETLEASE, F_WRLCK), 0);
	cr_expect_eq(mapped_open(place.dir_fd, &place.file), -EWOULDBLOCK);
	cr_expect_eq(maps_open_executable(place.dir_fd, 0), -EWOULDBLOCK);
	fcntl(held, F_SETLEASE, F_UNLCK);
	close(held);
	place_remove(&place);
}

Test(mapped, what_is_no_regular_file_is_not_opened, .timeout = 20)
{
	struct place place = place_make();

	unlinkat(place.dir_fd, "root" LIBRARY, 0);
	cr_assert_eq(mkfifoat(place.dir_fd, "root" LIBRARY, 0700), 0);
	cr_expect_eq(maps_open_executable(place.dir_fd, 0), -ENOENT);
	place_remove(&place);
}
