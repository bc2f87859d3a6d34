/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"
#include "commands/commands.h"

extern const struct command command_check, command_profile, command_web_config;

/* In the order of --help. */
const struct command *const commands_table[] = {
	&command_check,
	&command_profile,
	&command_web_config,
};
const size_t commands_len = COUNT(commands_table);
