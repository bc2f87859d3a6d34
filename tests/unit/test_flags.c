/* SPDX-License-Identifier: Apache-2.0 */
/* Flags that features bring. */
#include "base/text.h"
#include "config/flags.h"
#include "core.h"
#include "made_up.h"
#include "parse.h"

TestSuite(flags, .fini = parsed_free);

/* Of the feature that tests/unit/features.c makes up. */
static const struct made_up_settings *made_up(const struct outcome *outcome)
{
	cr_assert_eq(outcome->result, 0, "%s", outcome->err);
	return outcome->config.settings[features_find("made_up")];
}

Test(flags, flags_of_a_feature_set_what_is_its_own)
{
	struct outcome outcome = PARSE("--made_up.number=7", "--made_up.text", "words",
				       "--made_up.switch", "--made_up.choice=other");

	cr_expect_eq(made_up(&outcome)->number, 7);
	cr_expect_str_eq(made_up(&outcome)->text, "words");
	cr_expect_eq(made_up(&outcome)->choice, 1);
	cr_expect_eq(made_up(&outcome)->duration_ns, 90 * NS_PER_S);
	cr_expect(made_up(&outcome)->is_switched);
	outcome = PARSE();
	cr_expect_eq(made_up(&outcome)->number, 3);
	cr_expect_null(made_up(&outcome)->text);
	cr_expect_eq(made_up(&outcome)->choice, 0);
	cr_expect_not(made_up(&outcome)->is_switched);
	expect_refused(PARSE("--made_up.number=10"), "--made_up.number", "a number up to 9");
	expect_refused(PARSE("--made_up.number=1", "--made_up.number=1"), "number", "twice");
	expect_refused(PARSE("--made_up.choice=none"), "\"none\"", "one or other\n");
	expect_refused(PARSE("--made_up.switch=1"), "--made_up.switch", "no value");
	expect_refused(PARSE("--made_up.text"), "--made_up.text", "needs a value");
}

Test(flags, what_flags_of_a_feature_set_is_what_it_is_opened_with)
{
	void *settings[LOADER_FEATURES_MAX] = { 0 };
	struct core *core = core_start(features_collectors());
	struct features features = { 0 };
	const struct log log = { 0 };
	const struct feature_env env = { .kernel = &core->kernel,
					 .proc_root = CORE_ROOT,
					 .log = &log };

	cr_expect_null(made_up_opened_with);
	settings[features_find("made_up")] = settings;
	cr_assert_eq(features_open(&features, &env, settings), 0);
	cr_expect_eq(made_up_opened_with, settings);
	features_close(&features);
	core_stop(core);
}

/* Of all rows that the exporter has, and those that are made up. */
Test(flags, each_row_is_right)
{
	struct flags_walk walk = { 0 };
	const char *names[64];
	size_t len = 0;

	while (flags_next(&walk)) {
		const struct flag *flag = walk.flag;
		char given[128];

		for (size_t i = 0; i < len; i++)
			cr_expect_str_neq(flag->name, names[i]);
		cr_assert_lt(len, COUNT(names));
		names[len++] = flag->name;
		if (flag->fallback && !flag_is_per_collector(flag)) {
			snprintf(given, sizeof(given), "--%s=%s", flag->name, flag->fallback);
			cr_expect_eq(PARSE(given).result, 0, "%s", given);
		}
		if (walk.feature == FLAG_OWN)
			continue;
		cr_expect(text_has_prefix(flag->name, features_table[walk.feature]->plan.name),
			  "%s", flag->name);
		cr_expect(!flag->set || features_table[walk.feature]->settings_bytes, "%s",
			  flag->name);
	}
}

/* Its own place in --help: before the flags that follow those of features. */
Test(flags, flags_of_a_feature_are_in_the_help)
{
	struct outcome outcome = PARSE("--help");
	const char *mutex = strstr(outcome.out, "--mutex.backend"),
		   *its = strstr(outcome.out, "--made_up.number=N"),
		   *after = strstr(outcome.out, "--security.user");

	cr_assert(mutex && its && after);
	cr_expect(mutex < its && its < after);
	cr_expect_not_null(strstr(its, "How many. Default: 3\n"));
}
