/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <string.h>
#include <sysexits.h>

#include "commands/commands.h"
#include "made_up.h"

#define ARGUMENTS_MAX 16

struct outcome {
	int code;
	char out[2048], err[512];
};

/* The arguments as main() gets them; they are only read. */
static int arguments(const char *const *words, char *argv[static ARGUMENTS_MAX])
{
	int argc = 0;

	for (; words[argc]; argc++)
		argv[argc] = (char *)(uintptr_t)words[argc];
	return argc;
}

/* Whether the NULL-terminated @words name a command. */
static bool asked(const char *const *words)
{
	char *argv[ARGUMENTS_MAX] = { NULL };

	return commands_are_asked(arguments(words, argv), argv);
}

static struct outcome run(const char *const *words)
{
	struct outcome outcome = { 0 };
	FILE *out = fmemopen(outcome.out, sizeof(outcome.out), "w");
	FILE *err = fmemopen(outcome.err, sizeof(outcome.err), "w");
	char *argv[ARGUMENTS_MAX] = { NULL };
	int argc = arguments(words, argv);

	cr_assert(commands_are_asked(argc, argv));
	outcome.code = commands_run(argc, argv, "/proc", out, err);
	fclose(out);
	fclose(err);
	return outcome;
}

#define WORDS(...) ((const char *const[]){ "workload_exporter", __VA_OPT__(__VA_ARGS__, ) NULL })
#define RUN(...) run(WORDS(__VA_ARGS__))
#define ASKED(...) asked(WORDS(__VA_ARGS__))

TestSuite(commands);

Test(commands, are_named_in_the_first_place_only)
{
	cr_expect(ASKED("count"));
	cr_expect(ASKED("two"));
	cr_expect(ASKED("of-feature", "x"));
	cr_expect_not(ASKED("coun"));
	cr_expect_not(ASKED("counts"));
	cr_expect_not(ASKED("words"));
	cr_expect_not(ASKED("--log.level=info", "count"));
	cr_expect_not(ASKED());
}

Test(commands, get_flags_defaults_and_the_argument)
{
	struct outcome outcome = RUN("count", "--json", "file");

	cr_expect_eq(outcome.code, 3);
	cr_expect_str_empty(outcome.err);
	cr_expect(made_up_call.json);
	cr_expect_eq(made_up_call.number, 5);
	cr_expect_str_eq(made_up_call.operand, "file");
	cr_expect_eq(RUN("count", "--n", "7", "file").code, 3);
	cr_expect_not(made_up_call.json);
	cr_expect_eq(made_up_call.number, 7);
	cr_expect_eq(RUN("two", "words").code, 4);
	cr_expect_null(made_up_call.operand);
	cr_expect_eq(RUN("of-feature").code, 5);
}

Test(commands, take_flags_by_their_letters_and_on_both_sides_of_the_argument)
{
	cr_expect_eq(RUN("count", "-m", "3", "file", "--n", "7", "--json").code, 3);
	cr_expect_eq(made_up_call.least, 3);
	cr_expect_eq(made_up_call.number, 7);
	cr_expect(made_up_call.json);
	cr_expect_str_eq(made_up_call.operand, "file");
	cr_expect_eq(RUN("count", "file", "-m3").code, 3);
	cr_expect_eq(made_up_call.least, 3);
	cr_expect_str_eq(made_up_call.operand, "file");
	cr_expect_eq(RUN("count", "--n=1", "file", "--least=3").code, 3);
	cr_expect_eq(made_up_call.least, 3);
	cr_expect_eq(RUN("count", "file").code, 3);
	cr_expect_eq(made_up_call.least, 2);
}

Test(commands, take_an_argument_that_looks_like_a_flag_behind_two_dashes)
{
	cr_expect_eq(RUN("count", "--", "--json").code, 3);
	cr_expect_str_eq(made_up_call.operand, "--json");
	cr_expect_not(made_up_call.json);
	cr_expect_eq(RUN("count", "-").code, 3);
	cr_expect_str_eq(made_up_call.operand, "-");
	cr_expect_eq(RUN("two", "words", "--").code, 4);
	cr_expect_eq(RUN("count", "--", "x", "y").code, EX_USAGE);
}

Test(commands, have_a_help_with_their_exit_codes)
{
	struct outcome outcome = RUN("count", "--json", "--help");

	cr_expect_eq(outcome.code, 0);
	cr_expect_str_empty(outcome.err);
	cr_expect_str_eq(outcome.out,
			 "Counts.\n"
			 "\n"
			 "Usage: workload_exporter count [--json] [--n=N] [-m N] FILE\n"
			 "\n"
			 "  --json           For machines.\n"
			 "  --n=N            How many.\n"
			 "  -m N, --least=N  At least 2.\n"
			 "  --help           Show this help and exit.\n"
			 "\n"
			 "Exit code: 3 as always.\n");
	cr_expect_not_null(strstr(RUN("two", "words", "--help").out, "Does both.\n"));
	outcome = RUN("two", "--help");
	cr_expect_eq(outcome.code, 0);
	cr_expect_not_null(strstr(outcome.out, "Does both.\n"));
	cr_expect_not_null(strstr(outcome.out, "Exit code: 4.\n\nDoes others.\n"));
	cr_expect_eq(made_up_call.times, 0);
}

/* One line on the error output that begins with the command, and the code for wrong arguments. */
static void expect_refused(struct outcome outcome, const char *line)
{
	cr_expect_eq(outcome.code, EX_USAGE);
	cr_expect_str_empty(outcome.out);
	cr_expect_str_eq(outcome.err, line);
	cr_expect_eq(made_up_call.times, 0);
}

Test(commands, refuse_wrong_arguments_by_name)
{
	expect_refused(RUN("count", "--jso", "x"), "count: unknown flag --jso; see count --help\n");
	expect_refused(RUN("count", "--json=1", "x"),
		       "count: flag --json takes no value, but has \"1\"\n");
	expect_refused(RUN("count", "--json", "--json", "x"),
		       "count: flag --json is given twice\n");
	expect_refused(RUN("count", "--n=10", "x"),
		       "count: flag --n: \"10\" is wrong: expected a number up to 9\n");
	expect_refused(RUN("count", "--n"), "count: flag --n needs a value; see count --help\n");
	expect_refused(RUN("count", "x", "y"),
		       "count: unexpected argument \"y\"; see count --help\n");
	expect_refused(RUN("count", "x", "--json", "y"),
		       "count: unexpected argument \"y\"; see count --help\n");
	expect_refused(RUN("count", "x", "--jso"), "count: unknown flag --jso; see count --help\n");
	expect_refused(RUN("count", "x", "-m"), "count: flag -m needs a value; see count --help\n");
	expect_refused(RUN("count", "x", "-m", "1"),
		       "count: flag --least: \"1\" is wrong: expected 2 or 3\n");
	expect_refused(RUN("count", "x", "-m", "4"),
		       "count: flag --least: \"4\" is wrong: expected 2 or 3\n");
	expect_refused(RUN("count", "x", "-m2", "--least=2"),
		       "count: flag --least is given twice\n");
	expect_refused(RUN("count", "x", "-m=2"), "count: flag -m takes its value without \"=\"\n");
	expect_refused(RUN("count", "x", "-q=2"), "count: unknown flag -q=2; see count --help\n");
	expect_refused(RUN("count", "x", "-q"), "count: unknown flag -q; see count --help\n");
	expect_refused(RUN("count"), "count: FILE is missing; see count --help\n");
	expect_refused(RUN("two", "words", ""),
		       "two words: unexpected argument \"\"; see two words --help\n");
	expect_refused(RUN("two", "words", "x"),
		       "two words: unexpected argument \"x\"; see two words --help\n");
	expect_refused(RUN("two"), "two: expected: workload_exporter two words, or "
				   "workload_exporter two others NAME\n");
	expect_refused(RUN("two", "word"), "two: expected: workload_exporter two words, or "
					   "workload_exporter two others NAME\n");
}
