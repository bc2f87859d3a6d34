/* SPDX-License-Identifier: Apache-2.0 */
/* A store in memory of the test's, in place of that which the kernel side reads. */
#ifndef WORKLOAD_TESTS_STORED_H
#define WORKLOAD_TESTS_STORED_H

#include <criterion/criterion.h>
#include <sys/mman.h>

#include "unwind/store.h"

struct stored {
	struct unwind_arrays arrays;
	struct unwind_store *store;
};

static inline void *zeros(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);

	cr_assert_neq(memory, MAP_FAILED);
	return memory;
}

static inline struct stored stored_new(void)
{
	struct stored stored = {
		.arrays = {
			.rows = zeros(UNWIND_ROWS_MAX_ALL * sizeof(uint32_t)),
			.rules = zeros(UNWIND_RULES_MAX_ALL * sizeof(struct unwind_rule)),
			.pages = zeros(UNWIND_PAGES_MAX * sizeof(struct unwind_page)),
			.files = zeros(UNWIND_FILES_MAX * sizeof(struct unwind_file)),
		},
	};

	cr_assert_eq(unwind_store_new(&stored.arrays, &stored.store), 0);
	return stored;
}

#endif
