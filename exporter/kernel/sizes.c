/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/sizes.h"

#include <errno.h>
#include <stdio.h>

#include "abi/limits.h"
#include "base/cleanup.h"
#include "base/cpus.h"

#define CPUS_POSSIBLE "/sys/devices/system/cpu/possible"

static unsigned int shards_for(unsigned int cpus)
{
	unsigned int shards = 1;

	while (shards < cpus && shards < SHARDS_MAX)
		shards *= 2;
	return shards;
}

static int cpus_read(void)
{
	_cleanup_(cleanup_fclose) FILE *file = fopen(CPUS_POSSIBLE, "re");
	char list[4096];

	if (!file)
		return -errno;
	return fgets(list, sizeof(list), file) ? cpus_numbered(list) : -EINVAL;
}

int map_sizes_read(struct map_sizes *sizes)
{
	int cpus = cpus_read();

	if (cpus < 0)
		return cpus;
	sizes->cpus = (unsigned int)cpus;
	sizes->shards = shards_for(sizes->cpus);
	sizes->endpoints = 0;
	sizes->pools = 0;
	return 0;
}
