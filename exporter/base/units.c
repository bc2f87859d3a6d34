/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

/* The unit that *@text begins with, which is moved behind it; 0 if it is none. */
static uint64_t duration_unit_ns(const char **text, bool days)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 },
		{ "us", NS_PER_US },
		{ "\302\265s", NS_PER_US }, /* the micro sign */
		{ "\316\274s", NS_PER_US }, /* the Greek letter */
		{ "ms", NS_PER_MS },
		{ "s", NS_PER_S },
		{ "m", 60 * NS_PER_S },
		{ "h", 3600 * NS_PER_S },
		{ "d", 86400 * NS_PER_S }, /* the last */
	};

	for (size_t i = 0; i < COUNT(units) - !days; i++) {
		if (!text_has_prefix(*text, units[i].name))
			continue;
		*text += strlen(units[i].name);
		return units[i].ns;
	}
	return 0;
}

/* Digits behind a point, as billionths; what is finer than that is cut off. */
static uint64_t duration_fraction(const char **text)
{
	uint64_t billionths = 0, weight = NS_PER_S / 10;

	for (; **text >= '0' && **text <= '9'; (*text)++) {
		billionths += (uint64_t)(**text - '0') * weight;
		weight /= 10;
	}
	return billionths;
}

/* One number with its unit. */
static int duration_part(const char **text, bool days, uint64_t most_ns, uint64_t *part_ns)
{
	uint64_t whole = 0, billionths = 0, unit_ns;
	const char *begin = *text, *point;

	if (text_parse_u64(text, &whole) == -ERANGE)
		return -EINVAL;
	point = *text;
	if (*point == '.') {
		(*text)++;
		billionths = duration_fraction(text);
		if (*text == point + 1 && point == begin)
			return -EINVAL;
	} else if (point == begin) {
		return -EINVAL;
	}
	unit_ns = duration_unit_ns(text, days);
	if (!unit_ns || whole > most_ns / unit_ns)
		return -EINVAL;
	*part_ns = whole * unit_ns + (uint64_t)((unsigned __int128)billionths * unit_ns / NS_PER_S);
	return 0;
}

int duration_parse(const char *text, bool days, uint64_t most_ns, uint64_t *ns)
{
	uint64_t total_ns = 0, part_ns = 0;

	if (strcmp(text, "0") == 0) {
		*ns = 0;
		return 0;
	}
	do {
		if (duration_part(&text, days, most_ns, &part_ns) < 0)
			return -EINVAL;
		total_ns += part_ns;
		if (total_ns > most_ns)
			return -EINVAL;
	} while (*text);
	*ns = total_ns;
	return 0;
}
