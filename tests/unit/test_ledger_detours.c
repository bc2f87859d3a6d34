/* SPDX-License-Identifier: Apache-2.0 */
/* What is in `other` for want of room, and gets rows of its own once there is some. */
#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "ledger_ports.h"
#include "model/ledger_kinds.h"

#define AT_ONCE 8 /* rows that are given to what was in `other`, in one scrape */

/*
 * Ports beyond PORTS, up to @last, are in `other`, and by now the rows of the first PORTS are free:
 * the next scrape may give them away.
 */
static uint64_t wait_for_room(struct ledger *ledger, ledger_handle handle, unsigned int last)
{
	uint64_t now_ns = SECOND;

	scrape_ports(ledger, handle, 1, last, now_ns);
	for (int i = 0; i < 2; i++)
		scrape_ports(ledger, handle, PORTS + 1, last, now_ns += GRACE);
	scrape_ports(ledger, handle, PORTS + 1, last, now_ns += SECOND);
	return now_ns;
}

Test(ledger_detours, end_a_few_in_each_scrape)
{
	enum { WAITING = 2 * AT_ONCE + 3 };
	static const size_t rows[] = { AT_ONCE, 2 * AT_ONCE, WAITING, WAITING };
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	uint64_t now_ns = wait_for_room(ledger, handle, PORTS + WAITING);

	cr_assert_eq(endpoints_len(ledger), 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		scrape_ports(ledger, handle, PORTS + 1, PORTS + WAITING, now_ns += SECOND);
		cr_expect_eq(endpoints_len(ledger), 1 + rows[i], "scrape %zu", i);
		cr_expect_eq(all_requests(ledger), WAITING);
	}
}

Test(ledger_detours, that_have_ended_take_no_place_of_what_lives)
{
	enum { LAST = PORTS + AT_ONCE + 1 };
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	uint64_t now_ns = wait_for_room(ledger, handle, LAST);

	for (unsigned int port = PORTS + 1; port < LAST; port++)
		fold(ledger, handle, port, 1);
	scrape_ports(ledger, handle, LAST, LAST, now_ns += SECOND);
	cr_expect_eq(requests(ledger, "web", "73"), 0);
	cr_expect_eq(requests(ledger, "web", "other"), AT_ONCE + 1);
}

/* Of a workload that has as many ports as it may. */
Test(ledger_detours, that_cannot_end_take_no_place_of_those_that_can)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle full = workload(ledger, "full", ""), web = workload(ledger, "web", "");
	uint64_t now_ns = SECOND;

	for (int i = 0; i < 5; i++) {
		scrape_begin(ledger);
		add_ports(ledger, full, 1, PORTS + AT_ONCE + 1);
		add_ports(ledger, web, i ? 2 : 1, PORTS + 1);
		cr_assert_eq(ledger_end(ledger, now_ns += GRACE), 0);
	}
	cr_expect_eq(requests(ledger, "full", "other"), AT_ONCE + 1);
	cr_expect_eq(requests(ledger, "web", "65"), 0);
}

/* In the scrape that gives it a row `other` has its gauges as well as its counters. */
Test(ledger_detours, end_with_a_row_of_zeros)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle handle = workload(ledger, "web", "");
	uint64_t now_ns = wait_for_room(ledger, handle, PORTS + 1);
	struct endpoint_row part = endpoint(1);
	const struct endpoint_row *rows;
	size_t len;

	part.abandoned[0] = 2;
	part.queued = 3;
	for (uint64_t scrapes = 0; scrapes < 2; scrapes++) {
		scrape_begin(ledger);
		ledger_add_endpoint(ledger, handle, PORTS + 1, &part);
		cr_assert_eq(ledger_end(ledger, now_ns += SECOND), 0);
		rows = ledger_endpoints(ledger, &len);
		cr_assert_eq(len, 2);
		cr_expect_str_eq(rows[0].port, "other");
		cr_expect_eq(rows[0].abandoned[0], 2);
		cr_expect_eq(rows[0].queued, scrapes ? 0 : 3);
		cr_expect_eq(rows[1].abandoned[0], 0);
		cr_expect_eq(rows[1].queued, scrapes ? 3 : 0);
	}
}
