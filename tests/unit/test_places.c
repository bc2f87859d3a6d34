/* SPDX-License-Identifier: Apache-2.0 */
/* Ports and pools that are gone, of a service that lives, give their places back. */
#include <unistd.h>

#include "core.h"
#include "features/leaving.h"

#define ALL features_collectors()
#define SWEEP_US 1001000 /* there is one a second at most */
#define EVENTS_US 51000

TestSuite(places);

/* --- the rule ------------------------------------------------------------------------------- */

Test(places, a_slot_in_use_stays)
{
	struct leaving leaving = { 0 };

	cr_expect_eq(leaving_next(&leaving, false, 1), LEAVING_NOT);
	leaving.hidden_ns = 1;
	cr_expect_eq(leaving_next(&leaving, false, EVENTS_END_NS + 1), LEAVING_NOT);
}

Test(places, a_slot_that_rests_is_hidden_and_freed_when_events_are_over)
{
	struct leaving leaving = { 0 };

	cr_expect_eq(leaving_next(&leaving, true, 1), LEAVING_HIDE);
	leaving.hidden_ns = 1;
	cr_expect_eq(leaving_next(&leaving, true, 1), LEAVING_NOT);
	cr_expect_eq(leaving_next(&leaving, true, EVENTS_END_NS), LEAVING_NOT);
	cr_expect_eq(leaving_next(&leaving, true, EVENTS_END_NS + 1), LEAVING_FREE);
}

Test(places, a_slot_rests_when_it_is_found_empty_twice_without_a_visit_between)
{
	struct leaving leaving = { 0 };

	cr_expect_not(leaving_rests(&leaving, true, 0), "it is looked at for the first time");
	cr_expect(leaving_rests(&leaving, true, 0));
	cr_expect_not(leaving_rests(&leaving, true, 1), "there was a visit");
	cr_expect(leaving_rests(&leaving, true, 1));
	cr_expect_not(leaving_rests(&leaving, false, 1));
	cr_expect_not(leaving_rests(&leaving, true, 1), "it was not empty before");
}

/* --- ports ---------------------------------------------------------------------------------- */

struct site {
	struct core *core;
	uint32_t sockets[PLAIN_ENDPOINTS]; /* that a sweep finds, by slot */
};

static int sweep_finds(void *arg, enum walk walk)
{
	const struct site *site = arg;

	for (uint32_t slot = 1; walk == WALK_SOCKETS && slot < PLAIN_ENDPOINTS; slot++) {
		struct endpoint_gauges *gauges = plain_at(site->core->loader, "endpoint_gauges",
							  slot);

		gauges->sockets = site->sockets[slot];
	}
	return 0;
}

/* Tree 1 with port 8080 in slot 2, of five requests, and port 8081 in slot 3, with a socket. */
static struct core *site_start(struct site *site)
{
	struct core *core = core_start(ALL);
	struct tree *tree = core_found(core, 1);

	*site = (struct site){ .core = core, .sockets = { [3] = 1 } };
	core->walk = sweep_finds;
	core->arg = site;
	core_serve(core, 2, 1, 8080, 5);
	core_serve(core, 3, 1, 8081, 2);
	tree->endpoints = 2;
	return core;
}

static void sweep(struct core *core)
{
	usleep(SWEEP_US);
	cr_assert(core_scrape(core));
}

static size_t freed(const struct core *core, const char *list)
{
	uint32_t last;

	return plain_pushed(core->loader, list, &last);
}

Test(places, a_port_without_sockets_gives_its_place_back_and_keeps_its_row)
{
	const struct endpoint_row *rows;
	const struct endpoint_info *info;
	const struct tree *tree;
	struct site site;
	struct core *core = site_start(&site);
	uint32_t last;

	cr_assert(core_scrape(core));
	cr_expect_eq(plain_deleted(core->loader, "endpoint_slots"), 1);
	cr_expect_eq(freed(core, "free_endpoints"), 0);
	sweep(core);
	cr_expect_eq(plain_deleted(core->loader, "endpoint_slots"), 1, "its key goes once");
	cr_expect_eq(plain_pushed(core->loader, "free_endpoints", &last), 1);
	cr_expect_eq(last, 2);
	info = plain_at(core->loader, "endpoint_info", 2);
	cr_expect_eq(info->used, 0);
	cr_expect_eq(info->generation, 1);
	tree = plain_at(core->loader, "trees", 1);
	cr_expect_eq(tree->endpoints, 1);
	rows = core->snapshot.endpoints;
	cr_assert_eq(core->snapshot.endpoints_len, 2);
	cr_expect_str_eq(rows[0].port, "8080");
	cr_expect_eq(rows[0].queue.bucket[0], 5);
	cr_expect_eq(rows[1].queue.bucket[0], 2);
	core_stop(core);
}

/* Also one that has just come, whose listener the sweep has missed. */
Test(places, a_port_that_was_looked_for_is_not_hidden)
{
	struct endpoint_info *info;
	struct site site;
	struct core *core = site_start(&site);

	info = plain_at(core->loader, "endpoint_info", 2);
	info->sought = 1;
	cr_assert(core_scrape(core));
	cr_expect_eq(plain_deleted(core->loader, "endpoint_slots"), 0);
	cr_expect_eq(info->sought, 0);
	core_stop(core);
}

Test(places, a_socket_that_came_when_its_port_was_hidden_counts_on_beside_a_later_one)
{
	struct endpoint_shard *shard;
	struct site site;
	struct core *core = site_start(&site);

	cr_assert(core_scrape(core));
	site.sockets[2] = 1;
	site.sockets[4] = 1;
	core_serve(core, 4, 1, 8080, 3);
	shard = plain_at(core->loader, "endpoints", 2 * PLAIN_SHARDS);
	shard->queue.bucket[0]++;
	sweep(core);
	cr_expect_eq(freed(core, "free_endpoints"), 0);
	cr_expect_eq(shard->generation, 0);
	cr_assert_eq(core->snapshot.endpoints_len, 2);
	cr_expect_eq(core->snapshot.endpoints[0].queue.bucket[0], 5 + 1 + 3);
	site.sockets[2] = 0;
	sweep(core);
	cr_expect_eq(freed(core, "free_endpoints"), 1);
	cr_assert_eq(core->snapshot.endpoints_len, 2);
	cr_expect_eq(core->snapshot.endpoints[0].queue.bucket[0], 5 + 1 + 3);
	core_stop(core);
}

Test(places, a_sweep_that_failed_tells_of_no_port_that_it_is_gone)
{
	enum walk walk = WALK_SOCKETS;
	struct site site;
	struct core *core = site_start(&site);

	core->walk = core_walk_fails;
	core->arg = &walk;
	core_scrape(core);
	cr_expect_eq(plain_deleted(core->loader, "endpoint_slots"), 0);
	core_stop(core);
}

Test(places, the_place_of_other_is_none_of_the_ports)
{
	struct endpoint_info *info;
	struct tree *tree;
	struct site site;
	struct core *core = site_start(&site);

	info = plain_at(core->loader, "endpoint_info", 2);
	info->port = 0;
	tree = plain_at(core->loader, "trees", 1);
	tree->endpoints = 1;
	cr_assert(core_scrape(core));
	sweep(core);
	cr_expect_eq(freed(core, "free_endpoints"), 1);
	cr_expect_eq(tree->endpoints, 1);
	core_stop(core);
}

Test(places, a_hidden_port_of_a_tree_that_ends_is_folded_once)
{
	struct site site;
	struct core *core = site_start(&site);

	cr_assert(core_scrape(core));
	site.sockets[3] = 0;
	core_end(core, 1);
	collector_refresh(&core->collector, clock_monotonic_ns(), 0);
	usleep(EVENTS_US);
	collector_refresh(&core->collector, clock_monotonic_ns(), 0);
	sweep(core);
	cr_expect_eq(freed(core, "free_endpoints"), 2);
	cr_expect_eq(freed(core, "free_trees"), 1);
	cr_assert_eq(core->snapshot.endpoints_len, 2);
	cr_expect_eq(core->snapshot.endpoints[0].queue.bucket[0], 5);
	cr_expect_eq(core->snapshot.endpoints[1].queue.bucket[0], 2);
	core_stop(core);
}

/* --- pools ---------------------------------------------------------------------------------- */

static void scrape_later(struct core *core)
{
	usleep(EVENTS_US);
	cr_assert(core_scrape(core));
}

/* Pool @slot of tree 1, which had a thread. */
static struct pool_shard *pool_empty(struct core *core, uint32_t slot, const char *name)
{
	struct pool_shard *shard = plain_at(core->loader, "pool_states",
					    (size_t)slot * (PLAIN_CPUS + 1));

	core_idle(core, slot, 1, name, 0, 0);
	shard->a[STATE_IDLE] = 7000;
	shard->started = shard->exited = 1;
	return shard;
}

Test(places, a_pool_without_threads_gives_its_place_back_and_keeps_its_row)
{
	struct core *core = core_start(ALL);
	struct tree *tree = core_found(core, 1);
	const struct pool_shard *shard;
	uint32_t last;

	tree->pools = 2;
	core_idle(core, 3, 1, "stays", 1, clock_monotonic_ns());
	shard = pool_empty(core, 2, "passes");
	scrape_later(core);
	cr_expect_eq(plain_deleted(core->loader, "pool_slots"), 0);
	scrape_later(core);
	cr_expect_eq(plain_deleted(core->loader, "pool_slots"), 1);
	cr_expect_eq(freed(core, "free_pools"), 0);
	scrape_later(core);
	cr_expect_eq(plain_deleted(core->loader, "pool_slots"), 1);
	cr_expect_eq(plain_pushed(core->loader, "free_pools", &last), 1);
	cr_expect_eq(last, 2);
	cr_expect_eq(tree->pools, 1);
	cr_expect_eq(shard->a[STATE_IDLE], 0);
	cr_assert_eq(core->snapshot.pools_len, 2);
	cr_expect_str_eq(core->snapshot.pools[0].pool, "passes");
	cr_expect_eq(core->snapshot.pools[0].thread_ns[STATE_IDLE], 7000);
	cr_expect_eq(core->snapshot.pools[0].exited, 1);
	core_stop(core);
}

/* Threads that live for less than a scrape. */
Test(places, a_pool_that_has_had_threads_since_the_scrape_before_stays)
{
	struct core *core = core_start(ALL);
	struct pool_shard *shard;

	core_found(core, 1);
	shard = pool_empty(core, 2, "short");
	for (int i = 0; i < 5; i++) {
		scrape_later(core);
		shard->started++;
		shard->exited++;
	}
	cr_expect_eq(plain_deleted(core->loader, "pool_slots"), 0);
	core_stop(core);
}

/* A pool is given back while a thread is in @name's: whether the threads of the tree are looked
 * for. */
static bool looked_for_beside(const char *name, uint32_t pools)
{
	struct core *core = core_start(ALL);
	struct tree *tree = core_found(core, 1);
	bool looked_for;

	tree->pools = pools;
	core_idle(core, 3, 1, name, 1, clock_monotonic_ns());
	pool_empty(core, 2, "passes");
	for (int i = 0; i < 3; i++)
		scrape_later(core);
	cr_expect_eq(freed(core, "free_pools"), 1);
	looked_for = tree->flags & TREE_WALK;
	core_stop(core);
	return looked_for;
}

Test(places, threads_in_other_are_looked_for_when_a_pool_is_given_back)
{
	cr_expect(looked_for_beside("other", 1));
}

Test(places, no_thread_is_looked_for_where_none_is_in_other)
{
	cr_expect_not(looked_for_beside("own", 2));
}
