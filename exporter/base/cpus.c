/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpus.h"

#include <errno.h>
#include <stdlib.h>

#define NUMBER_MAX 65535 /* CONFIG_NR_CPUS is at most 8192 */

/* One number; NULL if there is none. */
static const char *number_read(const char *text, long *number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	*number = strtol(text, &end, 10);
	return *number > NUMBER_MAX ? NULL : end;
}

int cpus_numbered(const char *list)
{
	long highest = -1, number;

	for (;; list++) {
		list = number_read(list, &number);
		if (list && *list == '-')
			list = number_read(list + 1, &number);
		if (!list)
			return -EINVAL;
		if (number > highest)
			highest = number;
		if (*list != ',')
			break;
	}
	return *list && *list != '\n' ? -EINVAL : (int)highest + 1;
}
