/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "ledger_parts.h"
#include "model/ledger_kinds.h"

Test(ledger, a_new_ledger_shows_nothing)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	size_t len;

	scrape_nothing(ledger, SECOND);
	cr_expect_eq(workloads_len(ledger), 0);
	ledger_endpoints(ledger, &len);
	cr_expect_eq(len, 0);
	ledger_pools(ledger, &len);
	cr_expect_eq(len, 0);
}

Test(ledger, trees_of_one_workload_are_summed)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	struct endpoint_row a = endpoint(10), b = endpoint(5);
	ledger_handle handle = workload(ledger, "web", "/a");
	const struct endpoint_row *row;
	size_t len;

	a.queued = 2;
	a.oldest_queued_ns = 70;
	a.oldest_in_service_ns = 60;
	a.connections = 4;
	b.queued = 1;
	b.oldest_queued_ns = 90;
	b.oldest_in_service_ns = 50;
	b.connections = 3;
	b.accept_queue_limit = 128;
	cr_expect_eq(workload(ledger, "web", "/b"), handle);
	scrape_begin(ledger);
	ledger_add_processes(ledger, handle, 1);
	ledger_add_endpoint(ledger, handle, 80, &a);
	ledger_add_processes(ledger, handle, 2);
	ledger_add_endpoint(ledger, handle, 80, &b);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	row = only_endpoint(ledger);
	cr_expect_str_eq(row->workload, "web");
	cr_expect_str_eq(row->port, "80");
	cr_expect_eq(row->received_bytes, 1500);
	cr_expect_eq(row->accepted[IO_EPOLL], 15);
	cr_expect_eq(row->queue.bucket[3], 15);
	cr_expect_eq(row->queue.sum_ns, 15000);
	cr_expect_eq(row->duration.bucket[HIST_BUCKETS - 1], 15);
	cr_expect_eq(row->accept_queue_overflows, 7);
	cr_expect_eq(row->queued, 3);
	cr_expect_eq(row->oldest_queued_ns, 90);
	cr_expect_eq(row->oldest_in_service_ns, 60);
	cr_expect_eq(row->connections, 7);
	cr_expect_eq(row->accept_queue_limit, 128);
	cr_expect_eq(ledger_workloads(ledger, &len)->processes, 3);
	cr_expect_str_eq(ledger_workloads(ledger, &len)->exe, "/a", "the first identity stays");
}

Test(ledger, an_identity_with_its_executable_replaces_one_without)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	size_t len;

	cr_expect_eq(workload(ledger, "web", "/a"), handle);
	cr_expect_eq(workload(ledger, "web", "/b"), handle);
	cr_expect_eq(workload(ledger, "web", ""), handle);
	scrape_begin(ledger);
	ledger_add_processes(ledger, handle, 1);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_str_eq(ledger_workloads(ledger, &len)->exe, "/a");
	cr_expect_eq(len, 1);
}

Test(ledger, gauges_start_from_zero_at_each_scrape)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "/a");
	struct endpoint_row part = {
		.queued = 4, .connections = 9, .oldest_queued_ns = 5, .oldest_in_service_ns = 6
	};

	for (int i = 0; i < 3; i++) {
		scrape_begin(ledger);
		ledger_add_endpoint(ledger, handle, 80, &part);
		cr_assert_eq(ledger_end(ledger, SECOND), 0);
		cr_expect_eq(only_endpoint(ledger)->queued, 4);
		cr_expect_eq(only_endpoint(ledger)->connections, 9);
	}
	scrape_nothing(ledger, SECOND);
	cr_expect_eq(only_endpoint(ledger)->queued, 0);
	cr_expect_eq(only_endpoint(ledger)->oldest_queued_ns, 0);
	cr_expect_eq(only_endpoint(ledger)->oldest_in_service_ns, 0);
}

Test(ledger, a_restarted_service_neither_loses_nor_doubles)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	uint64_t now_ns = SECOND, total = 0;

	for (uint64_t life = 1; life <= 10; life++) {
		ledger_handle handle = workload(ledger, "web", "/a");
		struct endpoint_row last = endpoint(100 + life);

		scrape(ledger, handle, 40, now_ns += SECOND);
		cr_expect_eq(only_endpoint(ledger)->queue.bucket[3], total + 40);
		scrape(ledger, handle, 100, now_ns += SECOND);
		cr_expect_eq(only_endpoint(ledger)->queue.bucket[3], total + 100);
		ledger_fold_endpoint(ledger, handle, 80, &last);
		total += 100 + life;
	}
	scrape_nothing(ledger, now_ns + SECOND);
	cr_expect_eq(only_endpoint(ledger)->queue.bucket[3], total);
	cr_expect_eq(only_endpoint(ledger)->queue.sum_ns, 1000 * total);
	scrape_nothing(ledger, now_ns + 2 * SECOND);
	cr_expect_eq(only_endpoint(ledger)->queue.bucket[3], total);
	cr_expect_eq(workloads_len(ledger), 1);
}

Test(ledger, several_folds_between_two_scrapes_and_one_inside_a_scrape_all_count)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "/a");
	struct endpoint_row part = endpoint(10);

	part.queued = 3;
	ledger_fold_endpoint(ledger, handle, 80, &part);
	ledger_fold_endpoint(ledger, handle, 80, &part);
	scrape_begin(ledger);
	ledger_add_endpoint(ledger, handle, 80, &part);
	ledger_fold_endpoint(ledger, handle, 80, &part);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_eq(only_endpoint(ledger)->received_bytes, 4000);
	cr_expect_eq(only_endpoint(ledger)->queued, 3, "gauges of folded parts are ignored");
	scrape_begin(ledger);
	ledger_add_endpoint(ledger, handle, 80, &part);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_eq(only_endpoint(ledger)->received_bytes, 4000);
}

Test(ledger, thread_time_that_steps_back_is_held)
{
	static const uint64_t read_ns[] = { 5000, 4990, 4999, 5001, 4000 };
	static const uint64_t shown_ns[] = { 5000, 5000, 5000, 5001, 5001 };
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "/a");
	struct pool_row last = pool(4995);

	for (size_t i = 0; i < sizeof(read_ns) / sizeof(*read_ns); i++) {
		struct pool_row part = pool(read_ns[i]);

		part.threads[STATE_IDLE] = i;
		scrape_begin(ledger);
		ledger_add_pool(ledger, handle, POOL_SERVING, "worker-#", &part);
		cr_assert_eq(ledger_end(ledger, SECOND), 0);
		cr_expect_eq(only_pool(ledger)->thread_ns[STATE_IDLE], shown_ns[i]);
		cr_expect_eq(only_pool(ledger)->threads[STATE_IDLE], i);
		cr_expect_eq(only_pool(ledger)->mutex.bucket[HIST_BUCKETS - 1], 5);
	}
	ledger_fold_pool(ledger, handle, POOL_SERVING, "worker-#", &last);
	scrape_nothing(ledger, SECOND);
	cr_expect_eq(only_pool(ledger)->thread_ns[STATE_IDLE], 5001, "the fold was behind, too");
	cr_expect_eq(only_pool(ledger)->started, 4);
	cr_expect_eq(only_pool(ledger)->exited, 1);
	cr_expect_eq(only_pool(ledger)->threads[STATE_IDLE], 0);
}

Test(ledger, a_workload_disappears_after_its_grace_and_comes_back_from_zero)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "/a"), again;
	struct endpoint_row last = endpoint(10);
	uint64_t gone_ns = 1000 * SECOND;
	size_t len;

	scrape(ledger, handle, 10, SECOND);
	ledger_fold_endpoint(ledger, handle, 80, &last);
	scrape_nothing(ledger, gone_ns);
	cr_expect_eq(workloads_len(ledger), 1, "shown once however late the scrape");
	scrape_nothing(ledger, gone_ns + GRACE);
	cr_expect_eq(workloads_len(ledger), 1);
	cr_expect_eq(ledger_workloads(ledger, &len)->processes, 0);
	scrape_nothing(ledger, gone_ns + GRACE + 1);
	cr_expect_eq(workloads_len(ledger), 0);
	ledger_endpoints(ledger, &len);
	cr_expect_eq(len, 0);
	again = workload(ledger, "web", "/a");
	cr_expect_neq(again, handle, "a handle is not used for another workload");
	scrape(ledger, again, 3, gone_ns + GRACE + SECOND);
	cr_expect_eq(only_endpoint(ledger)->received_bytes, 300);
}

Test(ledger, a_workload_that_returns_within_its_grace_goes_on)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "/a");
	struct endpoint_row last = endpoint(10);
	size_t len;

	scrape(ledger, handle, 10, SECOND);
	ledger_fold_endpoint(ledger, handle, 80, &last);
	scrape_nothing(ledger, 2 * SECOND);
	cr_expect_eq(workload(ledger, "web", "/new"), handle);
	scrape(ledger, handle, 1, 3 * SECOND + GRACE);
	cr_expect_eq(only_endpoint(ledger)->received_bytes, 1100);
	cr_expect_str_eq(ledger_workloads(ledger, &len)->exe, "/new");
	scrape_nothing(ledger, 4 * SECOND + GRACE);
	scrape_nothing(ledger, 3 * SECOND + 2 * GRACE);
	cr_expect_eq(workloads_len(ledger), 1, "its grace began anew");
}

Test(ledger, a_workload_that_is_met_or_ends_again_has_all_of_its_grace)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "/a");
	struct endpoint_row last = endpoint(10);
	uint64_t now_ns = SECOND;

	for (int i = 0; i < 4; i++) {
		scrape_nothing(ledger, now_ns += SECOND);
		scrape_nothing(ledger, now_ns += GRACE);
		cr_assert_eq(workloads_len(ledger), 1, "after %d times", i);
		if (i % 2)
			ledger_fold_endpoint(ledger, handle, 80, &last);
		else
			cr_assert_eq(workload(ledger, "web", "/a"), handle);
	}
	scrape_nothing(ledger, now_ns += SECOND);
	scrape_nothing(ledger, now_ns + GRACE + 1);
	cr_expect_eq(workloads_len(ledger), 0);
}

Test(ledger, a_workload_stays_while_it_has_a_process)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "/a");

	for (uint64_t i = 1; i <= 3; i++) {
		scrape_begin(ledger);
		ledger_add_processes(ledger, handle, 1);
		cr_assert_eq(ledger_end(ledger, i * 2 * GRACE), 0);
		cr_expect_eq(workloads_len(ledger), 1);
	}
}

/* Of two trees, one of which ends within a scrape; its part shows there already if it was added. */
Test(ledger, what_was_lost_is_summed_by_its_reason)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "/a");
	uint64_t drops[2][DROP_REASONS];
	size_t len;

	for (int reason = 0; reason < DROP_REASONS; reason++) {
		drops[0][reason] = 1 + (uint64_t)reason;
		drops[1][reason] = 1000;
	}
	scrape_begin(ledger);
	ledger_add_drops(ledger, handle, drops[0]);
	ledger_add_drops(ledger, handle, drops[1]);
	ledger_fold_drops(ledger, handle, drops[0]);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	for (int reason = 0; reason < DROP_REASONS; reason++)
		cr_expect_eq(ledger_workloads(ledger, &len)->dropped[reason],
			     1001 + (uint64_t)reason);
	scrape_nothing(ledger, 2 * SECOND);
	for (int reason = 0; reason < DROP_REASONS; reason++)
		cr_expect_eq(ledger_workloads(ledger, &len)->dropped[reason], 1 + (uint64_t)reason);
}

Test(ledger, other_is_shown_once_it_has_a_process)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);

	scrape_begin(ledger);
	ledger_add_processes(ledger, LEDGER_OTHER, 0);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_eq(workloads_len(ledger), 0);
	scrape_begin(ledger);
	ledger_add_processes(ledger, LEDGER_OTHER, 1);
	cr_assert_eq(ledger_end(ledger, 2 * SECOND), 0);
	cr_expect_eq(workloads_len(ledger), 1);
}

Test(ledger, a_restart_between_two_scrapes_brings_its_executable)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "/old");
	struct endpoint_row last = endpoint(10);
	const struct workload_row *row;
	size_t len;

	scrape(ledger, handle, 10, SECOND);
	row = ledger_workloads(ledger, &len);
	ledger_fold_endpoint(ledger, handle, 80, &last);
	workload(ledger, "web", "/new");
	cr_expect_str_eq(row->exe, "/old", "what was shown stays until the next scrape");
	scrape(ledger, handle, 1, 2 * SECOND);
	cr_expect_str_eq(ledger_workloads(ledger, &len)->exe, "/new");
}

Test(ledger, a_handle_that_is_too_old_stands_for_other_and_is_counted)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "/a");

	scrape_nothing(ledger, SECOND);
	scrape_nothing(ledger, 2 * SECOND + GRACE);
	cr_expect_eq(workloads_len(ledger), 0);
	scrape(ledger, handle, 7, 3 * SECOND + GRACE);
	cr_expect_str_eq(only_endpoint(ledger)->workload, "other");
	cr_expect_str_eq(only_endpoint(ledger)->port, "other");
	cr_expect_gt(ledger_workloads_full(ledger), 0);
}

Test(ledger, rows_are_sorted_by_workload_then_port_as_a_number_or_pool)
{
	static const uint16_t ports[] = { 8080, 443, 0, 80, 65535 };
	static const char *const sorted_ports[] = { "other", "80", "443", "8080", "65535" };
	static const char *const pools[] = { "b-#", "", "a" };
	static const char *const sorted_pools[] = { "a", "b-#", "other" };
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handles[] = { workload(ledger, "z", ""), workload(ledger, "a", "") };
	const struct endpoint_row *endpoints;
	const struct pool_row *rows;
	size_t len;

	scrape_begin(ledger);
	for (size_t w = 0; w < 2; w++) {
		struct endpoint_row part = endpoint(1);
		struct pool_row threads = pool(1);

		for (size_t i = 0; i < 5; i++)
			ledger_add_endpoint(ledger, handles[w], ports[i], &part);
		for (size_t i = 0; i < 3; i++)
			ledger_add_pool(ledger, handles[w], POOL_OTHER, pools[i], &threads);
	}
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_str_eq(ledger_workloads(ledger, &len)[0].workload, "a");
	cr_expect_str_eq(ledger_workloads(ledger, &len)[1].workload, "z");
	endpoints = ledger_endpoints(ledger, &len);
	cr_assert_eq(len, 10);
	for (size_t i = 0; i < len; i++) {
		cr_expect_str_eq(endpoints[i].workload, i < 5 ? "a" : "z");
		cr_expect_str_eq(endpoints[i].port, sorted_ports[i % 5]);
	}
	rows = ledger_pools(ledger, &len);
	cr_assert_eq(len, 6);
	for (size_t i = 0; i < len; i++)
		cr_expect_str_eq(rows[i].pool, sorted_pools[i % 3]);
}

Test(ledger, threads_of_one_name_are_a_row_for_each_role)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	struct pool_row master = pool(7), workers = pool(1000);
	const struct pool_row *rows;
	size_t len;

	scrape_begin(ledger);
	ledger_add_pool(ledger, handle, POOL_SERVING, "web", &workers);
	ledger_add_pool(ledger, handle, POOL_OTHER, "web", &master);
	ledger_add_pool(ledger, handle, POOL_SERVING, "web", &workers);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	rows = ledger_pools(ledger, &len);
	cr_assert_eq(len, 2);
	cr_expect_str_eq(rows[0].role, "other");
	cr_expect_eq(rows[0].thread_ns[STATE_IDLE], 7);
	cr_expect_str_eq(rows[1].role, "serving");
	cr_expect_eq(rows[1].thread_ns[STATE_IDLE], 2000);
}

Test(ledger, workloads_that_do_not_fit_are_other)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	const struct endpoint_row *rows;
	char name[16];
	size_t len;

	scrape_begin(ledger);
	for (int i = 0; i < LEDGER_WORKLOADS_MAX + 9; i++) {
		struct endpoint_row part = endpoint(1);
		ledger_handle handle;

		snprintf(name, sizeof(name), "w%04d", i);
		handle = workload(ledger, name, "");
		cr_expect_eq(handle == LEDGER_OTHER, i >= LEDGER_WORKLOADS_MAX - 1);
		ledger_add_endpoint(ledger, handle, 80, &part);
	}
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_eq(workloads_len(ledger), LEDGER_WORKLOADS_MAX);
	cr_expect_eq(ledger_workloads_full(ledger), 10);
	rows = ledger_endpoints(ledger, &len);
	cr_assert_eq(len, LEDGER_WORKLOADS_MAX);
	cr_expect_str_eq(rows[0].workload, "other");
	cr_expect_str_eq(rows[0].port, "other");
	cr_expect_eq(rows[0].received_bytes, 1000);
}

Test(ledger, what_was_shown_survives_growth_and_strange_names)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handles[] = { workload(ledger, "we\"b\n\xff", ""), workload(ledger, "x", ""),
				    workload(ledger, "y", ""), workload(ledger, "z", "") };
	char name[64];
	size_t len;

	for (unsigned int scrape_no = 1; scrape_no <= 40; scrape_no++) {
		scrape_begin(ledger);
		for (unsigned int i = 0; i < 5 * scrape_no; i++) {
			struct pool_row part = pool(1000 - scrape_no);

			snprintf(name, sizeof(name),
				 "pool %03u with a name of more bytes than its bound of some", i);
			ledger_add_pool(ledger, handles[i % 4], POOL_OTHER, name, &part);
		}
		cr_assert_eq(ledger_end(ledger, SECOND), 0);
	}
	cr_assert_eq(ledger_pools(ledger, &len)->thread_ns[STATE_IDLE], 999);
	cr_expect_eq(len, 200);
	cr_expect_eq(strlen(ledger_pools(ledger, &len)->pool), LEDGER_LABEL_LEN - 1);
	cr_expect_str_eq(ledger_pools(ledger, &len)->workload, "we\"b\n\xff");
}

/* --- names ---------------------------------------------------------------------------------- */

Test(ledger, tells_what_workloads_are_called)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle web = workload(ledger, "web", "/a"), db = workload(ledger, "db", "/b");

	cr_expect_str_eq(ledger_name(ledger, web), "web");
	cr_expect_str_eq(ledger_name(ledger, db), "db");
	cr_expect_str_eq(ledger_name(ledger, LEDGER_OTHER), LEDGER_OTHER_TEXT);
}

/* Its place is given to another one: the old handle does not tell that one's name. */
Test(ledger, a_workload_that_is_removed_has_no_name)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle web = workload(ledger, "web", "/a"), db;
	uint64_t full = ledger_workloads_full(ledger);

	ledger_leave(ledger, web);
	scrape_nothing(ledger, SECOND);
	cr_expect_str_eq(ledger_name(ledger, web), "web", "its grace is not over");
	scrape_nothing(ledger, 2 * SECOND + GRACE);
	cr_expect_null(ledger_name(ledger, web));
	db = workload(ledger, "db", "/b");
	cr_expect_eq(db % LEDGER_WORKLOADS_MAX, web % LEDGER_WORKLOADS_MAX, "it sits there");
	cr_expect_null(ledger_name(ledger, web));
	cr_expect_str_eq(ledger_name(ledger, db), "db");
	cr_expect_null(ledger_name(ledger, UINT32_MAX), "there was none");
	cr_expect_eq(ledger_workloads_full(ledger), full, "to ask is no use of it");
}
