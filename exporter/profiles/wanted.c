/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/wanted.h"

#include <string.h>

#include "base/text.h"

#define SECONDS_DEFAULT 30U

static bool seconds_parse(const char *text, uint64_t *seconds)
{
	return !text_parse_u64(&text, seconds) && !*text && *seconds &&
	       *seconds <= PROFILE_SECONDS_MAX;
}

static const char *argument_read(const struct http_argument *argument, struct wanted *wanted)
{
	if (!strcmp(argument->name, "seconds"))
		return seconds_parse(argument->value, &wanted->seconds)
			       ? NULL
			       : "seconds: a whole number from 1 to 60\n";
	if (!strcmp(argument->name, "workload")) {
		wanted->workload = argument->value;
	} else if (!strcmp(argument->name, "format")) {
		wanted->folded = !strcmp(argument->value, "folded");
		if (!wanted->folded && strcmp(argument->value, "pprof") != 0)
			return "format: pprof or folded\n";
	}
	return NULL;
}

const char *wanted_read(const struct http_request *request, struct wanted *wanted)
{
	const char *wrong = NULL;

	*wanted = (struct wanted){ .seconds = SECONDS_DEFAULT, .workload = "" };
	for (size_t i = 0; !wrong && i < request->arguments_len; i++)
		wrong = argument_read(&request->arguments[i], wanted);
	return wrong;
}
