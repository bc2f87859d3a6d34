/* SPDX-License-Identifier: Apache-2.0 */
/* How large the maps are that depend on the machine: every CPU may have its copy of a cell. */
#ifndef WORKLOAD_KERNEL_SIZES_H
#define WORKLOAD_KERNEL_SIZES_H

struct map_sizes {
	unsigned int cpus; /* numbers that CPUs may have */
	unsigned int shards; /* copies of cells that are written atomically: a power of two */
	/* Slots of the tables that features share, `other` included; they set them. */
	unsigned int endpoints;
	unsigned int pools;
};

/* What a feature tells of a map that is sized by the machine. */
struct map_plan {
	const char *name;
	unsigned int (*entries)(const struct map_sizes *sizes);
};

/* How many CPUs and shards; tables have no slots yet. 0 or -errno: CPUs cannot be counted. */
int map_sizes_read(struct map_sizes *sizes);

#endif
