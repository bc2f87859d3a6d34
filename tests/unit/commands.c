/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands as the unit tests know it: they say what they were called with. */
#include "commands/commands.h"

#include "base/units.h"
#include "made_up.h"

struct made_up_call made_up_call;

static int made_up_run(const struct command_call *call)
{
	const struct made_up_count *settings = call->settings;

	made_up_call.times++;
	made_up_call.json = settings->json;
	made_up_call.number = settings->number;
	made_up_call.least = settings->least;
	made_up_call.operand = call->operand;
	return 3;
}

static int made_up_two(const struct command_call *call)
{
	made_up_call.times++;
	made_up_call.operand = call->operand;
	return 4;
}

static const struct flag count_flags[] = {
	COMMAND_FLAG("json", NULL, NULL, FLAG_SWITCH(made_up_count, json), "For machines."),
	COMMAND_FLAG("n", "N", "5", FLAG_NUMBER(made_up_count, number, 9, "a number up to 9"),
		     "How many."),
	COMMAND_FLAG("least", "N", "2",
		     FLAG_LETTER('m', FLAG_NUMBER_FROM(made_up_count, least, 2, 3, "2 or 3")),
		     "At least 2."),
};
static const struct command command_count = {
	.name = "count",
	.operand = "FILE",
	.summary = "How many",
	.about = "Counts.\n",
	.exit_codes = "3 as always.\n",
	.flags = count_flags,
	.flags_len = COUNT(count_flags),
	.settings_bytes = sizeof(struct made_up_count),
	.run = made_up_run,
};
static const struct command command_two = {
	.name = "two words",
	.summary = "Both\nof them",
	.about = "Does both.\n",
	.exit_codes = "4.\n",
	.run = made_up_two,
};
static const struct command command_other = {
	.name = "two others",
	.operand = "NAME",
	.summary = "Another",
	.about = "Does others.\n",
	.exit_codes = "4.\n",
	.run = made_up_two,
};

const struct command *const commands_table[] = { &command_count, &command_two, &command_other };
const size_t commands_len = COUNT(commands_table);
