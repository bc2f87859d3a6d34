/* SPDX-License-Identifier: Apache-2.0 */
/* The commands: those of the exporter and of its features. */
#ifndef WORKLOAD_COMMANDS_COMMANDS_H
#define WORKLOAD_COMMANDS_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/command.h"

/* In table.c: those of the exporter, in the order of --help. */
extern const struct command *const commands_table[];
extern const size_t commands_len;

/* Writes all commands, a line or more each, for --help of the exporter. */
void commands_print(FILE *out);

/* Whether the arguments name a command in the first place, or the first word of one. */
bool commands_are_asked(int argc, char *const *argv);

/*
 * Runs the command that @argv names, whose flags it reads, or says on @err what is wrong. Returns
 * the exit code of the process.
 */
int commands_run(int argc, char **argv, const char *proc_root, FILE *out, FILE *err);

#endif
