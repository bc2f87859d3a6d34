/* SPDX-License-Identifier: Apache-2.0 */
/* Scrapes that read only a part: they show no more than that, and change nothing of the rest. */
#include "ledger_parts.h"

static void scrape_pools(struct ledger *ledger, ledger_handle handle, uint64_t processes,
			 uint64_t now_ns)
{
	struct pool_row part = pool(1);

	ledger_begin(ledger);
	ledger_add_processes(ledger, handle, processes);
	ledger_begin_kind(ledger, LEDGER_POOLS);
	if (processes)
		ledger_add_pool(ledger, handle, POOL_OTHER, "p", &part);
	cr_assert_eq(ledger_end(ledger, now_ns), 0);
}

static size_t endpoints_len(const struct ledger *ledger)
{
	size_t len;

	ledger_endpoints(ledger, &len);
	return len;
}

Test(ledger_partial, what_is_not_read_is_not_shown)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle shop = workload(ledger, "shop", "/shop");

	scrape(ledger, shop, 10, SECOND);
	cr_expect_eq(endpoints_len(ledger), 1);
	scrape_pools(ledger, shop, 1, 2 * SECOND);
	cr_expect_eq(endpoints_len(ledger), 0);
	cr_expect_eq(only_pool(ledger)->started, 4);
	cr_expect_eq(workloads_len(ledger), 1);
}

Test(ledger_partial, history_survives_a_long_time_without_being_read)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle shop = workload(ledger, "shop", "/shop");
	struct endpoint_row ended = endpoint(5);

	ledger_fold_endpoint(ledger, shop, 80, &ended);
	scrape(ledger, shop, 10, SECOND);
	for (uint64_t i = 2; i < 100; i++)
		scrape_pools(ledger, shop, 1, i * GRACE);
	scrape(ledger, shop, 11, 100 * GRACE);
	cr_expect_eq(only_endpoint(ledger)->received_bytes, 1600);
}

Test(ledger_partial, a_fold_meanwhile_is_shown_when_it_is_read_again)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle shop = workload(ledger, "shop", "/shop");
	struct endpoint_row ended = endpoint(12);

	scrape(ledger, shop, 10, SECOND);
	scrape_pools(ledger, shop, 1, 2 * SECOND);
	ledger_fold_endpoint(ledger, shop, 80, &ended);
	scrape_pools(ledger, shop, 1, 3 * SECOND);
	scrape_nothing(ledger, 4 * SECOND);
	cr_expect_eq(only_endpoint(ledger)->received_bytes, 1200);
}

Test(ledger_partial, counters_do_not_go_back_across_it)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle shop = workload(ledger, "shop", "/shop");

	scrape(ledger, shop, 10, SECOND);
	scrape_pools(ledger, shop, 1, 2 * SECOND);
	scrape(ledger, shop, 9, 3 * SECOND);
	cr_expect_eq(only_endpoint(ledger)->received_bytes, 1000);
}

/* Two jobs that never ask for everything: a workload that ended is forgotten all the same. */
Test(ledger_partial, a_workload_that_ended_goes_although_no_scrape_reads_all)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle shop = workload(ledger, "shop", "/shop");
	struct endpoint_row ended = endpoint(10);

	scrape(ledger, shop, 10, SECOND);
	ledger_fold_endpoint(ledger, shop, 80, &ended);
	for (uint64_t i = 1; i <= 3; i++)
		scrape_pools(ledger, shop, 0, i * 2 * GRACE);
	cr_expect_eq(workloads_len(ledger), 0);
	scrape_nothing(ledger, 8 * GRACE);
	cr_expect_eq(endpoints_len(ledger), 0);
}

Test(ledger_partial, a_workload_whose_parts_were_alive_when_last_read_stays)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle shop = workload(ledger, "shop", "/shop");

	scrape(ledger, shop, 10, SECOND);
	for (uint64_t i = 1; i <= 3; i++)
		scrape_pools(ledger, shop, 0, i * 2 * GRACE);
	cr_expect_eq(workloads_len(ledger), 1);
}
