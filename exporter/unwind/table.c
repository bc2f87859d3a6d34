/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/array.h"
#include "unwind/cfi.h"
#include "unwind/generator.h"
#include "unwind/go.h"
#include "unwind/image.h"
#include "unwind/pclntab.h"
#include "unwind/rules.h"

/*
 * Compilers align functions to 16 bytes, and what fills the space in between is not executed. There
 * the last row of a function goes on up to the next one: a row of none for each would be a quarter
 * more. Code that is so short, and in no function, has a wrong rule.
 */
#define GAP_MIN 16

struct make {
	struct unwind_table *table;
	size_t steps; /* of functions of Go, which share them: bounded */
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

static int row_add_rule(struct make *make, const struct unwind_rule *rule, uint64_t address)
{
	uint32_t index = rule->kind == UNWIND_NONE ? 0 : rule_index(make, rule);

	make->table->states_bad += !index;
	return row_add(make->table, address, index);
}

/* By the program of its frame information. 0; -EINVAL: it cannot be followed; -E2BIG or -ENOMEM. */
static int rows_by_program(struct make *make, const struct cfi_common *common,
			   const struct frames_function *function)
{
	struct cfi_program program;
	struct unwind_rule rule;
	uint64_t begin;
	int r, added;

	cfi_begin(&program, common, function->code, function->begin);
	for (;;) {
		r = cfi_next(&program, &begin);
		if (r <= 0 || begin >= function->end)
			return r < 0 ? r : 0;
		cfi_rule(common, &program.state, &rule);
		added = row_add_rule(make, &rule, begin);
		if (added)
			return added;
	}
}

/* The same by the steps of a function of Go. */
static int rows_by_steps(struct make *make, const struct frames_common *common,
			 const struct frames_function *function)
{
	struct pclntab_step step;
	struct unwind_rule rule;
	int r, added;

	if (common->kind != UNWIND_CFA) {
		rule = go_rule(common, 0);
		return row_add_rule(make, &rule, function->begin);
	}
	pclntab_begin(function->code, function->begin, (uint32_t)common->cfi.code_factor, &step);
	for (;;) {
		r = make->steps++ < UNWIND_STEPS_MAX ? pclntab_next(&step) : -E2BIG;
		if (r <= 0 || step.begin >= function->end)
			return r < 0 ? r : 0;
		rule = go_rule(common, step.bytes);
		added = row_add_rule(make, &rule, step.begin);
		if (added)
			return added;
	}
}

static int rows_by_frame_pointer(struct make *make, const struct frames_function *function)
{
	const struct unwind_rule rule = generator_rule(true);

	return row_add_rule(make, &rule, function->begin);
}

static int rows_by_rules(struct make *make, const struct frames_function *function)
{
	struct reader code = function->code;
	struct frames_rule told;
	int r = 0;

	while (!r && reader_left(&code) >= sizeof(told)) {
		memcpy(&told, code.at, sizeof(told));
		code.at += sizeof(told);
		/* Where nothing is known is no state that rules cannot say. */
		r = told.rule.kind == UNWIND_NONE ? row_add(make->table, told.address, 0)
						  : row_add_rule(make, &told.rule, told.address);
	}
	return r;
}

/* A function that cannot be followed to its end has one row, of none. */
static int function_add(struct make *make, const struct frames_common *common,
			const struct frames_function *function)
{
	struct unwind_table *table = make->table;
	size_t before = table->rows_len;
	int r;

	switch (common->told) {
	case FRAMES_STEPS:
		r = rows_by_steps(make, common, function);
		break;
	case FRAMES_POINTER:
		r = rows_by_frame_pointer(make, function);
		break;
	case FRAMES_RULES:
		r = rows_by_rules(make, function);
		break;
	default:
		r = rows_by_program(make, &common->cfi, function);
		break;
	}
	if (r != -EINVAL)
		return r;
	table->rows_len = before;
	table->functions_bad++;
	return row_add(table, function->begin, 0);
}

/* What is behind one that is told by rules is another, of which nothing is known. */
static uint64_t gap_min(const struct frames_common *common)
{
	return common->told == FRAMES_RULES ? 1 : GAP_MIN;
}

static int functions_add(struct make *make, const struct frames *frames)
{
	int r = 0;

	for (size_t i = 0; !r && i < frames->functions_len; i++) {
		const struct frames_function *function = &frames->functions[i];
		const struct frames_common *common = &frames->commons[function->common];
		bool last = i + 1 == frames->functions_len;

		r = function_add(make, common, function);
		if (!r && (last || function[1].begin - function->end >= gap_min(common)))
			r = row_add(make->table, function->end, 0);
	}
	return r;
}

/* 0 with the table of @make, which has the rule of none; -ENOMEM. */
static int make_begin(struct make *make)
{
	static const struct unwind_rule none;
	struct unwind_table *table = make->table;

	table->rules = calloc(UNWIND_RULES_MAX, sizeof(*table->rules));
	if (!table->rules)
		return -ENOMEM;
	make->rules = (struct rules){ .rules = table->rules, .order = make->order };
	rule_index(make, &none);
	return 0;
}

static int table_fill(struct unwind_table *table, const struct frames *frames)
{
	struct make make = { .table = table };
	int r = make_begin(&make);

	if (r)
		return r;
	table->functions = frames->functions_len + frames->bad;
	table->functions_bad = frames->bad;
	return functions_add(&make, frames);
}

static int table_of(const struct frames *frames, struct unwind_table *table)
{
	struct unwind_table made = { 0 };
	int r = frames->functions_len ? table_fill(&made, frames) : -ENODATA;

	if (r)
		unwind_table_free(&made);
	else
		*table = made;
	return r;
}

int unwind_table_from(const struct frames_section *section, struct unwind_table *table)
{
	_cleanup_(frames_free) struct frames frames = { 0 };
	int r = frames_read(section, &frames);

	return r ? r : table_of(&frames, table);
}

int unwind_table_make(const void *image, size_t bytes, struct unwind_table *table)
{
	_cleanup_(frames_free) struct frames frames = { 0 };
	int r = image_frames_read(image, bytes, &frames);

	if (r)
		return r;
	r = table_of(&frames, table);
	/* What instructions tell must not cost a file what its frame information tells. */
	if (r == -E2BIG && frames_leave_out(&frames, FRAMES_RULES))
		r = table_of(&frames, table);
	return r;
}

int unwind_table_of_rule(const struct unwind_rule *rule, struct unwind_table *table)
{
	struct unwind_table made = { 0 };
	struct make make = { .table = &made };
	int r = make_begin(&make);

	if (!r)
		r = row_add_rule(&make, rule, 0);
	if (r)
		unwind_table_free(&made);
	else
		*table = made;
	return r;
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t address)
{
	size_t from = array_above(table->rows, table->rows_len, sizeof(*table->rows), address);

	return &table->rules[from ? table->rows[from - 1].rule : 0];
}

void unwind_table_free(struct unwind_table *table)
{
	free(table->rows);
	free(table->rules);
	*table = (struct unwind_table){ 0 };
}
