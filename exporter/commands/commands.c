/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/cleanup.h"
#include "base/command_line.h"
#include "base/text.h"
#include "features/features.h"

#define USAGE "       workload_exporter "
#define USAGE_SPACES "                         "
#define SUMMARY_COLUMN 24 /* behind that: where the summary of a command begins */
#define FLAG_COLUMN_MIN 10 /* where the texts of a command's flags begin */
#define FLAG_BYTES 128

/* The command with this index, of the exporter or of a feature; NULL: there are no more. */
static const struct command *command_at(size_t index)
{
	if (index < commands_len)
		return commands_table[index];
	index -= commands_len;
	for (size_t id = 0; id < features_len; id++) {
		if (index < features_table[id]->commands_len)
			return &features_table[id]->commands[index];
		index -= features_table[id]->commands_len;
	}
	return NULL;
}

/* --- which one ------------------------------------------------------------------------------ */

/* Whether @argument is the first word of its name. */
static bool begins_with(const struct command *command, const char *argument)
{
	size_t len = strcspn(command->name, " ");

	return strlen(argument) == len && strncmp(argument, command->name, len) == 0;
}

/* How many arguments name the command: 1 or 2; 0: they name another, or none. */
static int words_of(const struct command *command, int argc, char *const *argv)
{
	const char *second = strchr(command->name, ' ');

	if (argc < 2 || !begins_with(command, argv[1]))
		return 0;
	if (!second)
		return 1;
	return argc > 2 && strcmp(argv[2], second + 1) == 0 ? 2 : 0;
}

bool commands_are_asked(int argc, char *const *argv)
{
	const struct command *command;

	for (size_t i = 0; argc > 1 && (command = command_at(i)); i++)
		if (begins_with(command, argv[1]))
			return true;
	return false;
}

/* --- help ----------------------------------------------------------------------------------- */

/* "--flag", or "--flag=VALUE"; with a letter "-f VALUE, --flag=VALUE", or for short "-f VALUE". */
static const char *flag_text(const struct flag *flag, bool is_short, char out[static FLAG_BYTES])
{
	const char *value = flag->metavariable ? flag->metavariable : "";
	char letter[FLAG_BYTES / 2] = "";

	if (flag->letter)
		snprintf(letter, sizeof(letter), "-%c%s%s", flag->letter, *value ? " " : "", value);
	if (flag->letter && is_short)
		text_copy(out, FLAG_BYTES, letter);
	else
		snprintf(out, FLAG_BYTES, "%s%s--%s%s%s", letter, flag->letter ? ", " : "",
			 flag->name, *value ? "=" : "", value);
	return out;
}

/* As it is typed, behind the name of the program. Returns its length. */
static int print_synopsis(const struct command *command, FILE *out)
{
	int len = fprintf(out, "%s", command->name);
	char text[FLAG_BYTES];

	for (size_t i = 0; i < command->flags_len; i++)
		len += fprintf(out, " [%s]", flag_text(&command->flags[i], true, text));
	return len + (command->operand ? fprintf(out, " %s", command->operand) : 0);
}

/* The same in a list of commands, where there is room for one flag. */
static int print_in_short(const struct command *command, FILE *out)
{
	if (command->flags_len < 2)
		return print_synopsis(command, out);
	return fprintf(out, "%s [flags]%s%s", command->name, command->operand ? " " : "",
		       command->operand ? command->operand : "");
}

static void print_command(const struct command *command, FILE *out)
{
	const char *line = command->summary;
	int gap;

	fputs(USAGE, out);
	gap = SUMMARY_COLUMN - print_in_short(command, out);
	if (gap < 1) {
		fputs("\n" USAGE_SPACES, out);
		gap = SUMMARY_COLUMN;
	}
	for (size_t end = strcspn(line, "\n"); line[end]; end = strcspn(line, "\n")) {
		fprintf(out, "%*s%.*s\n" USAGE_SPACES, gap, "", (int)end, line);
		gap = SUMMARY_COLUMN;
		line += end + 1;
	}
	fprintf(out, "%*s%s\n", gap, "", line);
}

void commands_print(FILE *out)
{
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)); i++)
		print_command(command, out);
}

static void print_help(const void *values, FILE *out);
static const struct flag help_flag = { .name = "help",
				       .help = "Show this help and exit.",
				       .show = print_help };

/* Where the texts of its flags begin. */
static int help_column(const struct command *command)
{
	char text[FLAG_BYTES];
	size_t column = FLAG_COLUMN_MIN;

	for (size_t i = 0; i < command->flags_len; i++) {
		size_t len = strlen(flag_text(&command->flags[i], false, text)) + 2;

		column = len > column ? len : column;
	}
	return (int)column;
}

static void print_flag_help(const struct flag *flag, int column, FILE *out)
{
	char text[FLAG_BYTES];

	fprintf(out, "  %-*s%s\n", column, flag_text(flag, false, text), flag->help);
}

static void print_help(const void *values, FILE *out)
{
	const struct command *command = values;
	int column = help_column(command);

	fprintf(out, "%s\nUsage: workload_exporter ", command->about);
	print_synopsis(command, out);
	fputs("\n\n", out);
	for (size_t i = 0; i < command->flags_len; i++)
		print_flag_help(&command->flags[i], column, out);
	print_flag_help(&help_flag, column, out);
	fprintf(out, "\nExit code: %s", command->exit_codes);
}

/* --- running -------------------------------------------------------------------------------- */

static int command_run(const struct command *command, int argc, char **argv, const char *proc_root,
		       FILE *out, FILE *err)
{
	_cleanup_(cleanup_free) void *settings = calloc(1, command->settings_bytes + 1);
	struct command_line line = {
		.command = command->name,
		.operand = command->operand,
		.error = settings ? 0 : -ENOMEM,
	};
	struct command_call call = { .settings = settings, .proc_root = proc_root };
	int r;

	for (size_t i = 0; i < command->flags_len; i++)
		command_line_add(&line, &command->flags[i], settings);
	command_line_add(&line, &help_flag, (void *)command);
	r = command_line_read(&line, argc, argv, &call.operand, out, err);
	command_line_free(&line);
	if (r)
		return r > 0 ? EXIT_SUCCESS : r == -ENOMEM ? EX_OSERR : EX_USAGE;
	return command->run(&call);
}

/* The first word is that of commands which have a second: help of each, or what is expected. */
static int answer_first_word(int argc, char *const *argv, FILE *out, FILE *err)
{
	bool help = argc == 3 && strcmp(argv[2], "--help") == 0;
	const struct command *command;
	size_t found = 0;

	if (!help)
		fprintf(err, "%s: expected: ", argv[1]);
	for (size_t i = 0; (command = command_at(i)); i++) {
		if (!begins_with(command, argv[1]))
			continue;
		if (help) {
			fputs(found++ ? "\n" : "", out);
			print_help(command, out);
		} else {
			fputs(found++ ? ", or workload_exporter " : "workload_exporter ", err);
			print_synopsis(command, err);
		}
	}
	if (!help)
		fputc('\n', err);
	return help ? EXIT_SUCCESS : EX_USAGE;
}

int commands_run(int argc, char **argv, const char *proc_root, FILE *out, FILE *err)
{
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)); i++) {
		int words = words_of(command, argc, argv);

		if (words)
			return command_run(command, argc - words, argv + words, proc_root, out,
					   err);
	}
	return answer_first_word(argc, argv, out, err);
}
