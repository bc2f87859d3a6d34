/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frame information that compilers did not write. The first byte says what follows: an ELF file, or
 * a section .eh_frame or .debug_frame of either machine.
 */
#include <errno.h>
#include <string.h>

#include "unwind/generator.h"
#include "unwind/table.h"
#include "fuzz.h"

static void check_rule(const struct unwind_rule *rule)
{
	const struct unwind_rule builtin = generator_rule(true); /* of V8 */
	static const struct unwind_rule none, end = { .kind = UNWIND_END },
					      signal = { .kind = UNWIND_SIGNAL },
					      other_stack = { .kind = UNWIND_SWITCH };

	MUST(rule->kind < UNWIND_KINDS && rule->base < UNWIND_BASES);
	MUST(rule->fp_place < UNWIND_PLACES && rule->ra_place <= UNWIND_AT_CFA);
	MUST(rule->kind != UNWIND_NONE || memcmp(rule, &none, sizeof(none)) == 0);
	MUST(rule->kind != UNWIND_END || memcmp(rule, &end, sizeof(end)) == 0);
	MUST(rule->kind != UNWIND_SIGNAL || memcmp(rule, &signal, sizeof(signal)) == 0);
	MUST(rule->kind != UNWIND_SWITCH || memcmp(rule, &other_stack, sizeof(other_stack)) == 0);
	MUST(rule->kind != UNWIND_CFA || !rule->cfa_add);
	MUST(rule->kind != UNWIND_EPILOGUE || memcmp(rule, &builtin, sizeof(builtin)) == 0);
	MUST(rule->kind != UNWIND_PLT || (rule->cfa_add >= 0 && rule->cfa_add < 16));
}

static void check_table(const struct unwind_table *table)
{
	MUST(table->rows_len && table->rules_len && table->rules_len <= UNWIND_RULES_MAX);
	MUST(table->functions && table->functions_bad <= table->functions);
	for (size_t i = 0; i < table->rules_len; i++)
		check_rule(&table->rules[i]);
	for (size_t i = 0; i < table->rows_len; i++) {
		MUST(table->rows[i].rule < table->rules_len);
		MUST(!i || table->rows[i].address > table->rows[i - 1].address);
		MUST(!i || table->rows[i].rule != table->rows[i - 1].rule);
	}
	MUST(unwind_table_find(table, table->rows[0].address) ==
	     &table->rules[table->rows[0].rule]);
	MUST(unwind_table_find(table, table->rows[0].address - 1)->kind == UNWIND_NONE ||
	     !table->rows[0].address);
	MUST(!table->rows[table->rows_len - 1].rule);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct cfi_machine machines[] = { { 7, 6, 16 }, { 31, 29, 30 } };
	struct unwind_table table;
	int r;

	if (!len)
		return 0;
	if (*data & 2) {
		r = unwind_table_make(data + 1, len - 1, &table);
	} else {
		const struct frames_section section = {
			.bytes = data + 1,
			.len = len - 1,
			.address = 0x10000,
			.machine = &machines[*data & 1],
			.debug = *data & 4,
		};

		r = unwind_table_from(&section, &table);
		MUST(r != -ENOEXEC);
	}
	/* What is compressed may be many functions. */
	MUST(r == 0 || r == -ENOEXEC || r == -ENODATA || (*data & 2 && r == -E2BIG));
	if (!r) {
		check_table(&table);
		unwind_table_free(&table);
	}
	return 0;
}
