/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/plan.h"

#include <string.h>

size_t plan_backends(const struct feature_plan *plan)
{
	size_t len = 0;

	while (len < FEATURE_BACKENDS_MAX && plan->backends[len].object)
		len++;
	return len;
}

unsigned int plans_map_entries(const struct feature_plan *const *plans, size_t len,
			       unsigned int wanted, const struct map_sizes *sizes, const char *name)
{
	for (size_t id = 0; id < len; id++) {
		const struct map_plan *maps = plans[id]->maps;

		for (size_t i = 0; i < FEATURE_MAPS_SIZED_MAX && maps[i].name; i++)
			if (!strcmp(maps[i].name, name))
				return wanted & 1U << id ? maps[i].entries(sizes) : 1;
	}
	return 0;
}
