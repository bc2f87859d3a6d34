/* SPDX-License-Identifier: Apache-2.0 */
/* A scrape, from the tables of the kernel side to the snapshot. */
#include <errno.h>
#include <time.h>

#include "core.h"

#define ALL features_collectors()
#define NS_PER_S 1000000000ULL

TestSuite(collector);

Test(collector, what_is_counted_on_each_cpu_is_one_row)
{
	struct core *core = core_start(ALL);

	core_found(core, 1);
	core_serve(core, 1, 1, 8080, 5);
	cr_assert(core_scrape(core));
	cr_assert_eq(core->snapshot.endpoints_len, 1);
	cr_expect_str_eq(core->snapshot.endpoints[0].workload, "nginx");
	cr_expect_str_eq(core->snapshot.endpoints[0].port, "8080");
	cr_expect_eq(core->snapshot.endpoints[0].queue.bucket[0], 5);
	cr_expect_eq(core->snapshot.endpoints[0].queue.sum_ns, 5000);
	cr_expect_eq(core->snapshot.endpoints[0].duration.bucket[0], 5);
	cr_expect_eq(core->snapshot.endpoints[0].duration.sum_ns, 5000);
	cr_expect_eq(core->snapshot.endpoints[0].received_bytes, 50);
	cr_assert_eq(core->snapshot.workloads_len, 1);
	cr_expect_eq(core->snapshot.workloads[0].processes, 1);
	core_stop(core);
}

Test(collector, times_of_threads_go_on_until_the_scrape)
{
	struct core *core = core_start(ALL);
	uint64_t before_ns = clock_monotonic_ns();

	core_found(core, 1);
	core_idle(core, 1, 1, "worker", 3, before_ns);
	cr_assert(core_scrape(core));
	cr_assert_eq(core->snapshot.pools_len, 1);
	cr_expect_str_eq(core->snapshot.pools[0].pool, "worker");
	cr_expect_eq(core->snapshot.pools[0].threads[STATE_IDLE], 3);
	cr_expect_gt(core->snapshot.pools[0].thread_ns[STATE_IDLE], 0);
	cr_expect_leq(core->snapshot.pools[0].thread_ns[STATE_IDLE],
		      3 * (clock_monotonic_ns() - before_ns));
	core_stop(core);
}

Test(collector, what_is_not_asked_for_is_neither_read_nor_shown)
{
	struct core *core = core_start(ALL);

	core_found(core, 1);
	core_serve(core, 1, 1, 8080, 5);
	core_idle(core, 1, 1, "worker", 3, 1);
	cr_assert(core_scrape_until(core, core_mask("threads"), UINT64_MAX));
	cr_expect_eq(core->snapshot.pools_len, 1);
	cr_expect_eq(core->snapshot.endpoints_len, 0);
	cr_expect_eq(core->snapshot.workloads_len, 0);
	cr_expect_eq(core->snapshot.collectors_len, 1);
	cr_expect_eq(core_worked(core, "threads"), 1);
	cr_expect_eq(plain_walks(core->loader, WALK_SOCKETS), 0);
	core_stop(core);
}

Test(collector, a_feature_that_keeps_nothing_works_while_it_is_on)
{
	struct core *core = core_start(ALL);

	cr_assert(core_scrape(core));
	cr_expect_eq(core_worked(core, "nothing_to_scrape"), 1);
	plain_feature_off(core->loader, "nothing_to_scrape");
	cr_assert(core_scrape(core));
	cr_expect_eq(core_worked(core, "nothing_to_scrape"), 0);
	core_stop(core);
}

Test(collector, a_feature_that_is_off_fails_alone)
{
	struct core *core = core_start(ALL);

	plain_feature_off(core->loader, "requests");
	core_found(core, 1);
	core_idle(core, 1, 1, "worker", 3, 1);
	cr_assert(core_scrape(core));
	cr_expect_eq(core_worked(core, "discovery"), 1);
	cr_expect_eq(core_worked(core, "requests"), 0);
	cr_expect_eq(core_worked(core, "threads"), 1);
	cr_expect_eq(core->snapshot.pools_len, 1);
	core_stop(core);
}

Test(collector, a_sweep_that_fails_costs_the_gauges_and_not_the_counters)
{
	struct core *core = core_start(ALL);
	enum walk fails = WALK_SOCKETS;

	core->walk = core_walk_fails;
	core->arg = &fails;
	core_found(core, 1);
	core_serve(core, 1, 1, 8080, 5);
	cr_assert(core_scrape(core));
	cr_expect_eq(core_worked(core, "requests"), 0);
	cr_assert_eq(core->snapshot.endpoints_len, 1);
	cr_expect_eq(core->snapshot.endpoints[0].queue.bucket[0], 5);
	core_stop(core);
}

/* One second: fewer sweeps than scrapes, so that a scraper cannot make the exporter sweep. */
Test(collector, sockets_are_swept_once_a_second_at_most)
{
	struct core *core = core_start(ALL);

	for (int i = 0; i < 5; i++)
		core_scrape(core);
	cr_expect_eq(plain_walks(core->loader, WALK_SOCKETS), 1);
	core_stop(core);
}

static int sweep_finds_one_waiting(void *arg, enum walk walk)
{
	struct endpoint_gauges *gauges = plain_at(arg, "endpoint_gauges", 1);

	if (walk == WALK_SOCKETS) {
		gauges->queued++;
		gauges->connections++;
		gauges->oldest_ns = 1; /* as old as the machine */
	}
	return 0;
}

Test(collector, gauges_are_those_of_the_sweep)
{
	struct core *core = core_start(ALL);

	core->walk = sweep_finds_one_waiting;
	core->arg = core->loader;
	core_found(core, 1);
	core_serve(core, 1, 1, 8080, 0);
	for (int i = 0; i < 2; i++) {
		cr_assert(core_scrape(core));
		cr_assert_eq(core->snapshot.endpoints_len, 1);
		cr_expect_eq(core->snapshot.endpoints[0].queued, 1);
		cr_expect_eq(core->snapshot.endpoints[0].connections, 1);
		cr_expect_gt(core->snapshot.endpoints[0].oldest_queued_ns, 0);
	}
	core_stop(core);
}

static int sweep_finds_one_of_another_clock(void *arg, enum walk walk)
{
	struct core *core = arg;
	struct endpoint_gauges *gauges = plain_at(core->loader, "endpoint_gauges", 1);

	if (walk == WALK_SOCKETS)
		gauges->oldest_ns = gauges->oldest_read_ns =
			kernel_time_ns(&core->kernel, clock_monotonic_ns()) - NS_PER_S;
	return 0;
}

/* The exporter is in a time namespace. */
Test(collector, ages_are_those_of_the_kernel_s_clock)
{
	struct core *core = core_start(ALL);

	core->kernel.ahead_ns = -1000 * (int64_t)NS_PER_S;
	core->walk = sweep_finds_one_of_another_clock;
	core->arg = core;
	core_found(core, 1);
	core_serve(core, 1, 1, 8080, 0);
	cr_assert(core_scrape(core));
	cr_assert_eq(core->snapshot.endpoints_len, 1);
	cr_expect_gt(core->snapshot.endpoints[0].oldest_queued_ns, NS_PER_S / 2);
	cr_expect_lt(core->snapshot.endpoints[0].oldest_queued_ns, 100 * NS_PER_S);
	cr_expect_eq(core->snapshot.endpoints[0].oldest_in_service_ns,
		     core->snapshot.endpoints[0].oldest_queued_ns);
	core_stop(core);
}

Test(collector, tasks_are_judged_anew_only_where_a_thread_waits)
{
	struct core *core = core_start(ALL);
	struct pool_shard *shard;

	core_found(core, 1);
	core_idle(core, 1, 1, "worker", 3, 1);
	core_scrape(core);
	cr_expect_eq(plain_walks(core->loader, WALK_WAITS), 0);
	shard = plain_at(core->loader, "pool_states", PLAIN_CPUS + 1);
	shard->n[STATE_WAIT] = 1;
	core_scrape(core);
	cr_expect_eq(plain_walks(core->loader, WALK_WAITS), 1);
	core_stop(core);
}

Test(collector, a_deadline_that_has_passed_leaves_everything_out_visibly)
{
	struct core *core = core_start(ALL);

	core_found(core, 1);
	core_serve(core, 1, 1, 8080, 5);
	cr_expect_not(core_scrape_until(core, ALL, clock_monotonic_ns()));
	cr_expect_eq(core_worked(core, "discovery"), 0);
	cr_expect_eq(core_worked(core, "requests"), 0);
	cr_expect_eq(core_worked(core, "threads"), 0);
	cr_expect_eq(core->snapshot.endpoints_len, 0);
	cr_expect(core_scrape(core));
	cr_expect_eq(core->snapshot.endpoints_len, 1);
	core_stop(core);
}

static int walk_takes_long(void *arg, enum walk walk)
{
	const struct timespec long_ns = { .tv_nsec = 500000000 };

	(void)arg;
	if (walk == WALK_WAITS || walk == WALK_TASKS)
		nanosleep(&long_ns, NULL);
	return 0;
}

/* The step that took 500 ms is left out of a budget of 250 ms, and is tried again in the end. */
Test(collector, a_step_that_took_too_long_is_left_out_and_tried_again)
{
	struct core *core = core_start(ALL);
	struct pool_shard *shard;
	int scrapes = 0;

	core->walk = walk_takes_long;
	core_found(core, 1);
	core_idle(core, 1, 1, "worker", 3, 1);
	shard = plain_at(core->loader, "pool_states", PLAIN_CPUS + 1);
	shard->n[STATE_WAIT] = 1;
	cr_expect(core_scrape(core));
	cr_expect_not(core_scrape_until(core, ALL, clock_monotonic_ns() + 250000000));
	cr_expect_eq(plain_walks(core->loader, WALK_WAITS), 1);
	cr_expect_eq(core_worked(core, "threads"), 0);
	cr_expect_eq(core_worked(core, "requests"), 1);
	cr_expect_eq(core->snapshot.pools_len, 1);
	while (plain_walks(core->loader, WALK_WAITS) == 1 && ++scrapes < 50)
		core_scrape_until(core, ALL, clock_monotonic_ns() + 250000000);
	cr_expect_lt(scrapes, 50);
	core_stop(core);
}

/* The refresh is a part of discovery, and of nothing else. */
Test(collector, a_walk_that_takes_long_is_time_of_discovery)
{
	struct core *core = core_start(ALL);
	struct tree *tree = core_found(core, 1);
	const struct collector_row *rows;

	core->walk = walk_takes_long;
	tree->flags |= TREE_WALK;
	cr_assert(core_scrape(core));
	rows = core->snapshot.collectors;
	cr_expect_str_eq(rows[0].collector, "discovery");
	cr_expect_geq(rows[0].duration_ns, 500000000);
	for (size_t i = 1; i < core->snapshot.collectors_len; i++)
		cr_expect_lt(rows[i].duration_ns, 500000000);
	core_stop(core);
}

Test(collector, rows_of_nobody_are_shown_once_something_is_in_them)
{
	struct core *core = core_start(ALL);
	struct endpoint_shard *other = plain_at(core->loader, "endpoints", 0);

	cr_assert(core_scrape(core));
	cr_expect_eq(core->snapshot.endpoints_len, 0);
	other->goodbyes = 1;
	cr_assert(core_scrape(core));
	cr_assert_eq(core->snapshot.endpoints_len, 1);
	cr_expect_str_eq(core->snapshot.endpoints[0].workload, "other");
	cr_expect_str_eq(core->snapshot.endpoints[0].port, "other");
	core_stop(core);
}

Test(collector, it_tells_how_full_the_tables_are)
{
	struct core *core = core_start(ALL);
	uint64_t used = 0;

	core_found(core, 1);
	core_serve(core, 1, 1, 8080, 1);
	core_serve(core, 2, 1, 8081, 1);
	cr_assert(core_scrape(core));
	cr_assert_eq(core->snapshot.maps_len, 5);
	for (size_t i = 0; i < core->snapshot.maps_len; i++) {
		if (strcmp(core->snapshot.maps[i].map, "endpoints") != 0)
			continue;
		used = core->snapshot.maps[i].entries;
		cr_expect_eq(core->snapshot.maps[i].capacity, PLAIN_ENDPOINTS - 1);
	}
	cr_expect_eq(used, 2);
	core_stop(core);
}

Test(collector, nothing_but_its_version_is_told_of_an_exporter_that_hides)
{
	struct core *core = core_start(ALL);

	core->collector.self_hidden = true;
	cr_assert(core_scrape(core));
	cr_expect_eq(core->snapshot.maps_len, 0);
	cr_expect_eq(core->snapshot.drops_len, 0);
	cr_expect_null(core->snapshot.process);
	core_stop(core);
}

/* A writer that never ends: the pool is left out of this scrape, and counted. */
Test(collector, a_pool_that_is_written_all_the_time_is_torn)
{
	struct core *core = core_start(ALL);
	struct pool_shard *shard;
	uint64_t torn = 0;

	core_found(core, 1);
	core_idle(core, 1, 1, "worker", 3, 1);
	shard = plain_at(core->loader, "pool_states", PLAIN_CPUS + 1);
	shard->seq = 1;
	cr_assert(core_scrape(core));
	cr_expect_eq(core_worked(core, "threads"), 0);
	cr_expect_eq(core->snapshot.pools_len, 0);
	for (size_t i = 0; i < core->snapshot.drops_len; i++)
		if (!strcmp(core->snapshot.drops[i].reason, "torn_read"))
			torn = core->snapshot.drops[i].dropped;
	cr_expect_eq(torn, 1);
	core_stop(core);
}
