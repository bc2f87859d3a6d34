/* SPDX-License-Identifier: Apache-2.0 */
#include "registry.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/utf8.h"
#include "discovery/identity.h"
#include "read/requests.h"
#include "read/threads.h"
#include "read/trees.h"

#define WALK_PASSES_MAX 100
#define LISTENERS_AGAIN_NS 1000000000ULL
#define CLOSING_NS 1000000000ULL /* most processes that end have closed their sockets by then */

void registry_init(struct registry *registry, struct kernel *kernel, struct ledger *ledger,
		   struct namer *namer)
{
	memset(registry, 0, sizeof(*registry));
	registry->kernel = kernel;
	registry->ledger = ledger;
	registry->namer = namer;
}

static void member_identify(struct registry *registry, uint32_t slot, const struct tree *tree)
{
	struct member *member = &registry->members[slot];
	struct identity identity;
	char name[IDENTITY_NAME_LEN];
	char comm[COMM_LEN + 1] = "";
	int r;

	memcpy(comm, tree->comm, COMM_LEN);
	r = namer_identify(registry->namer, (pid_t)tree->tgid, tree->start_ns, comm, &identity);
	if (r < 0 && member->known)
		return; /* it ended after it was identified */
	if (r)
		registry->kernel->lost[DROP_IDENTITY]++;
	if (r < 0)
		identity_from_comm(comm, &identity);
	/* Names that would be shown alike are one workload. */
	utf8_copy(name, sizeof(name), identity.name);
	memcpy(identity.name, name, sizeof(name));
	*member = (struct member){
		.known = true,
		.tgid = tree->tgid,
		.start_ns = tree->start_ns,
		.handle = ledger_workload(registry->ledger, &identity),
	};
}

static bool threads_are_on(const struct registry *registry)
{
	return loader_feature(registry->kernel->loader, FEATURE_THREADS)->on;
}

static bool member_is(const struct member *member, const struct tree *tree)
{
	return member->known && member->tgid == tree->tgid && member->start_ns == tree->start_ns;
}

/* The order is: no new events (key), take what was counted, then give the slot back. */
static int endpoints_fold(struct registry *registry, uint32_t slot, uint64_t now_ns)
{
	struct kernel *kernel = registry->kernel;
	struct endpoint_row row;
	uint32_t tree;
	uint16_t port;

	for (uint32_t i = 1; i < kernel->sizes.endpoints; i++) {
		const struct endpoint_info *info = view_at(&kernel->endpoint_info, i);

		if (!info || !info->used || info->tree != slot)
			continue;
		trees_forget_endpoint(kernel, slot, (uint16_t)info->port);
		requests_close(kernel, i);
		if (requests_read(kernel, i, now_ns, &tree, &port, &row) != 1)
			return -EAGAIN;
		ledger_fold_endpoint(registry->ledger, registry->members[slot].handle, port, &row);
		requests_free(kernel, i);
	}
	return 0;
}

static bool pool_lives(const struct pool_row *row)
{
	uint64_t threads = 0;

	for (int state = 0; state < STATES; state++)
		threads |= row->threads[state];
	return threads;
}

static int pools_fold(struct registry *registry, uint32_t slot, uint64_t now_ns)
{
	struct kernel *kernel = registry->kernel;
	char name[THREADS_NAME_LEN];
	struct pool_row row;
	uint32_t tree;

	for (uint32_t i = 1; i < kernel->sizes.pools; i++) {
		const struct pool_info *info = view_at(&kernel->pool_info, i);

		if (!info || !info->used || info->tree != slot)
			continue;
		if (threads_read(kernel, i, now_ns, &tree, name, &row) != 1 || pool_lives(&row))
			return -EAGAIN;
		trees_forget_pool(kernel, slot, info->name);
		ledger_fold_pool(registry->ledger, registry->members[slot].handle, name, &row);
		threads_free(kernel, i);
	}
	return 0;
}

static void tree_retire(struct registry *registry, uint32_t slot, uint64_t now_ns)
{
	if (endpoints_fold(registry, slot, now_ns) || pools_fold(registry, slot, now_ns))
		return; /* the rest at the next refresh */
	registry->members[slot].known = false;
	trees_free(registry->kernel, slot);
}

/*
 * Whether nothing of a tree can happen any more. Its last thread tells, as it ends after it has
 * closed its sockets; where threads are not observed, time must.
 */
static bool tree_over(struct registry *registry, uint32_t slot, uint64_t now_ns)
{
	struct member *member = &registry->members[slot];
	struct tree tree;

	if (trees_read(registry->kernel, slot, &tree) != 1 || !tree_ended(&tree)) {
		member->ended_ns = 0;
		return false;
	}
	if (threads_are_on(registry))
		return true;
	if (!member->ended_ns)
		member->ended_ns = now_ns;
	return now_ns - member->ended_ns >= CLOSING_NS;
}

static void tree_refresh(struct registry *registry, uint32_t slot, uint64_t now_ns)
{
	struct member *member = &registry->members[slot];
	struct tree tree;

	if (trees_read(registry->kernel, slot, &tree) != 1) {
		member->known = false;
		return;
	}
	if (!member_is(member, &tree)) {
		member->known = false;
		member_identify(registry, slot, &tree);
	}
	/* As it is now: to identify it took time. */
	if (tree_over(registry, slot, now_ns)) {
		tree_retire(registry, slot, now_ns);
		return;
	}
	/*
	 * A wrapper that listens and then becomes the server: the new name takes the history over,
	 * the old one stands still until it is forgotten, so no rate counts anything twice.
	 */
	if (trees_take_flags(registry->kernel, slot, TREE_EXEC))
		member_identify(registry, slot, &tree);
}

/* Whether any tree asks for a walk by one of @flags; takes the requests. */
static bool walk_wanted(struct registry *registry, uint32_t flags)
{
	bool wanted = false;

	for (uint32_t slot = 1; slot < TREES_MAX; slot++)
		wanted |= trees_take_flags(registry->kernel, slot, flags);
	return wanted;
}

/*
 * Walks tasks until all are found. One pass may not be enough: the kernel makes the storage of
 * threads from a small cache, which it fills anew a moment later. Who listens meanwhile has rung
 * for the next refresh. 0; -EAGAIN where some are still refused; -errno.
 */
static int walk_tasks(struct registry *registry, int passes)
{
	struct kernel *kernel = registry->kernel;

	while (passes--) {
		int r = loader_walk(kernel->loader, WALK_TASKS);

		if (r || !walk_wanted(registry, TREE_REFUSED))
			return r;
		sched_yield();
	}
	kernel->lost[DROP_THREAD_STORAGE]++;
	return -EAGAIN;
}

/* Threads that are not counted yet. What is owed is tried once: it may go on failing. */
static int threads_find(struct registry *registry)
{
	bool owed = registry->tasks_owed;
	int r = 0;

	if (!threads_are_on(registry)) {
		registry->kernel->lost[DROP_THREAD_STORAGE] += walk_wanted(registry, TREE_REFUSED);
		return 0;
	}
	if (walk_wanted(registry, TREE_WALK | TREE_REFUSED) || owed)
		r = walk_tasks(registry, owed ? 1 : WALK_PASSES_MAX);
	registry->tasks_owed = r;
	return r == -EAGAIN ? 0 : r;
}

/* Who holds the listeners. It takes all descriptors of the machine, and so some time. */
static int holders_find(struct registry *registry, uint64_t now_ns)
{
	uint64_t walked_ns = registry->listeners_walked_ns;
	int r;

	if (walked_ns && now_ns - walked_ns < LISTENERS_AGAIN_NS)
		return 0;
	if (!trees_take_flags(registry->kernel, SLOT_OTHER, TREE_WALK) && !registry->listeners_owed)
		return 0;
	r = loader_walk(registry->kernel->loader, WALK_LISTENERS);
	registry->listeners_walked_ns = now_ns;
	registry->listeners_owed = r;
	return r;
}

int registry_refresh(struct registry *registry, uint64_t now_ns)
{
	int holders, threads;

	for (uint32_t slot = 1; slot < TREES_MAX; slot++)
		tree_refresh(registry, slot, now_ns);
	holders = holders_find(registry, now_ns);
	threads = threads_find(registry);
	registry->kernel->lost[DROP_WALK] += (holders != 0) + (threads != 0);
	return holders ? holders : threads;
}

bool registry_find(const struct registry *registry, uint32_t tree, ledger_handle *handle)
{
	if (tree >= TREES_MAX || !registry->members[tree].known)
		return false;
	*handle = registry->members[tree].handle;
	return true;
}

size_t registry_len(const struct registry *registry)
{
	size_t len = 0;

	for (uint32_t slot = 1; slot < TREES_MAX; slot++)
		len += registry->members[slot].known;
	return len;
}
