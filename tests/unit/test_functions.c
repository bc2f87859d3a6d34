/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "identity/functions.h"

static int memory_file(const void *bytes, size_t len)
{
	int fd = memfd_create("functions", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	return fd;
}

/* The first bytes of a function in memory are those of the file where it is said to be. */
Test(functions, are_where_the_running_library_has_them)
{
	static const char *const names[] = { "pthread_mutex_lock", "no_such_function", "strlen" };
	_cleanup_(cleanup_close) int fd = -1;
	uint64_t offsets[3] = { 7, 7, 7 };
	unsigned char in_file[16];
	void *library = dlopen("libc.so.6", RTLD_NOW);
	struct link_map *map;

	cr_assert_not_null(library);
	cr_assert_eq(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	fd = open(map->l_name, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_expect_eq(functions_find(fd, names, 3, offsets), 1);
	cr_expect_eq(offsets[1], 0);
	cr_expect_eq(offsets[2], 0, "an indirect function is none");
	cr_assert_eq(pread(fd, in_file, sizeof(in_file), (off_t)offsets[0]), sizeof(in_file));
	cr_expect_arr_eq(in_file, dlsym(library, "pthread_mutex_lock"), sizeof(in_file));
}

Test(functions, are_found_in_a_program_by_the_symbols_that_stripping_removes)
{
	static const char *const names[] = { "functions_find" };
	_cleanup_(cleanup_close) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t offset;

	cr_expect_eq(functions_find(fd, names, 1, &offset), 1);
	cr_expect_neq(offset, 0);
}

Test(functions, are_not_in_what_is_no_program)
{
	static const char *const names[] = { "main" };
	_cleanup_(cleanup_close) int empty = memory_file("", 0), text = memory_file("#!/bin/sh", 9);
	_cleanup_(cleanup_close) int directory = open("/", O_RDONLY | O_CLOEXEC);
	uint64_t offset = 7;

	cr_expect_eq(functions_find(empty, names, 1, &offset), -ENOEXEC);
	cr_expect_eq(functions_find(text, names, 1, &offset), -ENOEXEC);
	cr_expect_eq(functions_find(directory, names, 1, &offset), -ENOEXEC);
	cr_expect_eq(functions_find(-1, names, 1, &offset), -EBADF);
	cr_expect_eq(offset, 7, "untouched");
}

/* Every header field of a real program set to the worst: nothing is found, nothing breaks. */
Test(functions, survive_a_file_that_lies)
{
	static const char *const names[] = { "functions_find" };
	unsigned char bytes[4096];
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(exe, bytes, sizeof(bytes));
	uint64_t offset;

	close(exe);
	cr_assert_eq(len, sizeof(bytes));
	for (size_t at = 4; at < sizeof(Elf64_Ehdr); at++) {
		unsigned char kept = bytes[at];
		int fd;

		bytes[at] = 0xff;
		fd = memory_file(bytes, sizeof(bytes));
		cr_expect_leq(functions_find(fd, names, 1, &offset), 0);
		close(fd);
		bytes[at] = kept;
	}
}
