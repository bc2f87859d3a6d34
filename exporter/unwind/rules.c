/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/rules.h"

#include <string.h>

bool rules_find(const struct rules *rules, const struct unwind_rule *rule, size_t *at)
{
	size_t from = 0, to = rules->len;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int order = memcmp(&rules->rules[rules->order[middle]], rule, sizeof(*rule));

		if (!order) {
			*at = middle;
			return true;
		}
		if (order < 0)
			from = middle + 1;
		else
			to = middle;
	}
	*at = from;
	return false;
}

void rules_insert(struct rules *rules, size_t at, uint16_t place)
{
	memmove(rules->order + at + 1, rules->order + at,
		(rules->len - at) * sizeof(*rules->order));
	rules->order[at] = place;
	rules->len++;
}

void rules_remove(struct rules *rules, size_t at)
{
	rules->len--;
	memmove(rules->order + at, rules->order + at + 1,
		(rules->len - at) * sizeof(*rules->order));
}
