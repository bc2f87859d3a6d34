/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of all files that are run, in memory that the kernel side reads (abi/unwind.h). Equal
 * rules of several files are one. What a file has is given back when it is removed, at a time when
 * no program of the kernel side may be reading it.
 *
 * One thread.
 */
#ifndef WORKLOAD_UNWIND_STORE_H
#define WORKLOAD_UNWIND_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "unwind/table.h"

/* The arrays, of zeros, as large as abi/unwind.h says. Borrowed. */
struct unwind_arrays {
	uint64_t *rows;
	struct unwind_rule *rules;
	struct unwind_page *pages;
	struct unwind_file *files;
};

struct unwind_store;

/* 0 with *@store, which unwind_store_free() releases; -ENOMEM. */
int unwind_store_new(const struct unwind_arrays *arrays, struct unwind_store **store);

/*
 * Adds @table, which may have no rows: then stacks end in the file, but its frames are known. 0
 * with the number of the file, never 0; -ENOSPC: there is no room for it, and
 * nothing has changed; -EINVAL: it is no table: it is checked, and may come from a process that is
 * hostile; -ENOMEM.
 */
int unwind_store_add(struct unwind_store *store, const struct unwind_table *table, uint32_t *file);

/* Gives back what was added under that number. */
void unwind_store_remove(struct unwind_store *store, uint32_t file);

struct unwind_store_use {
	size_t files, rows, rules, pages;
};

struct unwind_store_use unwind_store_use(const struct unwind_store *store);

void unwind_store_free(struct unwind_store *store);

#endif
