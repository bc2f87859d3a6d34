/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/registry.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "kernel/quotas.h"
#include "kernel/trees.h"

#define WALK_PASSES_MAX 100
#define LISTENERS_AGAIN_NS 1000000000ULL
#define REFUSED_AGAIN_NS 5000000000ULL
#define WALK_NS 10000000ULL /* of a walk over descriptors at a time, one part in five of it all */
#define CLOSING_NS 1000000000ULL /* most processes that end have closed their sockets by then */

/* Whether threads are counted, so that the end of the last one is seen. */
static bool threads_are_seen(const struct registry *registry)
{
	return loader_can_walk(registry->kernel->loader, WALK_TASKS);
}

void registry_init(struct registry *registry, struct kernel *kernel, struct ledger *ledger,
		   struct namer *namer)
{
	memset(registry, 0, sizeof(*registry));
	registry->kernel = kernel;
	naming_init(&registry->naming, kernel, ledger, namer);
}

/* --- trees that begin, change and end -------------------------------------------------------- */

/*
 * Whether nothing of a tree can happen any more. Its last thread tells, as it ends after it has
 * closed its sockets; where threads are not observed, time must.
 */
static bool tree_over(struct registry *registry, uint32_t slot, uint64_t now_ns)
{
	uint64_t *ended_ns = &registry->ended_ns[slot];
	struct tree tree;

	if (trees_read(registry->kernel, slot, &tree) != 1 || !tree_ended(&tree)) {
		*ended_ns = 0;
		return false;
	}
	if (threads_are_seen(registry))
		return true;
	if (!*ended_ns)
		*ended_ns = now_ns;
	return now_ns - *ended_ns >= CLOSING_NS;
}

bool registry_look(struct registry *registry, uint32_t tree, uint64_t now_ns, ledger_handle *handle)
{
	struct tree seen;

	if (trees_read(registry->kernel, tree, &seen) != 1) {
		naming_forget(&registry->naming, tree);
		return false;
	}
	naming_look(&registry->naming, tree, &seen, now_ns);
	/* As it is now: to look at it took time. */
	if (!tree_over(registry, tree, now_ns))
		return false;
	naming_settle(&registry->naming, tree, &seen);
	*handle = registry->naming.trees[tree].handle;
	return true;
}

bool registry_take_left_other(struct registry *registry, uint32_t tree)
{
	return naming_take_left_other(&registry->naming, tree);
}

void registry_give_back(struct registry *registry, uint32_t tree)
{
	naming_forget(&registry->naming, tree);
	trees_free(registry->kernel, tree);
	registry->freed = true;
}

/* --- what is sought -------------------------------------------------------------------------- */

/* Whether any tree asks for a walk by one of @flags; takes the requests. */
static bool walk_wanted(struct registry *registry, uint32_t flags)
{
	bool wanted = false;

	for (uint32_t slot = 1; slot < TREES_MAX; slot++)
		wanted |= trees_take_flags(registry->kernel, slot, flags);
	return wanted;
}

/* Whether any tree has a thread that is still refused; each is a loss. */
static bool refused_count(struct registry *registry)
{
	bool refused = false;

	for (uint32_t slot = 1; slot < TREES_MAX; slot++) {
		if (!trees_take_flags(registry->kernel, slot, TREE_REFUSED))
			continue;
		kernel_drop(registry->kernel, slot, DROP_THREAD_STORAGE);
		refused = true;
	}
	return refused;
}

/*
 * Walks tasks until all are found. One pass may not be enough: the kernel makes the storage of
 * threads from a small cache, which it fills anew a moment later. A process that listens meanwhile
 * has rung for the next refresh. 0; -EAGAIN where some are still refused; -errno.
 */
static int walk_tasks(struct registry *registry, int passes)
{
	struct kernel *kernel = registry->kernel;

	for (;;) {
		int r = loader_walk(kernel->loader, WALK_TASKS);

		if (!r && !--passes && refused_count(registry))
			return -EAGAIN;
		if (r || !passes || !walk_wanted(registry, TREE_REFUSED))
			return r;
		sched_yield();
	}
}

/* Threads that are not counted yet. What is owed is tried once: it may go on failing. */
static int threads_find(struct registry *registry)
{
	bool owed = registry->tasks_owed;
	int r = 0;

	if (!threads_are_seen(registry)) {
		refused_count(registry);
		return 0;
	}
	if (walk_wanted(registry, TREE_WALK | TREE_REFUSED) || owed)
		r = walk_tasks(registry, owed ? 1 : WALK_PASSES_MAX);
	registry->tasks_owed = r;
	return r == -EAGAIN ? 0 : r;
}

/* Carries the walk on; the one for connections follows that for listeners, once. */
static int descriptors_walk(struct registry *registry, uint64_t until_ns)
{
	int r = loader_walk_some(registry->kernel->loader, registry->walk, &registry->cursor,
				 until_ns);

	if (!r && registry->walk == WALK_LISTENERS && !registry->adopted) {
		registry->walk = WALK_CONNECTIONS;
		r = loader_walk_some(registry->kernel->loader, registry->walk, &registry->cursor,
				     until_ns);
	}
	if (r > 0)
		return 0;
	if (!r && registry->walk == WALK_CONNECTIONS)
		registry->adopted = true;
	registry->walking = false;
	registry->listeners_walked_ns = clock_monotonic_ns();
	registry->listeners_owed = r;
	return r;
}

/*
 * Finds the processes that hold the listeners. It takes all descriptors of the machine, of which
 * users can have millions: so a part of it each time.
 */
static int holders_find(struct registry *registry, uint64_t walk_ns)
{
	uint64_t walked_ns = registry->listeners_walked_ns, now_ns = clock_monotonic_ns();

	if (!registry->walking) {
		if (walked_ns && now_ns - walked_ns < LISTENERS_AGAIN_NS)
			return 0;
		if (!trees_take_flags(registry->kernel, SLOT_OTHER, TREE_WALK) &&
		    !registry->listeners_owed)
			return 0;
		registry->walk = WALK_LISTENERS;
		registry->walking = true;
	}
	return descriptors_walk(registry, now_ns + walk_ns);
}

/* Whether any of @kind has been refused since it was looked for last, and there is room by now. */
static bool quota_freed(struct registry *registry, unsigned int kind, enum drop_reason reason)
{
	uint64_t *sought = &registry->quota_refusals[kind], refusals;

	if (!quotas_have_room(registry->kernel, kind))
		return false;
	refusals = kernel_lost(registry->kernel, reason);
	if (refusals == *sought)
		return false;
	*sought = refusals;
	return true;
}

/* The same of tables, of which slots have become free. */
static bool table_freed(struct registry *registry)
{
	uint64_t refusals;

	if (!registry->freed)
		return false;
	registry->freed = false;
	refusals = kernel_lost(registry->kernel, DROP_TREES_FULL) +
		   kernel_lost(registry->kernel, DROP_POOLS_FULL);
	if (refusals == registry->refusals)
		return false;
	registry->refusals = refusals;
	return true;
}

/*
 * Walks again for what found no room, and is in `other` or not measured, once slots or quota are
 * free. Endpoints need no walk: the sweep passes by all sockets (tracked_seek() in
 * bpf/core/endpoints.h).
 */
static void refused_seek(struct registry *registry, uint64_t now_ns)
{
	bool slots, threads, listeners;

	if (now_ns - registry->sought_ns < REFUSED_AGAIN_NS)
		return;
	slots = table_freed(registry);
	threads = quota_freed(registry, QUOTA_THREADS, DROP_THREAD_QUOTA);
	listeners = quota_freed(registry, QUOTA_SOCKETS, DROP_LISTENER_QUOTA);
	if (!slots && !threads && !listeners)
		return;
	registry->listeners_owed = true;
	registry->tasks_owed = true;
	registry->sought_ns = now_ns;
}

int registry_seek(struct registry *registry, uint64_t now_ns, uint64_t budget_ns)
{
	int heirs, holders, threads;

	refused_seek(registry, now_ns);
	heirs = naming_find_heirs(&registry->naming, now_ns);
	naming_exchange(&registry->naming, budget_ns);
	holders = holders_find(registry, WALK_NS);
	threads = threads_find(registry);
	registry->kernel->lost[DROP_WALK] += (heirs != 0) + (holders != 0) + (threads != 0);
	return heirs ? heirs : holders ? holders : threads;
}

int registry_adopt(struct registry *registry, uint64_t budget_ns)
{
	int r;

	registry->listeners_owed = true;
	r = holders_find(registry, budget_ns);
	registry->kernel->lost[DROP_WALK] += r != 0;
	return r;
}

void registry_answered(struct registry *registry)
{
	naming_exchange(&registry->naming, 0);
}

uint64_t registry_due_ns(const struct registry *registry)
{
	return registry->walking ? 0 : naming_due_ns(&registry->naming);
}

bool registry_find(const struct registry *registry, uint32_t tree, ledger_handle *handle)
{
	if (tree >= TREES_MAX || !registry->naming.trees[tree].known)
		return false;
	*handle = registry->naming.trees[tree].handle;
	return true;
}
