/* SPDX-License-Identifier: Apache-2.0 */
#include "web/values.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "web/config.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define COUNT_MAX 1000000
#define NS_PER_S 1000000000ULL
#define DURATION_MAX_NS (100ULL * 365 * 86400 * NS_PER_S)
#define BCRYPT_BYTES 60

int value_text(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	char **text = member, *copy;

	if (value->kind != YAML_TEXT)
		return web_yaml_fail(error, value, "expected a text");
	if (!*value->text)
		return 0;
	copy = strdup(value->text);
	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

int value_bool(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	static const char *const names[2][11] = {
		{ "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N" },
		{ "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y" },
	};
	bool *out = member;

	for (size_t i = 0; value->kind == YAML_TEXT && value->plain && i < COUNT(names[0]); i++) {
		for (int truth = 0; truth < 2; truth++) {
			if (strcmp(value->text, names[truth][i]) != 0)
				continue;
			*out = truth;
			return 0;
		}
	}
	return web_yaml_fail(error, value, "expected true or false");
}

int value_count(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	const char *cursor = value->kind == YAML_TEXT && value->plain ? value->text : "";
	uint64_t number;

	if (text_parse_u64(&cursor, &number) < 0 || *cursor || number > COUNT_MAX)
		return web_yaml_fail(error, value, "expected a whole number from 0 to %d",
				     COUNT_MAX);
	*(uint64_t *)member = number;
	return 0;
}

int value_duration(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	if (value->kind == YAML_TEXT && !web_duration_parse(value->text, member))
		return 0;
	return web_yaml_fail(error, value, "expected a duration such as 1s, 500ms or 1m30s, or 0");
}

/* The unit that *@text begins with, which is moved behind it; 0 if it is none. */
static uint64_t duration_unit_ns(const char **text)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 },
		{ "us", 1000 },
		{ "\302\265s", 1000 }, /* the micro sign */
		{ "\316\274s", 1000 }, /* the Greek letter */
		{ "ms", 1000000 },
		{ "s", NS_PER_S },
		{ "m", 60 * NS_PER_S },
		{ "h", 3600 * NS_PER_S },
	};

	for (size_t i = 0; i < COUNT(units); i++) {
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
static int duration_part(const char **text, uint64_t *part_ns)
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
	unit_ns = duration_unit_ns(text);
	if (!unit_ns || whole > DURATION_MAX_NS / unit_ns)
		return -EINVAL;
	*part_ns = whole * unit_ns + (uint64_t)((unsigned __int128)billionths * unit_ns / NS_PER_S);
	return 0;
}

int web_duration_parse(const char *text, uint64_t *ns)
{
	uint64_t total_ns = 0, part_ns = 0;

	if (strcmp(text, "0") == 0) {
		*ns = 0;
		return 0;
	}
	do {
		if (duration_part(&text, &part_ns) < 0)
			return -EINVAL;
		total_ns += part_ns;
		if (total_ns > DURATION_MAX_NS)
			return -EINVAL;
	} while (*text);
	*ns = total_ns;
	return 0;
}

bool web_hash_is_bcrypt(const char *hash)
{
	static const char digits[] = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789";
	unsigned cost;

	if (strlen(hash) != BCRYPT_BYTES || hash[0] != '$' || hash[1] != '2' ||
	    !strchr("aby", hash[2]) || hash[3] != '$' || hash[6] != '$')
		return false;
	if (hash[4] < '0' || hash[4] > '3' || hash[5] < '0' || hash[5] > '9')
		return false;
	cost = (unsigned)(hash[4] - '0') * 10 + (unsigned)(hash[5] - '0');
	return cost >= 4 && cost <= 31 && strspn(hash + 7, digits) == BCRYPT_BYTES - 7;
}
