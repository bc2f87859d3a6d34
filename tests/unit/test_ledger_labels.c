/* SPDX-License-Identifier: Apache-2.0 */
/* Rows with two labels: waits for locks, by pool and by that of the holder. */
#include "ledger_parts.h"

static void add(struct ledger *ledger, ledger_handle handle, const char *pool, const char *holder,
		uint64_t ns)
{
	const struct blocked_row part = { .blocked_ns = ns };

	ledger_add_blocked(ledger, handle, pool, holder, &part);
}

/* UINT64_MAX: there is none. */
static uint64_t shown(const struct ledger *ledger, const char *workload_name, const char *pool_name,
		      const char *holder)
{
	size_t len;
	const struct blocked_row *rows = ledger_blocked(ledger, &len);

	for (size_t i = 0; i < len; i++)
		if (!strcmp(rows[i].workload, workload_name) && !strcmp(rows[i].pool, pool_name) &&
		    !strcmp(rows[i].holder_pool, holder))
			return rows[i].blocked_ns;
	return UINT64_MAX;
}

static size_t shown_len(const struct ledger *ledger)
{
	size_t len;

	ledger_blocked(ledger, &len);
	return len;
}

Test(ledger_labels, both_tell_a_row_from_others)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle shop = workload(ledger, "shop", "/shop");

	scrape_begin(ledger);
	add(ledger, shop, "a", "b", 1);
	add(ledger, shop, "b", "a", 2);
	add(ledger, shop, "a", "a", 4);
	add(ledger, shop, "a", "b", 8);
	add(ledger, shop, "a", "", 16);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_eq(shown_len(ledger), 4);
	cr_expect_eq(shown(ledger, "shop", "a", "b"), 9);
	cr_expect_eq(shown(ledger, "shop", "b", "a"), 2);
	cr_expect_eq(shown(ledger, "shop", "a", "a"), 4);
	cr_expect_eq(shown(ledger, "shop", "a", "other"), 16);
}

Test(ledger_labels, they_are_sorted_by_both)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle shop = workload(ledger, "shop", "/shop");
	const struct blocked_row *rows;
	size_t len;

	scrape_begin(ledger);
	add(ledger, shop, "b", "a", 1);
	add(ledger, shop, "a", "c", 1);
	add(ledger, shop, "a", "b", 1);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	rows = ledger_blocked(ledger, &len);
	cr_assert_eq(len, 3);
	cr_expect_str_eq(rows[0].holder_pool, "b");
	cr_expect_str_eq(rows[1].holder_pool, "c");
	cr_expect_str_eq(rows[2].pool, "b");
}

Test(ledger_labels, what_is_folded_stays)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle shop = workload(ledger, "shop", "/shop");
	const struct blocked_row part = { .blocked_ns = 5 };

	ledger_fold_blocked(ledger, shop, "a", "b", &part);
	scrape_begin(ledger);
	ledger_add_processes(ledger, shop, 1);
	add(ledger, shop, "a", "b", 1);
	add(ledger, shop, "a", "c", 1);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_eq(shown(ledger, "shop", "a", "b"), 6);
	cr_expect_eq(shown(ledger, "shop", "a", "c"), 1);
}

Test(ledger_labels, of_the_workload_other_there_is_one)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);

	scrape_begin(ledger);
	add(ledger, LEDGER_OTHER, "a", "b", 1);
	add(ledger, LEDGER_OTHER, "b", "c", 2);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_eq(shown_len(ledger), 1);
	cr_expect_eq(shown(ledger, "other", "other", "other"), 3);
}

Test(ledger_labels, what_has_no_room_is_in_one_row_and_nothing_is_lost)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle shop = workload(ledger, "shop", "/shop");
	uint64_t sum = 0;
	size_t len;

	scrape_begin(ledger);
	for (unsigned int i = 0; i < LEDGER_WORKLOAD_BLOCKED_MAX + 10; i++) {
		char holder[16];

		snprintf(holder, sizeof(holder), "h%03u", i);
		add(ledger, shop, i % 2 ? "a" : LEDGER_OTHER_TEXT, holder, 1);
	}
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_eq(shown_len(ledger), LEDGER_WORKLOAD_BLOCKED_MAX + 1);
	cr_expect_eq(shown(ledger, "shop", "other", "other"), 10);
	cr_expect_eq(ledger_rows_full(ledger), 10);
	for (size_t i = 0; i < shown_len(ledger); i++)
		sum += ledger_blocked(ledger, &len)[i].blocked_ns;
	cr_expect_eq(sum, LEDGER_WORKLOAD_BLOCKED_MAX + 10);
}
