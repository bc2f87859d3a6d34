/* SPDX-License-Identifier: Apache-2.0 */
#include "base/command_line.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define FLAGS_FIRST 32
#define LETTERS_BYTES 64
#define LONG_FLAG 1 /* what getopt_long tells of one; not 0, by which it tells an unknown one */

static bool known_grow(struct command_line *line)
{
	size_t size = line->size ? 2 * line->size : FLAGS_FIRST;
	struct known_flag *known = reallocarray(line->known, size, sizeof(*known));

	if (!known)
		return false;
	line->known = known;
	line->size = size;
	return true;
}

void command_line_add(struct command_line *line, const struct flag *flag, void *values)
{
	if (line->len == line->size && !known_grow(line))
		line->error = -ENOMEM;
	else
		line->known[line->len++] = (struct known_flag){ .flag = *flag, .values = values };
}

void command_line_free(struct command_line *line)
{
	free(line->known);
	*line = (struct command_line){ 0 };
}

/* --- what is wrong, in one line ------------------------------------------------------------- */

/* "check: " before what is said of a command's flags. */
static void print_whose(const struct command_line *line, FILE *err)
{
	if (line->command)
		fprintf(err, "%s: ", line->command);
}

__attribute__((format(printf, 3, 4))) static int refuse(const struct command_line *line, FILE *err,
							const char *format, ...)
{
	va_list values;

	print_whose(line, err);
	va_start(values, format);
	vfprintf(err, format, values);
	va_end(values);
	fputc('\n', err);
	return -EINVAL;
}

/* What tells all flags: "check --help", or "--help". */
static const char *help_of(const struct command_line *line, char *out, size_t size)
{
	snprintf(out, size, "%s%s--help", line->command ? line->command : "",
		 line->command ? " " : "");
	return out;
}

/* The flag as it was written, without its value. */
static int name_len(const char *argument)
{
	return (int)strcspn(argument, "=");
}

/* What getopt_long refused. @argument is the one at which it stopped. */
static int refuse_flag(const struct command_line *line, const char *argument, int result, FILE *err)
{
	int len = name_len(argument);
	char help[64];

	help_of(line, help, sizeof(help));
	if (result == ':')
		return refuse(line, err, "flag %.*s needs a value; see %s", len, argument, help);
	if (argument[len] == '=' && optopt == LONG_FLAG)
		return refuse(line, err, "flag %.*s takes no value, but has \"%s\"", len, argument,
			      argument + len + 1);
	return refuse(line, err, "unknown flag %s; see %s", argument, help);
}

/* "one, two or three" */
static void print_names(const struct flag *flag, FILE *err)
{
	for (size_t i = 0; i < flag->names_len; i++) {
		const char *before = i == 0 ? "" : i + 1 < flag->names_len ? ", " : " or ";

		fprintf(err, "%s%s", before, flag->names[i]);
	}
}

static int refuse_value(const struct command_line *line, const struct flag *flag, const char *value,
			FILE *err)
{
	print_whose(line, err);
	fprintf(err, "flag --%s: \"%s\" is wrong: expected ", flag->name, value);
	if (flag->expected)
		fputs(flag->expected, err);
	print_names(flag, err);
	fputc('\n', err);
	return -EINVAL;
}

/* --- reading -------------------------------------------------------------------------------- */

/* For getopt_long; ends with zeros. NULL: no memory. Owned by the caller. */
static struct option *options_make(const struct command_line *line)
{
	struct option *options = calloc(line->len + 1, sizeof(*options));

	for (size_t i = 0; options && i < line->len; i++) {
		const struct flag *flag = &line->known[i].flag;

		options[i] = (struct option){
			.name = flag->name,
			.has_arg = flag->metavariable ? required_argument : no_argument,
			.val = LONG_FLAG,
		};
	}
	return options;
}

/*
 * For getopt_long: "+" stops at the first argument that is no flag, so that the one at hand is
 * known, ":" tells of a value that is missing; then the letters.
 */
static void letters_make(const struct command_line *line, char out[static LETTERS_BYTES])
{
	char *at = stpcpy(out, "+:");

	for (size_t i = 0; i < line->len && at < out + LETTERS_BYTES - 3; i++) {
		const struct flag *flag = &line->known[i].flag;

		if (flag->letter)
			*at++ = flag->letter;
		if (flag->letter && flag->metavariable)
			*at++ = ':';
	}
	*at = '\0';
}

static struct known_flag *known_by_letter(const struct command_line *line, int letter)
{
	for (size_t i = 0; i < line->len; i++)
		if (line->known[i].flag.letter == letter)
			return &line->known[i];
	return NULL;
}

/* getopt_long takes abbreviations, which would turn into errors with the next flag we add. */
static bool is_abbreviated(const char *argument, const char *name)
{
	size_t len = (size_t)name_len(argument);

	return len < 2 || strlen(name) != len - 2;
}

/* One turn of getopt_long: 0 go on, 1 done, -EINVAL, -ENOENT at the end of the flags. */
static int read_next(struct command_line *line, const struct option *options, const char *letters,
		     int argc, char **argv, FILE *out, FILE *err)
{
	const char *argument = argv[optind ? optind : 1];
	struct known_flag *known;
	int index = 0;
	int result = getopt_long(argc, argv, letters, options, &index);

	if (result == -1)
		return -ENOENT;
	if (result == '?' || result == ':')
		return refuse_flag(line, argument, result, err);
	known = result == LONG_FLAG ? &line->known[index] : known_by_letter(line, result);
	if (result == LONG_FLAG && is_abbreviated(argument, known->flag.name))
		return refuse_flag(line, argument, '?', err);
	if (result != LONG_FLAG && optarg && *optarg == '=')
		return refuse(line, err, "flag -%c takes its value without \"=\"", result);
	if (known->flag.show) {
		known->flag.show(known->values, out);
		return 1;
	}
	if (known->seen && !known->flag.repeats)
		return refuse(line, err, "flag --%s is given twice", known->flag.name);
	known->seen = true;
	if (known->flag.set(known->values, &known->flag, optarg))
		return refuse_value(line, &known->flag, optarg, err);
	return 0;
}

/* At the first argument that is no flag: whether it is the one that is wanted. Flags may follow,
 * unless "--" has ended them. */
static bool take_operand(const struct command_line *line, int argc, char **argv,
			 const char **operand)
{
	if (!line->operand || *operand || optind == argc)
		return false;
	*operand = argv[optind++];
	return true;
}

static int check_end(const struct command_line *line, int argc, char **argv, const char *operand,
		     FILE *err)
{
	char help[64];

	help_of(line, help, sizeof(help));
	if (line->operand && !operand)
		return refuse(line, err, "%s is missing; see %s", line->operand, help);
	if (optind < argc)
		return refuse(line, err, "unexpected argument \"%s\"; see %s", argv[optind], help);
	return 0;
}

/* What is not given is as its row says. */
static void set_defaults(const struct command_line *line)
{
	for (size_t i = 0; i < line->len; i++) {
		const struct known_flag *known = &line->known[i];

		if (known->flag.fallback && !known->seen)
			known->flag.set(known->values, &known->flag, known->flag.fallback);
	}
}

int command_line_read(struct command_line *line, int argc, char **argv, const char **operand,
		      FILE *out, FILE *err)
{
	_cleanup_(cleanup_free) struct option *options = options_make(line);
	int r = options ? line->error : -ENOMEM;
	char letters[LETTERS_BYTES];

	if (r) {
		refuse(line, err, "cannot read the flags: %s", strerror(-r));
		return r;
	}
	if (line->operand)
		*operand = NULL;
	letters_make(line, letters);
	optind = 0; /* makes getopt_long begin anew */
	opterr = 0;
	do {
		int at = optind ? optind : 1;

		r = read_next(line, options, letters, argc, argv, out, err);
		if (r == -ENOENT && take_operand(line, argc, argv, operand) &&
		    strcmp(argv[at], "--") != 0)
			r = 0;
	} while (!r);
	if (r == -ENOENT)
		r = check_end(line, argc, argv, line->operand ? *operand : NULL, err);
	if (!r)
		set_defaults(line);
	return r;
}
