/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/trees.h"

#include <errno.h>

#include "kernel/table.h"

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

void trees_ask_walk(struct kernel *kernel, uint32_t slot)
{
	struct tree *tree = view_at(&kernel->trees, slot);

	if (tree)
		__atomic_fetch_or(&tree->flags, TREE_WALK, __ATOMIC_RELEASE);
}

/* Between the stores the pair names no process: a tree without a head, as it was before. */
void trees_set_head(struct kernel *kernel, uint32_t slot, const struct tree_process *heir)
{
	struct tree *tree = view_at(&kernel->trees, slot);

	if (!tree)
		return;
	__atomic_store_n(&tree->start_ns, heir->start_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&tree->tgid, heir->tgid, __ATOMIC_RELEASE);
}

void trees_set_tasks(struct kernel *kernel, uint32_t slot, bool tasks)
{
	struct tree *tree = view_at(&kernel->trees, slot);

	if (tree && tasks)
		__atomic_fetch_or(&tree->flags, TREE_TASKS, __ATOMIC_RELEASE);
	else if (tree)
		__atomic_fetch_and(&tree->flags, ~TREE_TASKS, __ATOMIC_RELEASE);
}

bool tree_ended(const struct tree *tree)
{
	return !tree->processes && !tree->threads;
}

static void share_give_back(struct kernel *kernel, uint32_t index, unsigned int kind)
{
	struct user_share *share = view_at(&kernel->shares, index);

	if (share)
		__atomic_fetch_sub(&share->taken[kind], 1, __ATOMIC_RELAXED);
}

/* How many entries of table @kind the tree has; NULL: it is one itself. */
static uint32_t *tree_entries(struct tree *tree, unsigned int kind)
{
	switch (kind) {
	case SHARE_ENDPOINTS:
		return &tree->endpoints;
	case SHARE_POOLS:
		return &tree->pools;
	default:
		return NULL;
	}
}

void trees_give_back(struct kernel *kernel, uint32_t slot, unsigned int kind, bool other)
{
	struct tree *tree = view_at(&kernel->trees, slot);
	uint32_t *entries;

	if (!tree)
		return;
	entries = tree_entries(tree, kind);
	if (entries && !other)
		__atomic_fetch_sub(entries, 1, __ATOMIC_RELAXED);
	share_give_back(kernel, user_share_index(tree->uid), kind);
	share_give_back(kernel, SHARE_ALL, kind);
}

int trees_free(struct kernel *kernel, uint32_t slot)
{
	struct tree *tree = view_at(&kernel->trees, slot);

	if (!tree)
		return -ENOMEM;
	__atomic_store_n(&tree->flags, 0, __ATOMIC_RELEASE);
	tree->tgid = 0;
	tree->start_ns = 0;
	trees_give_back(kernel, slot, SHARE_TREES, false);
	return table_push(kernel->free_trees, slot);
}
