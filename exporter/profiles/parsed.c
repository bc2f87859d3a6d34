/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/parsed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* --- answers --------------------------------------------------------------------------------- */

static bool table_is_sane(const struct parser_table *table)
{
	bool made = table->reason == PARSER_MADE;

	return table->reason < PARSER_REASONS && table->rows <= UNWIND_ROWS_MAX &&
	       table->rules <= UNWIND_RULES_MAX && made == !!table->rows &&
	       made == !!table->rules && program_is_sane(&table->program);
}

static bool names_are_sane(const struct names_found *names)
{
	return names->texts_bytes && names->texts_bytes <= NAMES_TEXTS_BYTES &&
	       names->no_room <= NAMES_MAX;
}

bool parsed_check(const struct parser_answer *answer)
{
	switch (answer->what) {
	case PARSER_TABLE:
		return table_is_sane(&answer->table);
	case PARSER_NAMES:
		return names_are_sane(&answer->names);
	default:
		return false;
	}
}

static bool is_answer(const struct parser_answer *answer, enum parser_what what)
{
	return answer->what == what && parsed_check(answer);
}

/* A copy of @len bytes that do not stand still. NULL: there is no memory. */
static void *copy_of(const void *bytes, size_t len)
{
	void *copy = malloc(len + 1);

	return copy ? memcpy(copy, bytes, len) : NULL;
}

/* --- the table ------------------------------------------------------------------------------- */

int parsed_table(const struct parser_answer *answer, const union parser_shared *shared,
		 struct unwind_table *table)
{
	const struct parser_table *told = &answer->table;
	struct unwind_table copy;

	if (!is_answer(answer, PARSER_TABLE))
		return -EPROTO;
	if (told->reason != PARSER_MADE)
		return -ENODATA;
	copy = (struct unwind_table){
		.rows = copy_of(shared->table.rows, told->rows * sizeof(*copy.rows)),
		.rows_len = told->rows,
		.rows_size = told->rows,
		.rules = copy_of(shared->table.rules, told->rules * sizeof(*copy.rules)),
		.rules_len = told->rules,
		.functions = told->functions,
		.functions_bad = told->functions_bad,
		.states_bad = told->states_bad,
	};
	if (!copy.rows || !copy.rules) {
		unwind_table_free(&copy);
		return -ENOMEM;
	}
	*table = copy;
	return 0;
}

/* --- names ----------------------------------------------------------------------------------- */

/* Each text has an end of its own, so that a check reads no further than NAME_BYTES_MAX. */
static bool text_is_sane(const struct parsed_names *names, const struct name *name, size_t size)
{
	const char *text = names->texts + name->text;

	if (!name->text)
		return !name->bytes;
	return name->bytes && name->bytes <= NAME_BYTES_MAX && name->text < size &&
	       name->bytes < size - name->text && !text[name->bytes] &&
	       strnlen(text, name->bytes) == name->bytes && utf8_is_valid(text);
}

static bool rows_are_sane(const struct parsed_names *names, const uint64_t *addresses, size_t size)
{
	for (size_t i = 0; i < names->len; i++)
		if (names->names[i].begin > addresses[i] ||
		    !text_is_sane(names, &names->names[i], size))
			return false;
	return true;
}

int parsed_names(const struct parser_answer *answer, const union parser_shared *shared,
		 const uint64_t *addresses, size_t len, struct parsed_names *out)
{
	const size_t size = answer->names.texts_bytes;
	struct parsed_names copy;
	int r = 0;

	if (!is_answer(answer, PARSER_NAMES) || len > NAMES_MAX)
		return -EPROTO;
	copy = (struct parsed_names){
		.names = copy_of(shared->names.names, len * sizeof(*copy.names)),
		.len = len,
		.texts = copy_of(shared->names.texts, size),
		.no_room = answer->names.no_room,
		.too_large = answer->names.too_large,
	};
	if (!copy.names || !copy.texts)
		r = -ENOMEM;
	else if (!rows_are_sane(&copy, addresses, size))
		r = -EPROTO;
	if (r)
		parsed_names_free(&copy);
	else
		*out = copy;
	return r;
}

const char *parsed_names_text(const struct parsed_names *names, size_t i)
{
	return names->names[i].text ? names->texts + names->names[i].text : NULL;
}

void parsed_names_free(struct parsed_names *names)
{
	free(names->names);
	free(names->texts);
	*names = (struct parsed_names){ 0 };
}
