/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of features as the unit tests know it: those of the exporter; two that bring
 * nothing but a name, so that each test shows that nothing is asked of what is not there; one
 * with flags of each kind and a command; one that counts scrapes; one that is off by default; and
 * one that no flag names.
 */
#include <string.h>

#include "base/units.h"
#include "features/features.h"
#include "made_up.h"

extern const struct feature feature_discovery, feature_requests, feature_threads, feature_mutex,
	feature_profiles;

static const struct feature feature_nothing = {
	.plan = { .name = "nothing", .optional = true },
};
static const struct feature feature_nothing_to_scrape = {
	.plan = { .name = "nothing_to_scrape", .supports = true },
	.collector = true,
	.hint = "it collects nothing",
};

static const char *const choices[] = { "one", "other" };
static const struct flag made_up_flags[] = {
	FLAG("made_up.number", "N", "3",
	     FLAG_NUMBER(made_up_settings, number, 9, "a number up to 9"), "How many."),
	FLAG("made_up.duration", "DURATION", "1m30s", FLAG_DURATION(made_up_settings, duration_ns),
	     "How long."),
	FLAG("made_up.text", "TEXT", NULL, FLAG_TEXT(made_up_settings, text, "a text"), "What."),
	FLAG("made_up.choice", "CHOICE", "one", FLAG_CHOICE(made_up_settings, choice, choices),
	     "Which."),
	FLAG("made_up.switch", NULL, NULL, FLAG_SWITCH(made_up_settings, is_switched), "Whether."),
};
const void *made_up_opened_with;
struct helper *made_up_helpers[FEATURE_HELPERS_MAX];

static int made_up_open(const struct feature_env *env, void **state)
{
	made_up_opened_with = env->settings;
	memcpy(made_up_helpers, env->helpers, sizeof(made_up_helpers));
	*state = &made_up_opened_with;
	return 0;
}

static int of_feature_run(const struct command_call *call)
{
	(void)call;
	return 5;
}

static const struct command made_up_commands[] = {
	{
		.name = "of-feature",
		.summary = "Nothing",
		.about = "Nothing.\n",
		.exit_codes = "5.\n",
		.run = of_feature_run,
	},
};

static int made_up_page(void *arg, const struct http_request *request, struct http_page *page)
{
	(void)arg;
	(void)request;
	return http_page_text(page, 200, "made up");
}

static const struct http_route made_up_routes[] = {
	{ .path = MADE_UP_PATH, .title = "Made up", .page = made_up_page },
};

static int made_up_answer(struct helper_work *work, void *question, void *answer)
{
	(void)work;
	*(char *)answer = *(const char *)question;
	return 0;
}

static bool made_up_check(void *answer)
{
	(void)answer;
	return true;
}

static const struct helper_kind made_up_helper_kind = {
	.name = "made-up",
	.strict = true,
	.question_bytes = 1,
	.answer_bytes = 1,
	.answer = made_up_answer,
	.check = made_up_check,
};

static int made_up_other_answer(struct helper_work *work, void *question, void *answer)
{
	(void)work;
	*(char *)answer = (char)(*(const char *)question + 1);
	return 0;
}

static const struct helper_kind made_up_other_kind = {
	.name = "made-up-other",
	.strict = true,
	.question_bytes = 1,
	.answer_bytes = 1,
	.answer = made_up_other_answer,
	.check = made_up_check,
};

static const struct feature feature_made_up = {
	.plan = { .name = "made_up", .optional = true },
	.open = made_up_open,
	.flags = made_up_flags,
	.flags_len = COUNT(made_up_flags),
	.settings_bytes = sizeof(struct made_up_settings),
	.commands = made_up_commands,
	.commands_len = COUNT(made_up_commands),
	.routes = made_up_routes,
	.routes_len = COUNT(made_up_routes),
	.helpers = { &made_up_helper_kind, &made_up_other_kind },
};

struct made_up_counted made_up_counted = { .row = { .result = "counted" } };

static int counted_collect(void *state, struct collection *collection)
{
	(void)state;
	made_up_counted.row.processes = ++made_up_counted.taken;
	return BUDGET_STEP(&collection->budget, &made_up_counted.cost, 0);
}

static void counted_show_self(void *state, struct snapshot *snapshot)
{
	(void)state;
	snapshot->mutexes = &made_up_counted.row;
	snapshot->mutexes_len = 1;
}

static const struct feature feature_counted = {
	.plan = { .name = "counted", .supports = true },
	.always = true,
	.collect = counted_collect,
	.show_self = counted_show_self,
};

static const struct feature feature_on_request = {
	.plan = { .name = "on_request", .optional = true, .supports = true },
	.collector = true,
};

static const struct feature feature_nameless = {
	.plan = { .name = "nameless", .supports = true },
};

const struct feature *const features_table[] = {
	&feature_discovery, &feature_requests,   &feature_threads,           &feature_mutex,
	&feature_profiles,  &feature_nothing,    &feature_nothing_to_scrape, &feature_made_up,
	&feature_counted,   &feature_on_request, &feature_nameless,
};
const size_t features_len = COUNT(features_table);
_Static_assert(COUNT(features_table) <= LOADER_FEATURES_MAX,
	       "there is no room for those that are made up");
