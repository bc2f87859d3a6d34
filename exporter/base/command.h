/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command, `workload_exporter NAME ...`, as data: commands/table.c has those of the exporter,
 * each feature may have its own. All end with EXIT_SUCCESS, EXIT_FAILURE or more that their help
 * tells, and EX_USAGE for wrong arguments.
 */
#ifndef WORKLOAD_BASE_COMMAND_H
#define WORKLOAD_BASE_COMMAND_H

#include <stddef.h>

#include "base/flag.h"

/* FLAG(), which scripts/flag_table.py does not take for one of the exporter's own. */
#define COMMAND_FLAG FLAG

/* What a command is called with. */
struct command_call {
	const void *settings; /* what its flags have set */
	const char *operand; /* the argument; NULL if it takes none */
	const char *proc_root;
};

struct command {
	const char *name; /* one word, or two with a space between */
	const char *operand; /* what stands for its one argument, as FILE; NULL: it takes none */
	const char *summary; /* in --help of the exporter; lines are broken at 40 columns */
	const char *about; /* whole lines, in its own --help, as are: */
	const char *exit_codes;
	const struct flag
		*flags; /* the metavariables, defaults and `more` of which are not shown */
	size_t flags_len;
	size_t settings_bytes; /* of the struct that they set, which begins as zeros */
	/* Writes to the standard streams. Returns the exit code. */
	int (*run)(const struct command_call *call);
};

#endif
