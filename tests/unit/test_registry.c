/* SPDX-License-Identifier: Apache-2.0 */
/* From the moment a service listens until its numbers are folded. */
#include <errno.h>
#include <poll.h>

#include "core.h"

#define ALL features_collectors()
#define BUDGET_NS 1000000000ULL

TestSuite(registry);

static void refresh(struct core *core)
{
	cr_assert_eq(collector_refresh(&core->collector, clock_monotonic_ns(), BUDGET_NS), 0);
}

/* The one that takes what a tree that has ended has counted: events under way then are over. */
static void refresh_later(struct core *core)
{
	uint64_t later_ns = clock_monotonic_ns() + 1000000000ULL;

	cr_assert_eq(collector_refresh(&core->collector, later_ns, BUDGET_NS), 0);
}

Test(registry, a_tree_is_who_its_founder_is)
{
	struct core *core = core_start(ALL);
	ledger_handle handle;

	core_found(core, 3);
	refresh(core);
	cr_expect(registry_find(&core->registry, 3, &handle));
	cr_expect_not(registry_find(&core->registry, 4, &handle));
	core_stop(core);
}

Test(registry, a_service_that_ends_keeps_what_it_has_counted)
{
	struct core *core = core_start(ALL);
	uint32_t last;

	core_found(core, 1);
	core_serve(core, 2, 1, 8080, 5);
	cr_assert(core_scrape(core));
	core_end(core, 1);
	refresh(core);
	refresh_later(core);
	cr_assert(core_scrape(core));
	cr_assert_eq(core->snapshot.endpoints_len, 1);
	cr_expect_eq(core->snapshot.endpoints[0].queue.bucket[0], 5);
	cr_expect_eq(core->snapshot.workloads[0].processes, 0);
	cr_expect_eq(plain_pushed(core->loader, "free_endpoints", &last), 1);
	cr_expect_eq(last, 2);
	cr_expect_eq(plain_deleted(core->loader, "endpoint_slots"), 1);
	cr_expect_eq(plain_pushed(core->loader, "free_trees", &last), 1);
	cr_expect_eq(last, 1);
	core_stop(core);
}

/* It has found its slot before that was closed, and adds to it now. */
Test(registry, an_event_that_is_under_way_when_a_tree_ends_is_counted)
{
	struct core *core = core_start(ALL);
	struct endpoint_shard *shard;

	core_found(core, 1);
	core_serve(core, 2, 1, 8080, 5);
	refresh(core);
	core_end(core, 1);
	refresh(core);
	shard = plain_at(core->loader, "endpoints", 2 * PLAIN_SHARDS);
	cr_assert_eq(shard->generation, 1);
	shard->queue.bucket[0]++;
	cr_assert(core_scrape(core));
	cr_assert_eq(core->snapshot.endpoints_len, 1);
	cr_expect_eq(core->snapshot.endpoints[0].queue.bucket[0], 6);
	refresh_later(core);
	cr_assert(core_scrape(core));
	cr_assert_eq(core->snapshot.endpoints_len, 1);
	cr_expect_eq(core->snapshot.endpoints[0].queue.bucket[0], 6);
	core_stop(core);
}

/* So an event that still remembers the slot is not counted for the endpoint that has it next. */
Test(registry, a_slot_that_is_given_back_is_empty_and_of_a_new_generation)
{
	struct core *core = core_start(ALL);
	const struct endpoint_info *info;
	const struct endpoint_shard *shard;

	core_found(core, 1);
	core_serve(core, 2, 1, 8080, 5);
	refresh(core);
	core_end(core, 1);
	refresh(core);
	refresh_later(core);
	info = plain_at(core->loader, "endpoint_info", 2);
	cr_expect_eq(info->used, 0);
	cr_expect_eq(info->generation, 1);
	for (size_t i = 0; i < PLAIN_SHARDS; i++) {
		shard = plain_at(core->loader, "endpoints", 2 * PLAIN_SHARDS + i);
		cr_expect_eq(shard->generation, 1);
		cr_expect_eq(shard->queue.bucket[0], 0);
		cr_expect_eq(shard->duration[0], 0);
		cr_expect_eq(shard->received_bytes, 0);
	}
	core_stop(core);
}

/* Its sockets are told from those of the next tree all the same. */
Test(registry, without_requests_a_slot_is_closed_and_given_back_of_a_new_generation)
{
	struct core *core = core_start(ALL & ~core_mask("requests"));
	const struct endpoint_info *info;
	uint32_t last;

	core_found(core, 1);
	core_serve(core, 2, 1, 8080, 0);
	refresh(core);
	core_end(core, 1);
	refresh(core);
	info = plain_at(core->loader, "endpoint_info", 2);
	cr_expect_eq(info->used, ENDPOINT_CLOSED);
	cr_expect_eq(info->generation, 0);
	refresh_later(core);
	cr_expect_eq(info->used, ENDPOINT_FREE);
	cr_expect_eq(info->generation, 1);
	cr_expect_eq(plain_pushed(core->loader, "free_endpoints", &last), 1);
	cr_expect_eq(last, 2);
	core_stop(core);
}

Test(registry, a_service_that_starts_again_counts_on)
{
	struct core *core = core_start(ALL);

	core_found(core, 1);
	core_serve(core, 1, 1, 8080, 5);
	cr_assert(core_scrape(core));
	core_end(core, 1);
	refresh(core);
	core_found(core, 2);
	core_serve(core, 3, 2, 8080, 2);
	cr_assert(core_scrape(core));
	cr_assert_eq(core->snapshot.endpoints_len, 1);
	cr_expect_eq(core->snapshot.endpoints[0].queue.bucket[0], 7);
	cr_expect_eq(core->snapshot.workloads[0].processes, 1);
	core_stop(core);
}

/* The last thread of a tree counts itself out a moment after the tree has ended. */
Test(registry, a_pool_with_a_thread_is_not_folded_yet)
{
	struct core *core = core_start(ALL);
	struct pool_shard *shard;
	uint32_t last;

	core_found(core, 1);
	core_idle(core, 1, 1, "worker", 1, clock_monotonic_ns());
	refresh(core);
	core_end(core, 1);
	refresh(core);
	cr_expect_eq(plain_pushed(core->loader, "free_pools", &last), 0);
	cr_expect_eq(plain_pushed(core->loader, "free_trees", &last), 0);
	shard = plain_at(core->loader, "pool_states", PLAIN_CPUS + 1);
	shard->n[STATE_IDLE] = 0;
	refresh(core);
	cr_expect_eq(plain_pushed(core->loader, "free_pools", &last), 1);
	cr_expect_eq(plain_deleted(core->loader, "pool_slots"), 1);
	cr_expect_eq(plain_pushed(core->loader, "free_trees", &last), 1);
	core_stop(core);
}

/* Where threads are not seen, time must tell that a tree's sockets are closed. */
Test(registry, without_threads_a_tree_ends_after_a_second)
{
	struct core *core = core_start(ALL & ~core_mask("threads"));
	uint64_t now_ns = clock_monotonic_ns();
	uint32_t last;

	core_found(core, 1);
	refresh(core);
	core_end(core, 1);
	collector_refresh(&core->collector, now_ns, 0);
	cr_expect_eq(plain_pushed(core->loader, "free_trees", &last), 0);
	collector_refresh(&core->collector, now_ns + 999999999, 0);
	cr_expect_eq(plain_pushed(core->loader, "free_trees", &last), 0);
	collector_refresh(&core->collector, now_ns + 1000000000, 0);
	cr_expect_eq(plain_pushed(core->loader, "free_trees", &last), 1);
	core_stop(core);
}

Test(registry, a_walk_over_tasks_that_fails_is_counted_and_made_again)
{
	struct core *core = core_start(ALL);
	enum walk fails = WALK_TASKS;
	struct tree *tree;

	core->walk = core_walk_fails;
	core->arg = &fails;
	tree = core_found(core, 1);
	tree->flags |= TREE_WALK;
	cr_expect_eq(collector_refresh(&core->collector, clock_monotonic_ns(), 0), -ENOMEM);
	cr_expect_eq(core->kernel.lost[DROP_WALK], 1);
	core->walk = NULL;
	refresh(core);
	cr_expect_eq(plain_walks(core->loader, WALK_TASKS), 2);
	cr_expect_eq(core->kernel.lost[DROP_WALK], 1);
	refresh(core);
	cr_expect_eq(plain_walks(core->loader, WALK_TASKS), 2);
	core_stop(core);
}

static int storage_is_refused(void *arg, enum walk walk)
{
	struct tree *tree = plain_at(arg, "trees", 1);

	if (walk == WALK_TASKS)
		tree->flags |= TREE_REFUSED;
	return 0;
}

/* A thread that the kernel refuses again and again is a loss of its service, and no endless loop.
 */
Test(registry, a_thread_without_storage_is_counted_as_lost)
{
	struct core *core = core_start(ALL);
	uint64_t drops[DROP_REASONS] = { 0 };
	struct tree *tree;

	core->walk = storage_is_refused;
	core->arg = core->loader;
	tree = core_found(core, 1);
	tree->flags |= TREE_WALK;
	refresh(core);
	cr_expect_eq(plain_walks(core->loader, WALK_TASKS), 100);
	kernel_drops_of(&core->kernel, 1, drops);
	cr_expect_eq(drops[DROP_THREAD_STORAGE], 1);
	core_stop(core);
}

/* Without room no thread is looked for, and with room once. */
Test(registry, threads_beyond_the_memory_limit_are_looked_for_once_there_is_room)
{
	struct core *core = core_start(ALL);
	struct quota *quota = plain_at(core->loader, "quotas", QUOTA_THREADS);
	uint64_t *refused = plain_at(core->loader, "drops", DROP_REASONS + DROP_THREAD_QUOTA);
	size_t walks;

	core_found(core, 1);
	walks = plain_walks(core->loader, WALK_TASKS);
	*quota = (struct quota){ .max = 64, .taken = 60 };
	*refused = 5;
	refresh(core);
	cr_expect_eq(plain_walks(core->loader, WALK_TASKS), walks);
	quota->given = 50;
	refresh(core);
	cr_expect_eq(plain_walks(core->loader, WALK_TASKS), walks + 1);
	core->registry.sought_ns = 0;
	refresh(core);
	cr_expect_eq(plain_walks(core->loader, WALK_TASKS), walks + 1);
	core_stop(core);
}

Test(registry, descriptors_are_walked_for_listeners_and_once_for_connections)
{
	struct core *core = core_start(ALL);
	struct tree *nobody = plain_at(core->loader, "trees", 0);

	cr_expect_eq(collector_adopt(&core->collector, clock_monotonic_ns(), BUDGET_NS), 0);
	cr_expect_eq(plain_walks(core->loader, WALK_LISTENERS), 1);
	cr_expect_eq(plain_walks(core->loader, WALK_CONNECTIONS), 1);
	nobody->flags |= TREE_WALK;
	refresh(core);
	cr_expect_eq(plain_walks(core->loader, WALK_LISTENERS), 1, "a second walk within a second");
	core->registry.listeners_walked_ns -= 1000000000;
	refresh(core);
	cr_expect_eq(plain_walks(core->loader, WALK_LISTENERS), 2);
	cr_expect_eq(plain_walks(core->loader, WALK_CONNECTIONS), 1);
	core_stop(core);
}

/* What a process was before exec is another workload, whose counters stand still. */
Test(registry, an_exec_makes_it_another_workload)
{
	struct core *core = core_start(ALL);
	struct tree *tree = core_found(core, 1);

	core_serve(core, 1, 1, 8080, 5);
	cr_assert(core_scrape(core));
	cr_expect_str_eq(core->snapshot.endpoints[0].workload, "nginx");
	tree->tgid = CORE_NGINX + 1;
	tree->flags |= TREE_EXEC;
	core_wait_for_name(core, 1, "a) b");
	cr_assert(core_scrape(core));
	cr_expect_str_eq(core->snapshot.endpoints[0].workload, "a) b");
	cr_expect_eq(core->snapshot.endpoints[0].queue.bucket[0], 5);
	core_stop(core);
}

/* Every workload that there is room for, with a tree in it. */
static void fill_ledger(struct core *core, ledger_handle *last)
{
	struct identity identity = { .runtime = "unknown" };

	for (unsigned int i = 0; ledger_has_room(core->ledger, 0); i++) {
		snprintf(identity.name, sizeof(identity.name), "crowd%u", i);
		*last = ledger_join(core->ledger, &identity, 0);
	}
}

Test(registry, who_is_in_other_gets_its_name_once_there_is_room)
{
	struct core *core = core_start(ALL);
	const struct endpoint_row *rows;
	ledger_handle handle, last = LEDGER_OTHER;
	struct tree *tree;

	fill_ledger(core, &last);
	tree = plain_at(core->loader, "trees", 1);
	*tree = (struct tree){
		.flags = TREE_USED,
		.tgid = CORE_NGINX,
		.start_ns = CORE_START_NS,
		.threads = 1,
		.processes = 1,
	};
	core_serve(core, 2, 1, 8080, 5);
	do {
		refresh(core);
	} while (!registry_find(&core->registry, 1, &handle));
	cr_assert_eq(handle, LEDGER_OTHER);
	cr_assert(core_scrape(core));
	cr_assert_eq(core->snapshot.endpoints_len, 1);
	cr_expect_str_eq(core->snapshot.endpoints[0].workload, "other");

	ledger_leave(core->ledger, last);
	core_wait_for_name(core, 1, "nginx");
	cr_assert(core_scrape(core));
	rows = core->snapshot.endpoints;
	cr_assert_eq(core->snapshot.endpoints_len, 2);
	cr_expect_str_eq(rows[0].workload, "nginx");
	cr_expect_eq(rows[0].queue.bucket[0], 5);
	cr_expect_str_eq(rows[1].workload, "other");
	cr_expect_eq(rows[1].queue.bucket[0], 5, "it keeps what it had");
	core_stop(core);
}

/* A tree of another name than nginx, for which the ledger has no room. */
static void found_no_room(struct core *core, uint32_t slot)
{
	struct tree *tree = plain_at(core->loader, "trees", slot);
	ledger_handle handle;

	*tree = (struct tree){
		.flags = TREE_USED,
		.tgid = CORE_NGINX + 1,
		.start_ns = CORE_START_NS,
		.threads = 1,
		.processes = 1,
	};
	do {
		refresh(core);
	} while (!registry_find(&core->registry, slot, &handle));
	cr_assert_eq(handle, LEDGER_OTHER);
}

Test(registry, room_that_a_tree_leaves_is_there_for_the_next_one_at_once)
{
	struct core *core = core_start(ALL);
	ledger_handle handle, last = LEDGER_OTHER;

	core_found(core, 1);
	fill_ledger(core, &last);
	found_no_room(core, 2);
	core_end(core, 1);
	refresh(core);
	cr_assert(registry_find(&core->registry, 2, &handle));
	cr_expect_neq(handle, LEDGER_OTHER);
	cr_expect_not(registry_take_left_other(&core->registry, 2), "it has been folded");
	core_stop(core);
}

static const struct pool_row *pool_of(const struct core *core, const char *workload)
{
	for (size_t i = 0; i < core->snapshot.pools_len; i++)
		if (!strcmp(core->snapshot.pools[i].workload, workload))
			return &core->snapshot.pools[i];
	cr_assert_fail("%s has no pool", workload);
	return NULL;
}

/* The answer comes when the tree has ended already: in one refresh it leaves, and is given back. */
Test(registry, what_was_in_other_and_has_ended_is_in_both)
{
	struct core *core = core_start(ALL);
	ledger_handle last = LEDGER_OTHER;
	struct pollfd answer = { .fd = helper_fd(namer_helper(core->namer)), .events = POLLIN };
	struct pool_shard *shard;
	uint32_t given;

	fill_ledger(core, &last);
	found_no_room(core, 1);
	core_idle(core, 1, 1, "worker", 0, 0);
	shard = plain_at(core->loader, "pool_states", PLAIN_CPUS + 1);
	shard->started = 3;
	shard->exited = 3;
	ledger_leave(core->ledger, last);
	cr_assert_eq(collector_refresh(&core->collector, clock_monotonic_ns(), 0), 0);
	if (core->registry.naming.asked) /* or it was answered at once */
		cr_assert_eq(poll(&answer, 1, 10000), 1);
	core_end(core, 1);
	refresh(core);
	cr_expect_eq(plain_pushed(core->loader, "free_trees", &given), 1);
	cr_assert(core_scrape(core));
	cr_expect_eq(pool_of(core, "other")->started, 3);
	cr_expect_eq(pool_of(core, "a) b")->started, 3);
	core_stop(core);
}

static int count_walks(void *arg, enum walk walk)
{
	unsigned int *walks = arg;

	walks[walk]++;
	return 0;
}

Test(registry, who_found_no_room_is_looked_for_once_a_tree_has_ended)
{
	struct core *core = core_start(ALL);
	unsigned int walks[WALK_PROCESSES + 1] = { 0 };

	core_found(core, 1);
	refresh_later(core);
	core->walk = count_walks;
	core->arg = walks;
	kernel_drop(&core->kernel, SLOT_OTHER, DROP_TREES_FULL);
	refresh_later(core);
	cr_expect_eq(walks[WALK_TASKS], 0, "nothing has become free");
	core_end(core, 1);
	refresh_later(core);
	cr_expect_eq(walks[WALK_TASKS], 1);
	cr_expect_eq(walks[WALK_LISTENERS], 1);
	refresh_later(core);
	cr_expect_eq(walks[WALK_TASKS], 1);
	core_stop(core);
}
