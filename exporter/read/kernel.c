/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kernel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stddef.h>

/* Every view with its map and element: one row each. */
static const struct {
	const char *map;
	size_t offset;
	size_t element_bytes;
} view_table[] = {
#define VIEW(member, type)                                              \
	{                                                               \
#member, offsetof(struct kernel, member), sizeof(type), \
	}
	VIEW(trees, struct tree),
	VIEW(endpoint_info, struct endpoint_info),
	VIEW(endpoints, struct endpoint_shard),
	VIEW(endpoint_gauges, struct endpoint_gauges),
	VIEW(pool_info, struct pool_info),
	VIEW(pool_states, struct pool_shard),
	VIEW(pool_waits, struct pool_waits),
	VIEW(drops, uint64_t),
#undef VIEW
};

#define VIEWS (sizeof(view_table) / sizeof(view_table[0]))

static struct view *kernel_view(struct kernel *kernel, size_t i)
{
	return (struct view *)((char *)kernel + view_table[i].offset);
}

int kernel_open(struct kernel *kernel, struct loader *loader)
{
	*kernel = (struct kernel){
		.loader = loader,
		.sizes = *loader_sizes(loader),
		.pool_slots = loader_map_fd(loader, "pool_slots"),
		.endpoint_slots = loader_map_fd(loader, "endpoint_slots"),
		.free_trees = loader_map_fd(loader, "free_trees"),
		.free_pools = loader_map_fd(loader, "free_pools"),
		.free_endpoints = loader_map_fd(loader, "free_endpoints"),
	};
	for (size_t i = 0; i < VIEWS; i++) {
		int r = view_open(kernel_view(kernel, i), loader, view_table[i].map,
				  view_table[i].element_bytes);

		if (r) {
			kernel_close(kernel);
			return r;
		}
	}
	return 0;
}

void kernel_close(struct kernel *kernel)
{
	for (size_t i = 0; i < VIEWS; i++)
		view_close(kernel_view(kernel, i));
}

bool kernel_is_usable(struct kernel *kernel)
{
	struct tree tree;
	uint32_t slot = 0;

	return !bpf_map_lookup_elem(kernel->trees.fd, &slot, &tree) &&
	       !loader_walk(kernel->loader, WALK_LISTENERS);
}

void kernel_drops(struct kernel *kernel, struct drop_row rows[static DROP_REASONS])
{
	static const char *const labels[] = {
#define DROP(id, label, help) label,
		DROP_LIST(DROP)
#undef DROP
	};

	for (unsigned int i = 0; i < DROP_REASONS; i++) {
		const uint64_t *cell = view_at(&kernel->drops, i);

		rows[i] = (struct drop_row){
			.reason = labels[i],
			.dropped = kernel->lost[i] + (cell ? *(const volatile uint64_t *)cell : 0),
		};
	}
}

static uint64_t count_used_endpoints(struct kernel *kernel)
{
	uint64_t used = 0;

	for (size_t i = 1; i < kernel->sizes.endpoints; i++) {
		const struct endpoint_info *info = view_at(&kernel->endpoint_info, i);

		used += info && info->used;
	}
	return used;
}

static uint64_t count_used_pools(struct kernel *kernel)
{
	uint64_t used = 0;

	for (size_t i = 1; i < kernel->sizes.pools; i++) {
		const struct pool_info *info = view_at(&kernel->pool_info, i);

		used += info && info->used;
	}
	return used;
}

static uint64_t count_sockets(struct kernel *kernel)
{
	uint64_t sockets = 0;

	for (size_t i = 0; i < kernel->sizes.endpoints; i++) {
		const struct endpoint_gauges *gauges = view_at(&kernel->endpoint_gauges, i);

		sockets += gauges ? gauges->sockets : 0;
	}
	return sockets;
}

void kernel_maps(struct kernel *kernel, struct map_row rows[static KERNEL_MAPS])
{
	uint64_t trees = 0, threads = 0;

	for (size_t i = 1; i < TREES_MAX; i++) {
		const struct tree *tree = view_at(&kernel->trees, i);

		if (!tree || !(tree->flags & TREE_USED))
			continue;
		trees++;
		threads += tree->threads;
	}
	rows[0] = (struct map_row){ "trees", trees, TREES_MAX - 1 };
	rows[1] = (struct map_row){ "endpoints", count_used_endpoints(kernel),
				    kernel->sizes.endpoints - 1 };
	rows[2] = (struct map_row){ "pools", count_used_pools(kernel), kernel->sizes.pools - 1 };
	rows[3] = (struct map_row){ "threads", threads, 0 };
	rows[4] = (struct map_row){ "sockets", count_sockets(kernel), 0 };
}
