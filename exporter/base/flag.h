/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flag of the command line as data: what it is called, what it accepts, and where its value goes.
 * config/flags.c has those of the exporter, each feature has its own. What getopt_long accepts,
 * --help, the man page and the READMEs follow from the rows; scripts/flag_table.py reads these from
 * config/flags.c and of each feature's own file: a row begins a line, and no text in it is a macro,
 * except in the column sets:
 *
 *   FLAG(option, metavariable, default, sets, help[, more])
 *     option        without its dashes
 *     metavariable  what stands for the value; NULL: the flag takes none
 *     default       what counts if the flag is not given, as it would be written; NULL: nothing
 *     sets          the member of the struct of values, and how: a macro from below
 *     help          with the line breaks of --help, whose lines have 54 columns for it
 *     more          what only the man page and the README add; `x` is something to type
 */
#ifndef WORKLOAD_BASE_FLAG_H
#define WORKLOAD_BASE_FLAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct flag {
	const char *name, *metavariable, *fallback, *help, *more;
	/* Keeps @value, which outlives @values, in @values. 0; -EINVAL: it is wrong. */
	int (*set)(void *values, const struct flag *flag, const char *value);
	size_t member; /* its offset in the struct of values */
	const char *const *names; /* of a choice: its values, by their numbers */
	size_t names_len;
	uint64_t min, max; /* of a number */
	const char *expected; /* of any other: what @set accepts, in words */
	void (*show)(const void *values, FILE *out); /* writes something, which ends the program */
	char letter; /* -o for short; 0: there is none */
	bool repeats; /* may be given more than once */
	bool backend; /* a choice between the backends of its feature, which keeps its value */
};

#define FLAG(option, metavariable_, standard, sets, text, ...)                             \
	{                                                                                  \
		.name = (option), .metavariable = (metavariable_), .fallback = (standard), \
		.help = (text), .more = "" __VA_ARGS__, sets                               \
	}

/* The offset of a member, which does not compile if it has another type than the setter writes. */
#define FLAG_MEMBER(type, of, at) \
	.member = _Generic(((struct of *)0)->at, type : offsetof(struct of, at))
#define FLAG_TEXT(of, at, what) \
	.set = flag_set_text, .expected = (what), FLAG_MEMBER(const char *, of, at)
#define FLAG_NUMBER(of, at, most, what) \
	.set = flag_set_number, .max = (most), .expected = (what), FLAG_MEMBER(uint64_t, of, at)
#define FLAG_NUMBER_FROM(of, at, least, most, what) .min = (least), FLAG_NUMBER(of, at, most, what)
#define FLAG_DURATION(of, at)                                    \
	.set = flag_set_duration, FLAG_MEMBER(uint64_t, of, at), \
	.expected = "a duration such as 30s, 5m or 1h30m, at most 365d"
#define FLAG_CHOICE(of, at, list)                                                   \
	.set = flag_set_choice, FLAG_MEMBER(unsigned int, of, at), .names = (list), \
	.names_len = sizeof(list) / sizeof(*(list))
#define FLAG_SWITCH(of, at) .set = flag_set_switch, FLAG_MEMBER(bool, of, at)
#define FLAG_BACKEND .backend = true
#define FLAG_LETTER(short_, ...) .letter = (short_), __VA_ARGS__

static inline void *flag_member(void *values, const struct flag *flag)
{
	return (char *)values + flag->member;
}

/* Setters, see struct flag. A text is borrowed, and not empty; a duration is in nanoseconds. */
int flag_set_text(void *values, const struct flag *flag, const char *value);
int flag_set_number(void *values, const struct flag *flag, const char *value);
int flag_set_duration(void *values, const struct flag *flag, const char *value);
int flag_set_choice(void *values, const struct flag *flag, const char *value);
int flag_set_switch(void *values, const struct flag *flag, const char *value);

#endif
