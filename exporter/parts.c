/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <errno.h>
#include <string.h>

const char *part_name(enum part part)
{
	static const char *const names[PARTS] = {
		[PART_DISCOVERY] = "discovery",
		[PART_REQUESTS] = "requests",
		[PART_THREADS] = "threads",
	};

	return names[part];
}

int part_find(const char *name)
{
	for (int part = 0; part < PARTS; part++) {
		if (strcmp(part_name((enum part)part), name) == 0)
			return part;
	}
	return -ENOENT;
}
