/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of files in the arrays that the kernel side reads, which are read here as it reads them.
 */
#include "unwinding.h"

#include <errno.h>
#include <stdlib.h>

#include "stored.h"

/* As abi/unwind.h says, row by row. */
static const struct unwind_rule *stored_find(const struct stored *stored, uint32_t number,
					     uint64_t address)
{
	const struct unwind_file *file = &stored->arrays.files[number];
	const struct unwind_page *page;
	uint64_t p = (address - file->begin) >> UNWIND_PAGE_BITS;
	uint32_t rule = 0;

	if (file->pages == UNWIND_ONE_RULE)
		return &stored->arrays.rules[file->page];
	if (address < file->begin || p >= file->pages)
		return &stored->arrays.rules[0];
	page = &stored->arrays.pages[file->page + p];
	for (uint32_t i = 0; i < page->rows; i++) {
		uint32_t at = page->first + i;
		uint32_t row = (uint32_t)(stored->arrays.rows[at / 2] >> (at & 1) * 32);

		if (!i || unwind_row_low(row) <= (address & 0xffff))
			rule = unwind_row_rule(row);
	}
	return &stored->arrays.rules[rule];
}

static void expect_all(const struct stored *stored, uint32_t number,
		       const struct unwind_table *table)
{
	for (size_t i = 0; i < table->rows_len; i++) {
		uint64_t begin = table->rows[i].address;
		uint64_t end = i + 1 < table->rows_len ? table->rows[i + 1].address : begin + 1;
		const uint64_t tried[] = { begin, end - 1, begin | 0xffff, (begin | 0xffff) + 1 };

		for (size_t k = 0; k < sizeof(tried) / sizeof(*tried); k++) {
			if (tried[k] < begin || tried[k] >= end)
				continue;
			cr_assert_arr_eq(stored_find(stored, number, tried[k]),
					 unwind_table_find(table, tried[k]),
					 sizeof(struct unwind_rule), "%#lx", tried[k]);
		}
	}
	cr_expect_eq(stored_find(stored, number, table->rows[0].address - 1)->kind, UNWIND_NONE);
	cr_expect_eq(stored_find(stored, number, UINT64_MAX)->kind, UNWIND_NONE);
}

Test(unwind_store, has_what_the_tables_have)
{
	struct stored stored = stored_new();
	struct unwind_table program = table_of("/proc/self/exe"),
			    again = table_of("/proc/self/exe");
	uint32_t numbers[2];

	cr_assert_eq(unwind_store_add(stored.store, &program, &numbers[0]), 0);
	cr_assert_eq(unwind_store_add(stored.store, &again, &numbers[1]), 0);
	cr_expect_neq(numbers[0], 0);
	cr_expect_neq(numbers[0], numbers[1]);
	expect_all(&stored, numbers[0], &program);
	expect_all(&stored, numbers[1], &again);
	cr_expect_eq(unwind_store_use(stored.store).rules, program.rules_len - 1,
		     "equal rules are one");
	unwind_store_remove(stored.store, numbers[0]);
	expect_all(&stored, numbers[1], &again);
	cr_expect_eq(stored_find(&stored, numbers[0], program.rows[0].address)->kind, UNWIND_NONE);
	unwind_store_remove(stored.store, numbers[1]);
	cr_expect_eq(unwind_store_use(stored.store).rules, 0);
	cr_expect_eq(unwind_store_use(stored.store).rows, 0);
	cr_expect_eq(unwind_store_use(stored.store).pages, 0);
	unwind_table_free(&program);
	unwind_table_free(&again);
	unwind_store_free(stored.store);
}

/* A table of @rows rows, of which each has a rule of its own, one by one from @offset on. */
static struct unwind_table made_table(uint64_t address, uint32_t rows, int32_t offset)
{
	struct unwind_table table = {
		.rows = calloc(rows, sizeof(*table.rows)),
		.rows_len = rows,
		.rules = calloc(rows + 1, sizeof(*table.rules)),
		.rules_len = rows + 1,
	};

	for (uint32_t i = 0; i < rows; i++) {
		table.rows[i] = (struct unwind_row){ .address = address + 16 * i, .rule = i + 1 };
		table.rules[i + 1] = (struct unwind_rule){ .kind = UNWIND_CFA,
							   .ra_place = UNWIND_AT_CFA,
							   .cfa_offset = offset + (int32_t)i };
	}
	return table;
}

Test(unwind_store, refuses_what_is_no_table)
{
	struct stored stored = stored_new();
	struct unwind_table table = made_table(0x1000, 4, 8);
	uint32_t number;

	table.rows[2].address = table.rows[1].address;
	cr_expect_eq(unwind_store_add(stored.store, &table, &number), -EINVAL);
	table.rows[2].address++;
	table.rows[3].rule = 5;
	cr_expect_eq(unwind_store_add(stored.store, &table, &number), -EINVAL);
	table.rows[3].rule = 4;
	table.rules[4].kind = UNWIND_KINDS;
	cr_expect_eq(unwind_store_add(stored.store, &table, &number), -EINVAL);
	table.rules[4].kind = UNWIND_CFA;
	cr_expect_eq(unwind_store_add(stored.store, &table, &number), 0);
	unwind_table_free(&table);
	unwind_store_free(stored.store);
}

Test(unwind_store, has_room_again_for_what_others_have_given_back)
{
	struct stored stored = stored_new();
	struct unwind_table tables[5];
	uint32_t numbers[5] = { 0 };
	int r = 0;

	for (int i = 0; i < 5; i++)
		tables[i] = made_table(0x1000, UNWIND_RULES_MAX - 1, 8 + 5000 * i);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(unwind_store_add(stored.store, &tables[i], &numbers[i]), 0);
	r = unwind_store_add(stored.store, &tables[4], &numbers[4]);
	cr_expect_eq(r, -ENOSPC, "%d", r);
	cr_expect_eq(unwind_store_use(stored.store).files, 4);
	cr_expect_eq(unwind_store_use(stored.store).rules, 4 * (UNWIND_RULES_MAX - 1));
	unwind_store_remove(stored.store, numbers[1]);
	cr_expect_eq(unwind_store_add(stored.store, &tables[4], &numbers[4]), 0);
	for (int i = 0; i < 5; i++) {
		if (i != 1)
			expect_all(&stored, numbers[i], &tables[i]);
		unwind_table_free(&tables[i]);
	}
	unwind_store_free(stored.store);
}

/* A file whose first and last function are as far apart as it likes takes as many pages. */
Test(unwind_store, has_a_limit_of_pages)
{
	struct stored stored = stored_new();
	struct unwind_table table = made_table(0x1000, 2, 8);
	uint32_t number;

	table.rows[1].address = (uint64_t)UNWIND_PAGES_MAX << UNWIND_PAGE_BITS;
	cr_expect_eq(unwind_store_add(stored.store, &table, &number), -ENOSPC);
	table.rows[1].address--;
	cr_expect_eq(unwind_store_add(stored.store, &table, &number), 0);
	expect_all(&stored, number, &table);
	table.rows[1].address = UINT64_MAX;
	cr_expect_eq(unwind_store_add(stored.store, &table, &number), -ENOSPC);
	unwind_table_free(&table);
	unwind_store_free(stored.store);
}

Test(unwind_store, has_a_rule_that_holds_everywhere)
{
	const struct unwind_rule rule = { .kind = UNWIND_CFA, .cfa_offset = 48 };
	struct stored stored = stored_new();
	struct unwind_table table;
	uint32_t number;

	cr_assert_eq(unwind_table_of_rule(&rule, &table), 0);
	cr_expect_arr_eq(unwind_table_find(&table, 0), &rule, sizeof(rule));
	cr_expect_arr_eq(unwind_table_find(&table, UINT64_MAX), &rule, sizeof(rule));
	cr_assert_eq(unwind_store_add(stored.store, &table, &number), 0);
	cr_expect_arr_eq(stored_find(&stored, number, 0), &rule, sizeof(rule));
	cr_expect_arr_eq(stored_find(&stored, number, UINT64_MAX), &rule, sizeof(rule));
	cr_expect_eq(unwind_store_use(stored.store).pages, 0);
	unwind_store_remove(stored.store, number);
	cr_expect_eq(stored_find(&stored, number, 0)->kind, UNWIND_NONE);
	cr_expect_eq(unwind_store_use(stored.store).rules, 0);
	unwind_table_free(&table);
	unwind_store_free(stored.store);
}

Test(unwind_store, knows_a_file_without_a_table)
{
	struct stored stored = stored_new();
	const struct unwind_table none = { 0 };
	uint32_t number = 0, other = 0;

	cr_assert_eq(unwind_store_add(stored.store, &none, &number), 0);
	cr_assert_eq(unwind_store_add(stored.store, &none, &other), 0);
	cr_expect_neq(number, 0);
	cr_expect_neq(number, other);
	cr_expect_eq(unwind_store_use(stored.store).files, 2);
	cr_expect_eq(stored_find(&stored, number, 0)->kind, UNWIND_NONE);
	cr_expect_eq(stored_find(&stored, number, 0x1000)->kind, UNWIND_NONE);
	unwind_store_remove(stored.store, number);
	unwind_store_remove(stored.store, other);
	cr_expect_eq(unwind_store_use(stored.store).rows, 0);
	unwind_store_free(stored.store);
}
