/* SPDX-License-Identifier: Apache-2.0 */
#include "base/flag.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

#define DURATION_MAX_NS (365 * 86400 * NS_PER_S)

int flag_set_text(void *values, const struct flag *flag, const char *value)
{
	if (!*value)
		return -EINVAL;
	*(const char **)flag_member(values, flag) = value;
	return 0;
}

int flag_set_number(void *values, const struct flag *flag, const char *value)
{
	uint64_t number;

	if (text_parse_u64(&value, &number) || *value || number < flag->min || number > flag->max)
		return -EINVAL;
	*(uint64_t *)flag_member(values, flag) = number;
	return 0;
}

int flag_set_duration(void *values, const struct flag *flag, const char *value)
{
	return duration_parse(value, true, DURATION_MAX_NS, flag_member(values, flag));
}

int flag_set_choice(void *values, const struct flag *flag, const char *value)
{
	for (size_t i = 0; i < flag->names_len; i++) {
		if (strcmp(value, flag->names[i]) != 0)
			continue;
		*(unsigned int *)flag_member(values, flag) = (unsigned int)i;
		return 0;
	}
	return -EINVAL;
}

int flag_set_switch(void *values, const struct flag *flag, const char *value)
{
	(void)value;
	*(bool *)flag_member(values, flag) = true;
	return 0;
}
