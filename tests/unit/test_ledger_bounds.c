/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "ledger_ports.h"
#include "model/ledger_kinds.h"

Test(ledger_bounds, ports_past_the_bound_of_their_workload_are_its_other_and_counted_once)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle big = workload(ledger, "big", ""), small = workload(ledger, "small", "");

	for (uint64_t i = 1; i <= 3; i++) {
		scrape_begin(ledger);
		add_ports(ledger, big, 1, PORTS + 6);
		add_ports(ledger, small, 80, 80);
		cr_assert_eq(ledger_end(ledger, i * SECOND), 0);
		cr_expect_eq(endpoints_len(ledger), PORTS + 1 + 1);
		cr_expect_eq(requests(ledger, "big", "64"), 1);
		cr_expect_eq(requests(ledger, "big", "65"), NO_ROW);
		cr_expect_eq(requests(ledger, "big", "other"), 6);
		cr_expect_eq(requests(ledger, "small", "80"), 1);
		cr_expect_eq(ledger_rows_full(ledger), 6, "not again at each scrape");
		cr_expect_eq(workloads_len(ledger), 2, "workload other has nothing");
	}
}

Test(ledger_bounds, a_full_workload_has_room_for_its_own_other)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");

	scrape_begin(ledger);
	add_ports(ledger, handle, 1, PORTS);
	add(ledger, handle, 0, 7);
	add(ledger, handle, 9000, 2);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_eq(requests(ledger, "web", "other"), 9);
	cr_expect_eq(ledger_rows_full(ledger), 1, "port 0 is where it belongs");
}

Test(ledger_bounds, pools_past_the_bound_of_their_workload_are_its_other)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	const struct pool_row *rows;
	struct pool_row part = pool(1000);
	char name[16];
	size_t len;

	for (unsigned int i = 0; i < LEDGER_WORKLOAD_POOLS_MAX + 5; i++) {
		snprintf(name, sizeof(name), "a-%03u", i);
		ledger_fold_pool(ledger, handle, POOL_OTHER, name, &part);
	}
	scrape_nothing(ledger, SECOND);
	rows = ledger_pools(ledger, &len);
	cr_assert_eq(len, LEDGER_WORKLOAD_POOLS_MAX + 1);
	cr_expect_eq(rows[0].thread_ns[STATE_IDLE], 1000);
	cr_expect_str_eq(rows[len - 1].pool, "other");
	cr_expect_eq(rows[len - 1].thread_ns[STATE_IDLE], 5000);
	cr_expect_eq(rows[len - 1].mutex.bucket[HIST_BUCKETS - 1], 25);
	cr_expect_eq(ledger_rows_full(ledger), 5);
}

Test(ledger_bounds, a_pool_without_room_is_other_in_its_role)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	struct pool_row part = pool(1000);
	const struct pool_row *rows;
	char name[16];
	size_t len;

	for (unsigned int i = 0; i < LEDGER_WORKLOAD_POOLS_MAX / 2 + 3; i++) {
		snprintf(name, sizeof(name), "a-%03u", i);
		ledger_fold_pool(ledger, handle, POOL_OTHER, name, &part);
		ledger_fold_pool(ledger, handle, POOL_SERVING, name, &part);
	}
	scrape_nothing(ledger, SECOND);
	rows = ledger_pools(ledger, &len);
	cr_assert_eq(len, LEDGER_WORKLOAD_POOLS_MAX + POOL_ROLES);
	for (size_t role = 0; role < POOL_ROLES; role++) {
		const struct pool_row *other = &rows[(role + 1) * (len / 2) - 1];

		cr_expect_str_eq(other->pool, "other");
		cr_expect_str_eq(other->role, role == POOL_SERVING ? "serving" : "other");
		cr_expect_eq(other->thread_ns[STATE_IDLE], 3000);
	}
	cr_expect_eq(ledger_rows_full(ledger), 6);
}

/*
 * A server whose short-lived children each listen on a port of their own. Every tenth of them
 * happens to live during a scrape.
 */
Test(ledger_bounds, short_lived_children_on_ephemeral_ports_neither_fill_the_ledger_nor_vanish)
{
	enum { CHILDREN = 420 };
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle parent = workload(ledger, "churn", ""), real;
	uint64_t now_ns = SECOND;

	for (unsigned int i = 1; i <= CHILDREN; i++) {
		if (i % 10 == 0) {
			scrape_begin(ledger);
			add(ledger, parent, 8080, 1000);
			add(ledger, parent, 30000 + i, 2);
			cr_assert_eq(ledger_end(ledger, now_ns += SECOND), 0);
			cr_expect_eq(all_requests(ledger), 1000 + 3 * (i - 1) + 2);
		}
		fold(ledger, parent, 30000 + i, 3);
	}
	real = workload(ledger, "real", "");
	scrape_begin(ledger);
	add(ledger, parent, 8080, 1000);
	add(ledger, real, 443, 5);
	cr_assert_eq(ledger_end(ledger, now_ns += SECOND), 0);
	cr_expect_eq(endpoints_len(ledger), PORTS + 1 + 1);
	cr_expect_eq(requests(ledger, "real", "443"), 5);
	cr_expect_eq(requests(ledger, "churn", "8080"), 1000);
	cr_expect_eq(requests(ledger, "churn", "other"), 3 * (CHILDREN - (PORTS - 1)));
	cr_expect_eq(all_requests(ledger), 1000 + 5 + 3 * CHILDREN);
	cr_expect_eq(ledger_rows_full(ledger), CHILDREN - (PORTS - 1));

	for (int i = 0; i < 2; i++) {
		scrape_begin(ledger);
		add(ledger, parent, 8080, 1000);
		add(ledger, real, 443, 5);
		cr_assert_eq(ledger_end(ledger, now_ns += GRACE), 0);
	}
	cr_expect_eq(endpoints_len(ledger), 2, "the children's history is gone, the parent lives");
	cr_expect_eq(requests(ledger, "churn", "8080"), 1000);
}

Test(ledger_bounds, a_port_without_live_parts_vanishes_after_its_grace_while_its_workload_lives)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	uint64_t gone_ns = 1000 * SECOND;

	scrape_ports(ledger, handle, 80, 81, SECOND);
	fold(ledger, handle, 81, 9);
	scrape_ports(ledger, handle, 80, 80, gone_ns);
	cr_expect_eq(requests(ledger, "web", "81"), 9, "its last values are shown");
	scrape_ports(ledger, handle, 80, 80, gone_ns + GRACE);
	cr_expect_eq(requests(ledger, "web", "81"), 9);
	scrape_ports(ledger, handle, 80, 80, gone_ns + GRACE + 1);
	cr_expect_eq(requests(ledger, "web", "81"), NO_ROW);
	cr_expect_eq(requests(ledger, "web", "80"), 1);
	scrape_ports(ledger, handle, 80, 81, gone_ns + GRACE + 2);
	cr_expect_eq(requests(ledger, "web", "81"), 1, "it starts from 0");
}

Test(ledger_bounds, a_port_that_returns_or_is_folded_to_within_its_grace_goes_on)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");

	scrape_ports(ledger, handle, 80, 81, SECOND);
	fold(ledger, handle, 81, 9);
	scrape_ports(ledger, handle, 80, 80, 2 * SECOND);
	scrape_ports(ledger, handle, 80, 81, 3 * SECOND + GRACE);
	cr_expect_eq(requests(ledger, "web", "81"), 10);
	fold(ledger, handle, 81, 4);
	scrape_ports(ledger, handle, 80, 80, 4 * SECOND + GRACE);
	fold(ledger, handle, 81, 5);
	scrape_ports(ledger, handle, 80, 80, 5 * SECOND + 2 * GRACE);
	cr_expect_eq(requests(ledger, "web", "81"), 18, "its grace began anew");
	scrape_ports(ledger, handle, 80, 80, 6 * SECOND + 3 * GRACE);
	cr_expect_eq(requests(ledger, "web", "81"), NO_ROW);
}

Test(ledger_bounds, what_is_in_other_gets_a_row_once_there_is_room_and_counts_from_there)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	uint64_t now_ns = SECOND;

	scrape_ports(ledger, handle, 1, PORTS + 1, now_ns);
	cr_expect_eq(requests(ledger, "web", "other"), 1);
	for (int i = 0; i < 2; i++)
		scrape_ports(ledger, handle, 11, PORTS + 1, now_ns += GRACE);
	cr_expect_eq(requests(ledger, "web", "65"), NO_ROW, "the rows of 1 to 10 are there still");
	scrape_ports(ledger, handle, 11, PORTS + 1, now_ns += SECOND);
	scrape_ports(ledger, handle, 11, PORTS + 1, now_ns += SECOND);
	cr_expect_eq(requests(ledger, "web", "65"), 0, "what it has counted stays in other");
	cr_expect_eq(requests(ledger, "web", "other"), 1);
	cr_expect_eq(all_requests(ledger), PORTS - 10 + 1);

	scrape_begin(ledger);
	add_ports(ledger, handle, 11, PORTS);
	add(ledger, handle, PORTS + 1, 5);
	add(ledger, handle, PORTS + 2, 3);
	cr_assert_eq(ledger_end(ledger, now_ns += SECOND), 0);
	cr_expect_eq(requests(ledger, "web", "65"), 4);
	cr_expect_eq(requests(ledger, "web", "66"), 3, "a new port");
	cr_expect_eq(requests(ledger, "web", "other"), 1);
	cr_expect_eq(ledger_rows_full(ledger), 1);

	fold(ledger, handle, PORTS + 1, 7);
	scrape_ports(ledger, handle, 11, PORTS, now_ns += SECOND);
	cr_expect_eq(requests(ledger, "web", "65"), 6);
	cr_expect_eq(requests(ledger, "web", "other"), 1);
}

Test(ledger_bounds, what_is_in_other_and_ends_when_there_is_room_takes_none)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	uint64_t now_ns = SECOND;

	scrape_ports(ledger, handle, 1, PORTS + 1, now_ns);
	scrape_ports(ledger, handle, 2, PORTS + 1, now_ns += SECOND);
	scrape_ports(ledger, handle, 2, PORTS + 1, now_ns += GRACE + 1);
	scrape_begin(ledger);
	fold(ledger, handle, PORTS + 1, 1);
	add_ports(ledger, handle, 2, PORTS);
	cr_assert_eq(ledger_end(ledger, now_ns += SECOND), 0);
	scrape_begin(ledger);
	add_ports(ledger, handle, 2, PORTS);
	add(ledger, handle, PORTS + 2, 3);
	cr_assert_eq(ledger_end(ledger, now_ns += SECOND), 0);
	cr_expect_eq(requests(ledger, "web", "66"), 3);
	cr_expect_eq(requests(ledger, "web", "other"), 1);
}

Test(ledger_bounds, a_row_that_falls_below_where_it_began_is_0)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	uint64_t now_ns = SECOND;

	scrape_begin(ledger);
	add_ports(ledger, handle, 1, PORTS);
	add(ledger, handle, PORTS + 1, 9);
	cr_assert_eq(ledger_end(ledger, now_ns), 0);
	for (int i = 0; i < 4; i++) {
		scrape_begin(ledger);
		add_ports(ledger, handle, 2, PORTS);
		add(ledger, handle, PORTS + 1, 9);
		cr_assert_eq(ledger_end(ledger, now_ns += GRACE), 0);
	}
	cr_expect_eq(requests(ledger, "web", "65"), 0);
	scrape_begin(ledger);
	add_ports(ledger, handle, 2, PORTS);
	add(ledger, handle, PORTS + 1, 8);
	cr_assert_eq(ledger_end(ledger, now_ns += SECOND), 0);
	cr_expect_eq(requests(ledger, "web", "65"), 0);
	scrape_begin(ledger);
	add_ports(ledger, handle, 2, PORTS);
	add(ledger, handle, PORTS + 1, 11);
	cr_assert_eq(ledger_end(ledger, now_ns += SECOND), 0);
	cr_expect_eq(requests(ledger, "web", "65"), 2);
}

/* Of two trees that have it. */
Test(ledger_bounds, a_port_of_which_a_scrape_could_not_read_a_part_stays_in_other)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	uint64_t now_ns = SECOND;

	for (int i = 0; i < 6; i++) {
		scrape_begin(ledger);
		add_ports(ledger, handle, i ? 2 : 1, PORTS + 1);
		if (i < 1)
			add(ledger, handle, PORTS + 1, 1);
		cr_assert_eq(ledger_end(ledger, now_ns += GRACE), 0);
		cr_expect_eq(requests(ledger, "web", "65"), NO_ROW, "scrape %d", i);
	}
	scrape_begin(ledger);
	add_ports(ledger, handle, 2, PORTS + 1);
	add(ledger, handle, PORTS + 1, 1);
	cr_assert_eq(ledger_end(ledger, now_ns += SECOND), 0);
	cr_expect_eq(requests(ledger, "web", "65"), 0);
	cr_expect_eq(requests(ledger, "web", "other"), 2);
	cr_expect_eq(ledger_rows_full(ledger), 2);
}

/* Of two trees that have it. */
Test(ledger_bounds, a_port_in_other_is_known_for_its_grace_since_a_part_of_it_ended)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	uint64_t now_ns = SECOND;

	scrape_begin(ledger);
	add_ports(ledger, handle, 1, PORTS + 1);
	add(ledger, handle, PORTS + 1, 1);
	cr_assert_eq(ledger_end(ledger, now_ns), 0);
	cr_expect_eq(ledger_rows_full(ledger), 2);
	scrape_ports(ledger, handle, 1, PORTS, now_ns += SECOND);
	scrape_ports(ledger, handle, 1, PORTS, now_ns += GRACE);
	fold(ledger, handle, PORTS + 1, 1);
	scrape_ports(ledger, handle, 1, PORTS, now_ns += SECOND);
	scrape_ports(ledger, handle, 1, PORTS + 1, now_ns += GRACE);
	cr_expect_eq(ledger_rows_full(ledger), 2, "the other part was known");
}

Test(ledger_bounds, a_row_stays_for_what_is_diverted_to_it_even_if_the_clock_steps_back)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	uint64_t now_ns = 1000 * SECOND;

	scrape_ports(ledger, handle, 1, PORTS + 1, now_ns);
	scrape_ports(ledger, handle, 1, PORTS, now_ns + 900 * SECOND);
	fold(ledger, handle, 0, 3);
	scrape_ports(ledger, handle, 1, PORTS, now_ns);
	scrape_ports(ledger, handle, 1, PORTS, now_ns + GRACE + 1);
	scrape_ports(ledger, handle, 1, PORTS + 1, now_ns + GRACE + 2);
	cr_expect_eq(requests(ledger, "web", "other"), 4);
}

Test(ledger_bounds, each_part_in_other_is_counted_once)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	/* Two trees on one port, of which one is replaced, then one that no scrape ever sees. */
	static const struct {
		unsigned int folds, adds;
		uint64_t full, requests;
	} steps[] = {
		{ 0, 1, 1, 1 }, { 0, 2, 2, 2 }, { 0, 2, 2, 2 }, { 1, 1, 2, 2 },
		{ 0, 2, 3, 3 }, { 2, 0, 3, 3 }, { 1, 0, 4, 4 }, { 0, 0, 4, 4 },
	};

	scrape_ports(ledger, handle, 1, PORTS, SECOND);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		for (unsigned int n = 0; n < steps[i].folds; n++)
			fold(ledger, handle, 9000, 1);
		scrape_begin(ledger);
		for (unsigned int n = 0; n < steps[i].adds; n++)
			add(ledger, handle, 9000, 1);
		cr_assert_eq(ledger_end(ledger, (i + 2) * SECOND), 0);
		cr_expect_eq(ledger_rows_full(ledger), steps[i].full, "step %zu", i);
		cr_expect_eq(requests(ledger, "web", "other"), steps[i].requests, "step %zu", i);
	}
}

Test(ledger_bounds, a_full_table_diverts_to_the_other_of_all_until_rows_are_free)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle small = workload(ledger, "small", "");
	uint64_t now_ns = SECOND;
	char name[8];

	scrape_begin(ledger);
	for (unsigned int left = LEDGER_ENDPOINTS_MAX - 1, i = 0; left; i++) {
		unsigned int len = left < PORTS ? left : PORTS;

		snprintf(name, sizeof(name), "big%02u", i);
		add_ports(ledger, workload(ledger, name, ""), 1, len);
		left -= len;
	}
	add_ports(ledger, small, 1, 4);
	cr_assert_eq(ledger_end(ledger, now_ns), 0);
	cr_expect_eq(endpoints_len(ledger), LEDGER_ENDPOINTS_MAX);
	cr_expect_eq(requests(ledger, "other", "other"), 4);
	cr_expect_eq(ledger_rows_full(ledger), 4);
	for (int i = 0; i < 3; i++)
		scrape_ports(ledger, small, 1, 4, now_ns += GRACE);
	cr_expect_eq(endpoints_len(ledger), 1, "the big ones are gone");
	cr_expect_eq(requests(ledger, "other", "other"), 4);
	scrape_ports(ledger, small, 0, 5, now_ns += SECOND);
	cr_expect_eq(requests(ledger, "small", "5"), 1);
	cr_expect_eq(requests(ledger, "small", "other"), 1, "port 0, which is new as well");
	cr_expect_eq(requests(ledger, "other", "other"), 4);
	cr_expect_eq(ledger_rows_full(ledger), 4);
	for (int i = 0; i < 3; i++)
		scrape_ports(ledger, small, 5, 5, now_ns += GRACE);
	scrape_ports(ledger, small, 1, 1, now_ns += SECOND);
	cr_expect_eq(requests(ledger, "small", "1"), 1, "1 to 4 ended long ago");
	cr_expect_eq(requests(ledger, "other", "other"), 4, "this row stays");
}

Test(ledger_bounds, more_detours_than_are_remembered_crowd_a_workload_until_they_ended)
{
	enum { KNOWN = PORTS + LEDGER_DETOURS_MAX, LAST = KNOWN + 1 };
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	uint64_t now_ns = SECOND;

	for (int i = 0; i < 2; i++) {
		scrape_ports(ledger, handle, 1, LAST, now_ns += SECOND);
		cr_expect_eq(requests(ledger, "web", "other"), LAST - PORTS);
		cr_expect_eq(ledger_rows_full(ledger), LAST - PORTS);
	}
	for (unsigned int port = 1; port <= KNOWN; port++)
		fold(ledger, handle, port, 1);
	for (int i = 0; i < 3; i++)
		scrape_ports(ledger, handle, KNOWN + 1, LAST, now_ns += GRACE);
	cr_expect_eq(endpoints_len(ledger), 1, "rows are free, but who came unremembered lives");
	cr_expect_eq(requests(ledger, "web", "other"), LAST - PORTS);
	scrape_ports(ledger, handle, KNOWN + 1, LAST + 1, now_ns += SECOND);
	cr_expect_eq(requests(ledger, "web", "other"), LAST + 1 - PORTS);
	cr_expect_eq(ledger_rows_full(ledger), LAST + 1 - PORTS);

	for (unsigned int port = KNOWN + 1; port <= LAST + 1; port++)
		fold(ledger, handle, port, 1);
	scrape_ports(ledger, handle, 0, 0, now_ns += SECOND);
	scrape_ports(ledger, handle, 0, 0, now_ns += GRACE);
	scrape_ports(ledger, handle, 0, 0, now_ns += SECOND);
	scrape_ports(ledger, handle, 1, 2, now_ns += SECOND);
	cr_expect_eq(requests(ledger, "web", "1"), 1, "the crowd is over");
	cr_expect_eq(requests(ledger, "web", "2"), 1);
	cr_expect_eq(ledger_rows_full(ledger), LAST + 1 - PORTS);
}

Test(ledger_bounds, a_workload_that_goes_takes_its_detours_and_its_crowd_with_it)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");

	scrape_ports(ledger, handle, 1, PORTS + LEDGER_DETOURS_MAX + 10, SECOND);
	scrape_nothing(ledger, 2 * SECOND);
	scrape_nothing(ledger, 3 * SECOND + GRACE);
	cr_expect_eq(endpoints_len(ledger), 0);
	cr_expect_eq(workloads_len(ledger), 0);
	handle = workload(ledger, "web", "");
	scrape_ports(ledger, handle, PORTS + 1, PORTS + 1, 4 * SECOND + GRACE);
	cr_expect_eq(requests(ledger, "web", "65"), 1);
}
