/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/array.h"
#include "unwind/cfi.h"
#include "unwind/go.h"
#include "unwind/image.h"
#include "unwind/rules.h"

/*
 * Compilers align functions to 16 bytes, and what fills the space in between is not executed. There
 * the last row of a function goes on up to the next one: a row of none for each would be a quarter
 * more. Code that is so short, and in no function, has a wrong rule.
 */
#define GAP_MIN 16

struct make {
	const struct go_code *go;
	struct unwind_table *table;
	struct rules rules;
	uint16_t order[UNWIND_RULES_MAX];
};
_Static_assert(UNWIND_RULES_MAX <= UINT16_MAX, "indices of rules");

/* The index of @rule; 0, which is none, if there is no room for it. */
static uint32_t rule_index(struct make *make, const struct unwind_rule *rule)
{
	struct unwind_table *table = make->table;
	size_t at, len = table->rules_len;

	if (rules_find(&make->rules, rule, &at))
		return make->order[at];
	if (len == UNWIND_RULES_MAX)
		return 0;
	rules_insert(&make->rules, at, (uint16_t)len);
	table->rules[len] = *rule;
	return (uint32_t)table->rules_len++;
}

/* From @address on @rule holds. 0, -E2BIG or -ENOMEM. */
static int row_add(struct unwind_table *table, uint64_t address, uint32_t rule)
{
	struct unwind_row *rows;

	if (table->rows_len && table->rows[table->rows_len - 1].rule == rule)
		return 0;
	rows = array_grow(table->rows, table->rows_len, &table->rows_size, UNWIND_ROWS_MAX,
			  sizeof(*rows));
	if (!rows)
		return -errno;
	table->rows = rows;
	rows[table->rows_len++] = (struct unwind_row){ .address = address, .rule = rule };
	return 0;
}

/* Rows ascend, also where the function before goes on up to here. */
static uint64_t row_begin(const struct make *make, uint64_t address)
{
	const struct unwind_table *table = make->table;
	uint64_t begin = go_row_begin(make->go, address);

	return table->rows_len && table->rows[table->rows_len - 1].address >= begin ? address
										    : begin;
}

static int row_add_state(struct make *make, const struct frames_common *common,
			 const struct cfi_program *program, uint64_t address)
{
	struct unwind_rule rule;
	uint32_t index = 0;
	bool said = cfi_rule(program->common, &program->state, &rule);

	if (common->debug)
		said = go_rule(make->go, &common->cfi, address, &rule);
	if (said)
		index = rule_index(make, &rule);
	make->table->states_bad += !index;
	if (common->debug)
		address = row_begin(make, address);
	return row_add(make->table, address, index);
}

/* A function whose program cannot be followed to its end has one row, of none. */
static int function_add(struct make *make, const struct frames_common *common,
			const struct frames_function *function)
{
	struct unwind_table *table = make->table;
	size_t before = table->rows_len;
	struct cfi_program program;
	uint64_t begin;
	int r, added = 0;

	cfi_begin(&program, &common->cfi, function->code, function->begin);
	for (;;) {
		r = cfi_next(&program, &begin);
		if (r <= 0 || begin >= function->end)
			break;
		added = row_add_state(make, common, &program, begin);
		if (added)
			return added;
	}
	if (r >= 0)
		return 0;
	table->rows_len = before;
	table->functions_bad++;
	return row_add(table, function->begin, 0);
}

static int functions_add(struct make *make, const struct frames *frames)
{
	int r = 0;

	for (size_t i = 0; !r && i < frames->functions_len; i++) {
		const struct frames_function *function = &frames->functions[i];
		bool last = i + 1 == frames->functions_len;

		r = function_add(make, &frames->commons[function->common], function);
		if (!r && (last || function[1].begin - function->end >= GAP_MIN))
			r = row_add(make->table, function->end, 0);
	}
	return r;
}

static int table_fill(struct unwind_table *table, const struct frames *frames,
		      const struct go_code *go)
{
	static const struct unwind_rule none;
	struct make make = { .go = go, .table = table };

	table->rules = calloc(UNWIND_RULES_MAX, sizeof(*table->rules));
	if (!table->rules)
		return -ENOMEM;
	make.rules = (struct rules){ .rules = table->rules, .order = make.order };
	table->functions = frames->functions_len + frames->bad;
	table->functions_bad = frames->bad;
	rule_index(&make, &none);
	return functions_add(&make, frames);
}

static int table_of(const struct frames *frames, const struct go_code *go,
		    struct unwind_table *table)
{
	struct unwind_table made = { 0 };
	int r = frames->functions_len ? table_fill(&made, frames, go) : -ENODATA;

	if (r)
		unwind_table_free(&made);
	else
		*table = made;
	return r;
}

int unwind_table_from(const struct frames_section *section, struct unwind_table *table)
{
	_cleanup_(frames_free) struct frames frames = { 0 };
	const struct go_code none = { 0 };
	int r = frames_read(section, &frames);

	return r ? r : table_of(&frames, &none, table);
}

int unwind_table_make(const void *image, size_t bytes, struct unwind_table *table)
{
	_cleanup_(frames_free) struct frames frames = { 0 };
	struct go_code go;
	int r = image_frames_read(image, bytes, &frames);

	if (!r)
		r = go_find(image, bytes, &go);
	return r ? r : table_of(&frames, &go, table);
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t address)
{
	size_t from = 0, to = table->rows_len;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (table->rows[middle].address > address)
			to = middle;
		else
			from = middle + 1;
	}
	return &table->rules[from ? table->rows[from - 1].rule : 0];
}

void unwind_table_free(struct unwind_table *table)
{
	free(table->rows);
	free(table->rules);
	*table = (struct unwind_table){ 0 };
}
