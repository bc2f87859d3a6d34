/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/sizes.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "abi/limits.h"
#include "abi/requests.h"
#include "abi/threads.h"
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

static unsigned int endpoints_for(unsigned int shards)
{
	size_t fit = ENDPOINTS_BYTES_MAX / (shards * sizeof(struct endpoint_shard));

	return fit > ENDPOINTS_MAX ? ENDPOINTS_MAX : (unsigned int)fit;
}

static unsigned int pools_for(unsigned int cpus)
{
	size_t fit = POOL_STATES_BYTES_MAX / ((cpus + 1) * sizeof(struct pool_shard));

	if (fit > POOLS_MAX)
		return POOLS_MAX;
	return fit < POOLS_MIN ? POOLS_MIN : (unsigned int)fit;
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
	sizes->endpoints = endpoints_for(sizes->shards);
	sizes->pools = pools_for(sizes->cpus);
	return 0;
}

int map_sizes_apply(const struct map_sizes *sizes, struct bpf_map *map)
{
	const char *name = bpf_map__name(map);

	if (!strcmp(name, "endpoints"))
		return bpf_map__set_max_entries(map, sizes->endpoints * sizes->shards);
	if (!strcmp(name, "pool_waits"))
		return bpf_map__set_max_entries(map, sizes->pools * sizes->shards);
	if (!strcmp(name, "pool_states"))
		return bpf_map__set_max_entries(map, sizes->pools * (sizes->cpus + 1));
	return 0;
}
