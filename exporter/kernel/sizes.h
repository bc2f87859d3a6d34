/* SPDX-License-Identifier: Apache-2.0 */
/* How large the maps are that depend on the machine: every CPU may have its copy of a cell. */
#ifndef WORKLOAD_KERNEL_SIZES_H
#define WORKLOAD_KERNEL_SIZES_H

struct bpf_map;

struct map_sizes {
	unsigned int cpus; /* numbers that CPUs may have */
	unsigned int shards; /* copies of cells that are written atomically: a power of two */
	unsigned int endpoints; /* slots for endpoints */
	unsigned int pools; /* slots for pools: fewer on machines with many CPUs */
};

/* 0, or -errno if the number of CPUs cannot be read. */
int map_sizes_read(struct map_sizes *sizes);

/* Sets the number of entries of @map, before it is made, if that depends on @sizes. 0 or -errno. */
int map_sizes_apply(const struct map_sizes *sizes, struct bpf_map *map);

#endif
