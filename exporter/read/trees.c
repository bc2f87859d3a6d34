/* SPDX-License-Identifier: Apache-2.0 */
#include "read/trees.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

int trees_read(struct kernel *kernel, uint32_t slot, struct tree *tree)
{
	const struct tree *source = view_at(&kernel->trees, slot);

	if (!source)
		return -ENOMEM;
	if (!(__atomic_load_n(&source->flags, __ATOMIC_ACQUIRE) & TREE_USED))
		return 0;
	*tree = *source;
	return 1;
}

bool trees_take_flags(struct kernel *kernel, uint32_t slot, uint32_t flags)
{
	struct tree *tree = view_at(&kernel->trees, slot);

	return tree && __atomic_fetch_and(&tree->flags, ~flags, __ATOMIC_ACQ_REL) & flags;
}

bool tree_ended(const struct tree *tree)
{
	return !tree->processes && !tree->threads;
}

int trees_forget_endpoint(struct kernel *kernel, uint32_t tree, uint16_t port)
{
	struct endpoint_key key = { .tree = tree, .port = port };

	return bpf_map_delete_elem(kernel->endpoint_slots, &key) ? -errno : 0;
}

int trees_forget_pool(struct kernel *kernel, uint32_t tree, const char name[static COMM_LEN])
{
	struct pool_key key = { .tree = tree };

	memcpy(key.name, name, COMM_LEN);
	return bpf_map_delete_elem(kernel->pool_slots, &key) ? -errno : 0;
}

int trees_free(struct kernel *kernel, uint32_t slot)
{
	struct tree *tree = view_at(&kernel->trees, slot);

	if (!tree)
		return -ENOMEM;
	/* Threads that die late still count themselves in and out: their number is not reset. */
	__atomic_store_n(&tree->flags, 0, __ATOMIC_RELEASE);
	tree->tgid = 0;
	tree->start_ns = 0;
	__atomic_store_n(&tree->endpoints, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&tree->pools, 0, __ATOMIC_RELAXED);
	return bpf_map_update_elem(kernel->free_trees, NULL, &slot, BPF_ANY) ? -errno : 0;
}
