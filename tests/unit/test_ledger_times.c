/* SPDX-License-Identifier: Apache-2.0 */
/* Times of threads that cannot be: a shard that was torn when it was read. */
#include <criterion/criterion.h>

#include "ledger_parts.h"

#define START (100000 * SECOND)
#define THREADS 4

/* A scrape at @seconds after START that finds four idle threads with @idle_ns behind them. */
static const struct pool_row *scrape_pool(struct ledger *ledger, ledger_handle handle,
					  uint64_t seconds, uint64_t idle_ns)
{
	struct pool_row part = { .threads[STATE_IDLE] = THREADS, .started = THREADS };

	part.thread_ns[STATE_IDLE] = idle_ns;
	part.thread_ns[STATE_RUNNING] = seconds;
	scrape_begin(ledger);
	ledger_add_pool(ledger, handle, POOL_SERVING, "worker-#", &part);
	cr_assert_eq(ledger_end(ledger, START + seconds * SECOND), 0);
	return only_pool(ledger);
}

static uint64_t idle_ns(const struct pool_row *row)
{
	return row->thread_ns[STATE_IDLE];
}

Test(ledger_times, that_threads_can_have_spent_are_shown)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "api", "/api");

	scrape_pool(ledger, handle, 0, 1000 * SECOND);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 15, 1060 * SECOND)), 1060 * SECOND);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 30, 1120 * SECOND)), 1120 * SECOND);
	cr_expect_eq(ledger_torn(ledger), 0);
}

Test(ledger_times, that_cannot_be_are_refused_and_counted_and_leave_nothing_behind)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "api", "/api");
	const struct pool_row *row;

	scrape_pool(ledger, handle, 0, 1000 * SECOND);
	row = scrape_pool(ledger, handle, 15, 1060 * SECOND + START);
	cr_expect_eq(idle_ns(row), 1000 * SECOND);
	cr_expect_eq(row->thread_ns[STATE_RUNNING], 0, "no state of it is believed");
	cr_expect_eq(ledger_torn(ledger), 1);
	row = scrape_pool(ledger, handle, 30, 1120 * SECOND);
	cr_expect_eq(idle_ns(row), 1120 * SECOND);
	cr_expect_eq(row->thread_ns[STATE_RUNNING], 30);
	cr_expect_eq(ledger_torn(ledger), 1);
}

Test(ledger_times, are_believed_when_the_next_scrape_finds_them_again)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "api", "/api");

	scrape_pool(ledger, handle, 0, 1000 * SECOND);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 15, 9000 * SECOND)), 1000 * SECOND);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 30, 9060 * SECOND)), 9060 * SECOND);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 45, 9120 * SECOND)), 9120 * SECOND);
	cr_expect_eq(ledger_torn(ledger), 1);
}

Test(ledger_times, are_bounded_by_a_second_more_than_the_scrapes_are_apart)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "api", "/api");
	const uint64_t most = (THREADS + 1) * (15 + 1) * SECOND;

	scrape_pool(ledger, handle, 0, 0);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 15, most)), most);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 30, 2 * most + 1)), most);
}

/* Gauges no longer show them, but they have spent time since the scrape before. */
Test(ledger_times, of_threads_that_are_gone_count)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "api", "/api");
	struct pool_row part = { .started = 100, .exited = 100 };

	scrape_pool(ledger, handle, 0, 0);
	part.thread_ns[STATE_IDLE] = 100 * 15 * SECOND;
	scrape_begin(ledger);
	ledger_add_pool(ledger, handle, POOL_SERVING, "worker-#", &part);
	cr_assert_eq(ledger_end(ledger, START + 15 * SECOND), 0);
	cr_expect_eq(idle_ns(only_pool(ledger)), 100 * 15 * SECOND);
	cr_expect_eq(ledger_torn(ledger), 0);
}

Test(ledger_times, of_a_scrape_that_missed_a_shard_are_caught_up_with)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "api", "/api");

	scrape_pool(ledger, handle, 0, 1000 * SECOND);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 60, 0)), 1000 * SECOND);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 75, 1300 * SECOND)), 1300 * SECOND);
	cr_expect_eq(ledger_torn(ledger), 0);
}

Test(ledger_times, are_as_old_as_the_last_scrape_that_has_read_them)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "api", "/api");

	scrape_pool(ledger, handle, 0, 1000 * SECOND);
	ledger_begin(ledger);
	ledger_begin_kind(ledger, LEDGER_ENDPOINTS);
	cr_assert_eq(ledger_end(ledger, START + 60 * SECOND), 0);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 75, 1300 * SECOND)), 1300 * SECOND);
	cr_expect_eq(ledger_torn(ledger), 0);
}

Test(ledger_times, are_bounded_by_a_second_where_the_clock_stands_still)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "api", "/api");
	const uint64_t most = (THREADS + 1) * SECOND;

	scrape_pool(ledger, handle, 0, 0);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 0, most)), most);
	cr_expect_eq(idle_ns(scrape_pool(ledger, handle, 0, 2 * most + 1)), most);
}

Test(ledger_times, of_no_state_are_believed_that_cannot_be)
{
	for (int state = 0; state < STATES; state++) {
		_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
		ledger_handle handle = workload(ledger, "api", "/api");
		struct pool_row part = { .started = THREADS };

		scrape_pool(ledger, handle, 0, 0);
		part.thread_ns[state] = START;
		scrape_begin(ledger);
		ledger_add_pool(ledger, handle, POOL_SERVING, "worker-#", &part);
		cr_assert_eq(ledger_end(ledger, START + 15 * SECOND), 0);
		cr_expect_eq(only_pool(ledger)->thread_ns[state], 0, "state %d", state);
		cr_expect_eq(ledger_torn(ledger), 1);
	}
}
