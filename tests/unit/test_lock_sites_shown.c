/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for locks by call site: which are shown, and what goes. */
#include "lock_siting.h"

/* Waits at so many functions, from 1 on: @number times as long as @ns. */
static void add_many(struct lock_site_test *test, uint64_t functions, uint64_t ns)
{
	for (uint64_t number = 1; number <= functions; number++)
		add(test, number, number * ns);
	sites_come(test);
}

Test(lock_sites_shown, the_eight_that_wait_longest_are_shown)
{
	struct lock_site_test *test = test_new();
	char text[64];
	size_t len;

	add_many(test, 12, MS);
	scrape(test, 78 * MS);
	cr_expect_eq(shown_in_all(test, &len), 78 * MS);
	cr_expect_eq(len, LOCK_SITES_SHOWN + 1);
	for (uint64_t number = 1; number <= 12; number++) {
		snprintf(text, sizeof(text), "f%" PRIu64 "+0x10 [server]", number);
		cr_expect_eq(shown(test, text), number <= 4 ? NOT_SHOWN : number * MS, "%s", text);
	}
	cr_expect_eq(shown(test, "other"), 10 * MS);
	test_free(test);
}

Test(lock_sites_shown, one_that_waits_a_little_longer_takes_no_place)
{
	struct lock_site_test *test = test_new();

	add_many(test, 8, 10 * MS);
	scrape(test, 360 * MS);
	add(test, 9, 14 * MS);
	sites_come(test);
	scrape(test, 14 * MS);
	cr_expect_eq(shown(test, "f9+0x10 [server]"), NOT_SHOWN);
	cr_expect_eq(shown(test, "other"), 14 * MS);
	add(test, 9, 6 * MS);
	scrape(test, 6 * MS);
	cr_expect_eq(shown(test, "f9+0x10 [server]"), 0);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), NOT_SHOWN);
	add(test, 9, 5 * MS);
	scrape(test, 5 * MS);
	cr_expect_eq(shown(test, "f9+0x10 [server]"), 5 * MS, "since it is shown");
	cr_expect_eq(shown(test, "other"), 20 * MS, "it takes nothing back");
	test_free(test);
}

Test(lock_sites_shown, what_was_long_ago_keeps_no_place)
{
	struct lock_site_test *test = test_new();

	add_many(test, 8, SECOND);
	scrape(test, 36 * SECOND);
	for (int i = 0; i < 300; i++)
		scrape(test, 0);
	add(test, 9, MS);
	sites_come(test);
	scrape(test, MS);
	cr_expect_eq(shown(test, "f9+0x10 [server]"), MS);
	cr_expect_eq(shown(test, "f8+0x10 [server]"), 8 * SECOND, "there is room for it");
	test_free(test);
}

Test(lock_sites_shown, of_endless_places_the_last_are_remembered)
{
	struct lock_site_test *test = test_new();
	struct call_sites sites = { 0 };
	struct place first = call_sites_meet(&sites, &test->files, call_in(1));
	struct place second = call_sites_meet(&sites, &test->files, call_in(2)), last = first;

	for (uint64_t number = 3; number < 3 * CALL_SITES_MAX; number++) {
		last = call_sites_meet(&sites, &test->files, call_in(number));
		call_sites_meet(&sites, &test->files, call_in(2)); /* all the time */
	}
	cr_expect_not_null(call_sites_at(&sites, &second));
	cr_expect_eq(HASH_COUNT(sites.by_place), CALL_SITES_MAX);
	cr_expect_eq(sites.unnamed, CALL_SITES_MAX);
	cr_expect_null(call_sites_at(&sites, &first));
	cr_expect_not_null(call_sites_at(&sites, &last));
	call_sites_free(&sites);
	cr_expect_eq(sites.unnamed, 0);
	test_free(test);
}

/* Each is met but once. */
Test(lock_sites_shown, endless_places_have_a_bound)
{
	struct lock_site_test *test = test_new();
	uint64_t sum = 0;
	size_t len;

	for (uint64_t round = 0; round < 100; round++) {
		for (uint64_t i = 0; i < 100; i++)
			add(test, 1000 + 100 * round + i, MS);
		sites_come(test);
		sum += 300 * MS;
		scrape(test, 300 * MS);
		cr_expect_leq(shown_in_all(test, &len), sum);
		cr_expect_eq(len, LOCK_SITES_SHOWN + 1);
	}
	add(test, 1, 100 * SECOND);
	sites_come(test);
	scrape(test, SECOND);
	cr_expect_geq(shown(test, "f1+0x10 [server]"), SECOND * 99 / 100);
	test_free(test);
}

/* --- what goes ------------------------------------------------------------------------------ */

Test(lock_sites_shown, a_pool_that_is_forgotten_takes_nothing_away)
{
	struct lock_site_test *test = test_new();

	add(test, 1, MS);
	sites_come(test);
	scrape(test, 5 * MS);
	test->now_ns += SECOND;
	test->pools[1].mutex.sum_ns = 3 * MS;
	lock_sites_share(test->sites, test->ledger, &test->pools[1], 1, test->now_ns);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 5 * MS);
	cr_expect_eq(shown(test, "other"), 3 * MS);
	test->pools[0].mutex.sum_ns = 0; /* it comes back, and begins at 0 */
	scrape(test, 2 * MS);
	cr_expect_eq(shown(test, "other"), 5 * MS);
	test_free(test);
}

Test(lock_sites_shown, a_scrape_that_reads_no_pools_changes_nothing)
{
	struct lock_site_test *test = test_new();

	add(test, 1, MS);
	sites_come(test);
	scrape(test, 5 * MS);
	lock_sites_share(test->sites, test->ledger, NULL, 0, test->now_ns + SECOND);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 5 * MS);
	scrape(test, MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]") + shown(test, "other"), 6 * MS);
	test_free(test);
}

Test(lock_sites_shown, are_gone_with_their_workload)
{
	struct lock_site_test *test = test_new();
	const uint64_t frames[] = { call_in(1) };
	size_t len;

	add_to(test, "gone", frames, 1, MS);
	add(test, 1, MS);
	names_come(test);
	scrape(test, MS);
	shown_in_all(test, &len);
	cr_expect_eq(len, 2, "the ledger does not know it");
	test_free(test);
}
