/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables of the files that this process has loaded. */
#ifndef WORKLOAD_TESTS_UNWINDING_H
#define WORKLOAD_TESTS_UNWINDING_H

#include <criterion/criterion.h>

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "unwind/table.h"

#define TO32(n) (n) & 0xff, (n) >> 8 & 0xff, (n) >> 16 & 0xff, (n) >> 24 & 0xff

/* The rule of @table at @address: the CFA is rsp + @offset; 0: there is none. */
static inline void expect_offset(const struct unwind_table *table, uint64_t address, int offset)
{
	const struct unwind_rule *rule = unwind_table_find(table, address);

	cr_expect_eq(rule->kind, offset ? UNWIND_CFA : UNWIND_NONE, "at %#lx", address);
	cr_expect_eq(rule->cfa_offset, offset, "at %#lx: %d", address, rule->cfa_offset);
}

/* The bytes of a file, for as long as the test lives. */
static inline const void *image_of(const char *path, size_t *bytes)
{
	_cleanup_(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	void *image;

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(fstat(fd, &stat), 0);
	*bytes = (size_t)stat.st_size;
	image = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert_neq(image, MAP_FAILED);
	return image;
}

static inline struct unwind_table table_of(const char *path)
{
	struct unwind_table table;
	size_t bytes;
	const void *image = image_of(path, &bytes);

	cr_assert_eq(unwind_table_make(image, bytes, &table), 0, "%s", path);
	return table;
}

#endif
