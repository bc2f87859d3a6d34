/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables: for each address of an ELF file's code the rule by which the caller is found. They
 * are made from the section .eh_frame, which compilers write by default, with or without frame
 * pointers, and which stripping leaves alone; of Go from the table that its own tracebacks use;
 * from .debug_frame; and on x86-64 of what none of these tells from its instructions
 * (unwind/bare.h).
 *
 * An image is hostile, but does not change meanwhile (unwind/elf_image.h). Making its table takes
 * time in proportion to its size, and to that of what is inflated, and memory up to the limits;
 * instructions are followed up to FLOW_STEPS_MAX of them (unwind/flow.h), twice.
 */
#ifndef WORKLOAD_UNWIND_TABLE_H
#define WORKLOAD_UNWIND_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "unwind/frames.h"

#define UNWIND_ROWS_MAX (UNWIND_ROWS_MAX_ALL / 2) /* of one file; node has 270 000 */
#define UNWIND_RULES_MAX 4096U /* of one file; libraries have some hundred */
#define UNWIND_STEPS_MAX (8U * UNWIND_ROWS_MAX) /* of a program of Go */

/* The rule from here on up to the next row. */
struct unwind_row {
	uint64_t address; /* as linked */
	uint32_t rule; /* index; 0 is none */
	uint32_t zero;
};

struct unwind_table {
	struct unwind_row *rows; /* owned; by address */
	size_t rows_len, rows_size;
	struct unwind_rule *rules; /* owned; no two are equal; the first is UNWIND_NONE */
	size_t rules_len;
	size_t functions;
	size_t functions_bad; /* their frame information was not understood */
	size_t states_bad; /* of functions: rules cannot say them, or are UNWIND_RULES_MAX */
};

/*
 * Makes the table of an ELF file of x86-64 or arm64 whose bytes are @image, or of the part of a
 * process that the kernel provides (vDSO). 0 with @table, which unwind_table_free() releases;
 * -ENOEXEC: no such file; -ENODATA: nothing tells of its functions; -E2BIG: more than the limits;
 * -ENOMEM.
 */
int unwind_table_make(const void *image, size_t bytes, struct unwind_table *table);

/* The same of a section .eh_frame, whose bytes are hostile. All but -ENOEXEC. */
int unwind_table_from(const struct frames_section *section, struct unwind_table *table);

/*
 * The table of code that has the same rule everywhere: one row, at address 0. 0 with @table;
 * -ENOMEM.
 */
int unwind_table_of_rule(const struct unwind_rule *rule, struct unwind_table *table);

/* The rule for @address; UNWIND_NONE where there is none. Valid as long as the table. */
const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t address);

void unwind_table_free(struct unwind_table *table);

#endif
