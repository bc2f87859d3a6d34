/* SPDX-License-Identifier: Apache-2.0 */
#include "web/values.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "web/config.h"

#define COUNT_MAX 1000000
#define DURATION_MAX_NS (100ULL * 365 * 86400 * NS_PER_S)
#define BCRYPT_BYTES 60

int value_text(void *member, const struct yaml_node *value, struct yaml_error *error)
{
	if (value->kind != YAML_TEXT)
		return web_yaml_fail(error, value, "expected a text");
	*(char **)member = *value->text ? value->text : NULL;
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
	if (value->kind == YAML_TEXT &&
	    !duration_parse(value->text, false, DURATION_MAX_NS, member))
		return 0;
	return web_yaml_fail(error, value, "expected a duration such as 1s, 500ms or 1m30s, or 0");
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
