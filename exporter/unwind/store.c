/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/store.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "unwind/extents.h"
#include "unwind/rules.h"

/* What a file has; all zeros: there is none. One without a table has a row, of none. */
struct stored_file {
	uint32_t row, rows;
	uint32_t page, pages;
	uint16_t *rules; /* owned; of each rule of its table the place of that here */
	size_t rules_len;
};

struct unwind_store {
	struct unwind_arrays arrays;
	struct extents free_rows, free_pages;
	struct stored_file files[UNWIND_FILES_MAX];
	struct rules rules; /* those that are used */
	uint16_t order[UNWIND_RULES_MAX_ALL];
	uint16_t free_rules[UNWIND_RULES_MAX_ALL]; /* places that are not; the last is taken next */
	size_t free_rules_len;
	uint32_t users[UNWIND_RULES_MAX_ALL]; /* files, of each place */
	struct unwind_store_use use;
};
_Static_assert(UNWIND_RULES_MAX_ALL <= UINT16_MAX + 1U, "places of rules");

int unwind_store_new(const struct unwind_arrays *arrays, struct unwind_store **store)
{
	struct unwind_store *made = calloc(1, sizeof(*made));
	int r = made ? 0 : -ENOMEM;

	if (!r)
		r = extents_init(&made->free_rows, 0, UNWIND_ROWS_MAX_ALL);
	if (!r)
		r = extents_init(&made->free_pages, 0, UNWIND_PAGES_MAX);
	if (r) {
		unwind_store_free(made);
		return r;
	}
	for (uint32_t place = UNWIND_RULES_MAX_ALL - 1; place; place--)
		made->free_rules[made->free_rules_len++] = (uint16_t)place;
	made->arrays = *arrays;
	made->rules = (struct rules){ .rules = arrays->rules, .order = made->order };
	*store = made;
	return 0;
}

/* --- rules ---------------------------------------------------------------------------------- */

static bool rule_is_sane(const struct unwind_rule *rule)
{
	return rule->kind < UNWIND_KINDS && rule->base < UNWIND_BASES &&
	       rule->fp_place < UNWIND_PLACES && rule->ra_place < UNWIND_PLACES;
}

/* The place of @rule, for one user more. 0: there is no room for it. */
static uint16_t rule_get(struct unwind_store *store, const struct unwind_rule *rule)
{
	uint16_t place;
	size_t at;

	if (rules_find(&store->rules, rule, &at)) {
		store->users[store->order[at]]++;
		return store->order[at];
	}
	if (!store->free_rules_len)
		return 0;
	place = store->free_rules[--store->free_rules_len];
	rules_insert(&store->rules, at, place);
	store->arrays.rules[place] = *rule;
	store->users[place] = 1;
	return place;
}

static void rule_put(struct unwind_store *store, uint16_t place)
{
	size_t at;

	if (--store->users[place])
		return;
	rules_find(&store->rules, &store->arrays.rules[place], &at);
	rules_remove(&store->rules, at);
	store->free_rules[store->free_rules_len++] = place;
}

/* The rule with index 0 is none, whose place is 0. */
static int rules_get(struct unwind_store *store, const struct unwind_table *table,
		     struct stored_file *file)
{
	file->rules = calloc(table->rules_len + 1, sizeof(*file->rules));
	if (!file->rules)
		return -ENOMEM;
	file->rules_len = table->rules_len;
	for (size_t i = 1; i < table->rules_len; i++) {
		file->rules[i] = rule_get(store, &table->rules[i]);
		if (!file->rules[i])
			return -ENOSPC;
	}
	return 0;
}

/* --- rows ----------------------------------------------------------------------------------- */

static uint64_t page_of(uint64_t address)
{
	return address >> UNWIND_PAGE_BITS;
}

/* Whether one rule holds at every address, whatever the file maps: it needs no pages. */
static bool table_is_of_rule(const struct unwind_table *table)
{
	return table->rows_len == 1 && !table->rows[0].address;
}

/* The first page of a table, and how many there are. */
static uint64_t table_begin(const struct unwind_table *table)
{
	return table->rows_len ? page_of(table->rows[0].address) : 0;
}

static uint64_t table_pages(const struct unwind_table *table)
{
	if (!table->rows_len || table_is_of_rule(table))
		return 0;
	return page_of(table->rows[table->rows_len - 1].address) - table_begin(table) + 1;
}

static void row_set(struct unwind_store *store, uint32_t at, uint32_t row)
{
	uint64_t *element = &store->arrays.rows[at / 2];
	unsigned int shift = (at & 1) * 32;

	*element = (*element & ~(UINT64_C(0xffffffff) << shift)) | (uint64_t)row << shift;
}

/* The first is of none, at the beginning of the first page: so every address has a row. */
static void rows_write(struct unwind_store *store, const struct unwind_table *table,
		       const struct stored_file *file)
{
	row_set(store, file->row, unwind_row(0, 0));
	for (uint32_t i = 1; i < file->rows; i++) {
		const struct unwind_row *row = &table->rows[i - 1];
		uint32_t rule = file->rules[row->rule];

		row_set(store, file->row + i, unwind_row(row->address, rule));
	}
}

/* Each page begins with the row that holds at its first address: often the last of one before. */
static void pages_write(struct unwind_store *store, const struct unwind_table *table,
			const struct stored_file *file)
{
	uint64_t begin = table_begin(table);
	uint32_t end = 1; /* behind the rows of the pages so far */

	for (uint32_t p = 0; p < file->pages; p++) {
		struct unwind_page *page = &store->arrays.pages[file->page + p];
		uint32_t first = end - 1;

		while (end < file->rows && page_of(table->rows[end - 1].address) == begin + p)
			end++;
		*page = (struct unwind_page){ .first = file->row + first, .rows = end - first };
	}
}

static bool table_is_sane(const struct unwind_table *table)
{
	if (table->rows_len > UNWIND_ROWS_MAX || table->rules_len > UNWIND_RULES_MAX)
		return false;
	for (size_t i = 0; i < table->rules_len; i++)
		if (!rule_is_sane(&table->rules[i]))
			return false;
	for (size_t i = 0; i < table->rows_len; i++)
		if (table->rows[i].rule >= table->rules_len ||
		    (i && table->rows[i].address <= table->rows[i - 1].address))
			return false;
	return true;
}

/* --- files ---------------------------------------------------------------------------------- */

static void file_release(struct unwind_store *store, struct stored_file *file)
{
	for (size_t i = 0; i < file->rules_len; i++)
		if (file->rules[i])
			rule_put(store, file->rules[i]);
	free(file->rules);
	extents_give(&store->free_rows, file->row, file->rows);
	extents_give(&store->free_pages, file->page, file->pages);
	*file = (struct stored_file){ 0 };
}

/* Takes what the file needs of each array. */
static int file_take(struct unwind_store *store, const struct unwind_table *table,
		     struct stored_file *file)
{
	uint64_t pages = table_pages(table);
	int r;

	if (pages > UNWIND_PAGES_MAX)
		return -ENOSPC;
	r = rules_get(store, table, file);
	if (!r)
		r = extents_take(&store->free_rows, (uint32_t)table->rows_len + 1, &file->row);
	if (r)
		return r;
	file->rows = (uint32_t)table->rows_len + 1;
	r = extents_take(&store->free_pages, (uint32_t)pages, &file->page);
	if (!r)
		file->pages = (uint32_t)pages;
	return r;
}

static uint32_t file_number_free(const struct unwind_store *store)
{
	uint32_t i = 1;

	while (i < UNWIND_FILES_MAX && store->files[i].rows)
		i++;
	return i;
}

static struct unwind_file file_show(const struct unwind_table *table,
				    const struct stored_file *file)
{
	struct unwind_file shown = {
		.begin = table_begin(table) << UNWIND_PAGE_BITS,
		.page = file->page,
		.pages = file->pages,
	};

	if (table_is_of_rule(table)) {
		shown.page = file->rules[table->rows[0].rule];
		shown.pages = UNWIND_ONE_RULE;
	}
	return shown;
}

int unwind_store_add(struct unwind_store *store, const struct unwind_table *table, uint32_t *number)
{
	uint32_t free_number = file_number_free(store);
	struct stored_file *file;
	int r;

	if (!table_is_sane(table))
		return -EINVAL;
	if (free_number == UNWIND_FILES_MAX)
		return -ENOSPC;
	file = &store->files[free_number];
	r = file_take(store, table, file);
	if (r) {
		file_release(store, file);
		return r;
	}
	rows_write(store, table, file);
	pages_write(store, table, file);
	store->arrays.files[free_number] = file_show(table, file);
	store->use.files++;
	store->use.rows += file->rows;
	store->use.pages += file->pages;
	*number = free_number;
	return 0;
}

void unwind_store_remove(struct unwind_store *store, uint32_t number)
{
	struct stored_file *file = &store->files[number];

	store->arrays.files[number] = (struct unwind_file){ 0 };
	store->use.files--;
	store->use.rows -= file->rows;
	store->use.pages -= file->pages;
	file_release(store, file);
}

struct unwind_store_use unwind_store_use(const struct unwind_store *store)
{
	struct unwind_store_use use = store->use;

	use.rules = store->rules.len;
	return use;
}

void unwind_store_free(struct unwind_store *store)
{
	if (!store)
		return;
	for (uint32_t i = 1; i < UNWIND_FILES_MAX; i++)
		file_release(store, &store->files[i]);
	extents_free(&store->free_rows);
	extents_free(&store->free_pages);
	free(store);
}
