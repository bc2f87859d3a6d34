/* SPDX-License-Identifier: Apache-2.0 */
/* Flags as a command line gives them, and what becomes of them. */
#ifndef TESTS_PARSE_H
#define TESTS_PARSE_H

#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "config/config.h"

struct outcome {
	struct config config;
	int result;
	char out[8192];
	char err[1024];
};

/* What was parsed, which a suite frees at the end of each test. */
static struct config parsed[32];
static size_t parsed_len;

static inline void parsed_free(void)
{
	while (parsed_len)
		config_free(&parsed[--parsed_len]);
}

/* Parses the NULL-terminated @flags. */
static inline struct outcome parse(const char *const *flags)
{
	struct outcome outcome = { 0 };
	char *argv[16] = { (char[]){ "workload_exporter" } };
	FILE *out = fmemopen(outcome.out, sizeof(outcome.out), "w");
	FILE *err = fmemopen(outcome.err, sizeof(outcome.err), "w");
	int argc = 1;

	while (*flags)
		argv[argc++] = (char *)(uintptr_t)*flags++; /* getopt_long only reads */
	outcome.config.telemetry_path = "untouched";
	outcome.result = config_parse(&outcome.config, argc, argv, out, err);
	fclose(out);
	fclose(err);
	cr_assert_lt(parsed_len, COUNT(parsed));
	if (!outcome.result)
		parsed[parsed_len++] = outcome.config;
	return outcome;
}

#define PARSE(...) parse((const char *[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

/* One line that holds each of the two words, nothing on the output, and no configuration. */
static inline void expect_refused(struct outcome outcome, const char *flag, const char *word)
{
	cr_expect_eq(outcome.result, -EINVAL);
	cr_expect_str_empty(outcome.out);
	cr_expect_eq(strchr(outcome.err, '\n'), outcome.err + strlen(outcome.err) - 1,
		     "not one line: %s", outcome.err);
	cr_expect_not_null(strstr(outcome.err, flag), "%s: %s", flag, outcome.err);
	cr_expect_not_null(strstr(outcome.err, word), "%s: %s", word, outcome.err);
	cr_expect_str_eq(outcome.config.telemetry_path, "untouched");
}

#endif
