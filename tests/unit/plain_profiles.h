/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What profiles have of the plain kernel side: the two sets of stacks with the programs that write
 * them, the slots that processes are told, the clock, and what looks at page faults.
 */
#ifndef TESTS_PLAIN_PROFILES_H
#define TESTS_PLAIN_PROFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/profiles.h"
#include "plain_kernel.h"

#define PLAIN_TABLES_MAX 28U
#define PLAIN_STACKS 16U
#define PLAIN_SLOTS 16U

struct plain_sample {
	struct stack_key key;
	struct stack stack;
};

/* What a process was told: `code_slots` has one of it on its leader. */
struct plain_slot {
	pid_t pid;
	uint32_t zero;
	struct code_slot slot;
};

#define PLAIN_PROFILES_ARRAY(table, len, type)                            \
	{                                                                 \
		.name = (table), .feature = "profiles", .entries = (len), \
		.element_bytes = sizeof(type),                            \
	}
#define PLAIN_PROFILES_TABLES                                                                   \
	PLAIN_PROFILES_ARRAY("stacks_0", PLAIN_STACKS, struct plain_sample),                    \
		PLAIN_PROFILES_ARRAY("stacks_1", PLAIN_STACKS, struct plain_sample),            \
		PLAIN_PROFILES_ARRAY("code_slots", PLAIN_SLOTS, struct plain_slot),             \
		PLAIN_PROFILES_ARRAY("profiling", 1, struct profiling),                         \
		PLAIN_PROFILES_ARRAY("looked_at", TREES_MAX, struct look),                      \
		PLAIN_PROFILES_ARRAY("profiled", PLAIN_CPUS *PROFILED_ROWS, struct profiled),   \
		PLAIN_PROFILES_ARRAY("process_code", CODE_PROCESSES_MAX, struct process_code),  \
		PLAIN_PROFILES_ARRAY("unwind_rows", UNWIND_ROWS_MAX_ALL / 2, uint64_t),         \
		PLAIN_PROFILES_ARRAY("unwind_rules", UNWIND_RULES_MAX_ALL, struct unwind_rule), \
		PLAIN_PROFILES_ARRAY("unwind_pages", UNWIND_PAGES_MAX, struct unwind_page),     \
		PLAIN_PROFILES_ARRAY("unwind_files", UNWIND_FILES_MAX, struct unwind_file)

/* A program that writes to row @cpu of `profiled` enters the set that is written to, and has left
 * it. */
uint64_t plain_enter(struct loader *loader, size_t cpu);
void plain_leave(struct loader *loader, size_t cpu, uint64_t set);

/* And counts @sample in between; where the set is full it is lost. */
void plain_count(struct loader *loader, size_t cpu, uint64_t set,
		 const struct plain_sample *sample);

/* All three. */
void plain_sample(struct loader *loader, const struct plain_sample *sample);

/* Set @set can be read only up to row @rows of it from now on; -1: all of it. */
void plain_set_breaks(struct loader *loader, uint64_t set, int rows);

/* What process @pid was told last; slot 0: nothing, or it was taken away. */
struct code_slot plain_slot(struct loader *loader, pid_t pid);

/* Whether the clock runs, and how often it was told to run or to stand still. */
bool plain_clock(size_t *told);

/* Whether both kinds of page faults are looked at; they are, or none is. */
bool plain_faults(void);

#endif
