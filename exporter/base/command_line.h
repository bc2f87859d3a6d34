/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the flags of the exporter, or of one of its commands, in the manner of Prometheus
 * exporters: --flag=value or --flag value, no abbreviations, no flag twice unless it says so; and
 * -f value for those that have a letter.
 *
 * Uses getopt_long(3), which keeps its state in globals: one thread at a time.
 */
#ifndef WORKLOAD_BASE_COMMAND_LINE_H
#define WORKLOAD_BASE_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/flag.h"

struct known_flag {
	struct flag flag;
	void *values;
	bool seen;
};

/* Zeroed: it knows no flag. */
struct command_line {
	const char *command; /* whose flags they are; NULL: the exporter's own */
	const char *operand; /* what stands for the one argument that is wanted; NULL: none is */
	struct known_flag *known; /* owned */
	size_t len, size;
	int error; /* -ENOMEM: not all of them are known */
};

/* Adds a flag that sets @values, both borrowed; without memory that is found while reading. */
void command_line_add(struct command_line *line, const struct flag *flag, void *values);

/*
 * Reads @argv from its second element on and sets what is not given to its default. 0; then
 * *@operand is the argument, if one is wanted, before, between or behind the flags. 1: a flag that
 * shows something has been obeyed. -EINVAL: one line on @err says what is wrong, with names;
 * -ENOMEM, also said.
 */
int command_line_read(struct command_line *line, int argc, char **argv, const char **operand,
		      FILE *out, FILE *err);

void command_line_free(struct command_line *line);

#endif
