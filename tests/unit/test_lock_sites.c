/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for locks by call site: what is sampled, what the places are called, and what is shared
 * out. */
#include "lock_siting.h"

#include <errno.h>

Test(lock_sites, share_out_the_exact_time_by_what_was_sampled)
{
	struct lock_site_test *test = test_new();
	size_t len;

	add(test, 1, 3 * MS);
	add(test, 2, MS);
	sites_come(test);
	scrape(test, 8 * MS + 1);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 6 * MS);
	cr_expect_eq(shown(test, "f2+0x10 [server]"), 2 * MS);
	cr_expect_eq(shown(test, "other"), 1, "what cannot be divided");
	cr_expect_eq(shown_in_all(test, &len), 8 * MS + 1);
	cr_expect_eq(len, 3);
	add(test, 2, MS);
	scrape(test, 5 * MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 6 * MS, "nothing was sampled there");
	cr_expect_eq(shown(test, "f2+0x10 [server]"), 7 * MS);
	test_free(test);
}

Test(lock_sites, of_time_of_which_nothing_was_sampled_nothing_is_known)
{
	struct lock_site_test *test = test_new();
	size_t len;

	scrape(test, 0);
	shown_in_all(test, &len);
	cr_expect_eq(len, 0);
	scrape(test, 7 * MS);
	cr_expect_eq(shown(test, "other"), 7 * MS);
	test->pools[1].mutex.sum_ns += 2 * MS;
	scrape(test, MS);
	cr_expect_eq(shown(test, "other"), 10 * MS, "of both pools");
	test_free(test);
}

Test(lock_sites, what_is_sampled_where_no_code_is_known_is_of_other)
{
	struct lock_site_test *test = test_new();
	const uint64_t libc[] = { frame_of_syscall(202), frame_make(LIBC, 0x5000) };
	const uint64_t gone[] = { frame_of_syscall(202), frame_make(7, 0x5000) };

	add(test, 1, 2 * MS);
	add_to(test, "web", libc, 2, MS);
	add_to(test, "web", gone, 2, MS);
	add_later(test, 5, 4 * MS, true);
	sites_come(test);
	scrape(test, 16 * MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 4 * MS);
	cr_expect_eq(shown(test, "other"), 12 * MS);
	test_free(test);
}

Test(lock_sites, begin_at_0)
{
	struct lock_site_test *test = test_new();

	add(test, 1, MS);
	names_come(test);
	scrape(test, 2 * MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 0);
	cr_expect_eq(shown(test, "other"), 2 * MS);
	add(test, 1, MS);
	scrape(test, 3 * MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 3 * MS);
	cr_expect_eq(shown(test, "other"), 2 * MS);
	test_free(test);
}

Test(lock_sites, a_wait_that_ends_long_after_its_stack_was_told_is_of_its_site)
{
	struct lock_site_test *test = test_new();

	add(test, 1, MS);
	add(test, 2, MS);
	sites_come(test);
	scrape(test, 2 * MS);
	add_later(test, 1, 60 * SECOND, true);
	scrape(test, 60 * SECOND);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 60 * SECOND + MS);
	cr_expect_eq(shown(test, "f2+0x10 [server]"), MS);
	test_free(test);
}

/* As beside a profile, which is told of it while it lasts: what others wait is not taken for its.
 */
Test(lock_sites, a_wait_that_lasts_counts_when_it_is_over)
{
	struct lock_site_test *test = test_new();

	add(test, 1, MS);
	add(test, 2, MS);
	sites_come(test);
	scrape(test, 2 * MS);
	for (int i = 0; i < 60; i++) {
		add_later(test, 1, SECOND, false);
		add(test, 2, MS);
		scrape(test, MS);
	}
	cr_expect_eq(shown(test, "f1+0x10 [server]"), MS);
	cr_expect_eq(shown(test, "f2+0x10 [server]"), 61 * MS);
	add_later(test, 1, MS, true);
	add(test, 2, MS);
	scrape(test, 60 * SECOND + 2 * MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 60 * SECOND + 2 * MS);
	cr_expect_eq(shown(test, "f2+0x10 [server]"), 62 * MS);
	test_free(test);
}

Test(lock_sites, a_wait_that_is_not_in_the_exact_time_yet_counts_with_the_next_scrape)
{
	struct lock_site_test *test = test_new();

	add(test, 1, MS);
	add(test, 2, MS);
	sites_come(test);
	scrape(test, 2 * MS);
	add(test, 1, 4 * MS);
	scrape(test, 0);
	add(test, 2, 4 * MS);
	scrape(test, 8 * MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 5 * MS);
	cr_expect_eq(shown(test, "f2+0x10 [server]"), 5 * MS);
	add(test, 1, 4 * MS);
	scrape(test, 0);
	scrape(test, 0);
	add(test, 2, 4 * MS);
	scrape(test, 8 * MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 5 * MS, "by then it never will be");
	cr_expect_eq(shown(test, "f2+0x10 [server]"), 13 * MS);
	test_free(test);
}

Test(lock_sites, scrapes_soon_after_each_other_lose_nothing)
{
	struct lock_site_test *test = test_new();

	scrape(test, 0);
	add(test, 1, 4 * MS);
	names_come(test);
	for (int i = 0; i < 5; i++)
		scrape_after(test, 0, 10 * MS);
	scrape_after(test, 4 * MS, 10 * MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 4 * MS);
	test_free(test);
}

/* --- places --------------------------------------------------------------------------------- */

Test(lock_sites, until_a_place_has_its_name_its_time_is_of_other)
{
	struct lock_site_test *test = test_new();

	add(test, 1, MS);
	scrape(test, MS);
	cr_expect_eq(shown(test, "other"), MS);
	add(test, 1, MS);
	sites_come(test);
	scrape(test, MS);
	cr_expect_eq(shown(test, "other"), MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), MS);
	test_free(test);
}

Test(lock_sites, functions_that_wrap_locks_are_none)
{
	struct lock_site_test *test = test_new();
	static const char *const wrappers[] = {
		"std::mutex::lock",
		"std::unique_lock<std::mutex>::lock",
		"__gthread_mutex_lock",
		"___pthread_mutex_lock",
		"std::sys::sync::mutex::futex::Mutex::lock_contended",
		"<std::sync::mutex::Mutex<i32>>::lock",
		"parking_lot::raw_mutex::RawMutex::lock_slow",
		"absl::lts_20220623::Mutex::Lock",
		"Mutex::Lock",
		"tokio::loom::std::parking_lot::Mutex<T>::lock",
		"<parking_lot::raw_rwlock::RawRwLock as lock_api::rwlock::RawRwLock>::lock_shared",
	};

	for (uint64_t i = 0; i < COUNT(wrappers); i++) {
		const uint64_t frames[] = { call_in(1 + i), call_in(50), call_in(60) };

		test->names[1 + i] = wrappers[i];
		add_to(test, "web", frames, 3, MS);
	}
	sites_come(test);
	scrape(test, COUNT(wrappers) * MS);
	cr_expect_eq(shown(test, "f50+0x10 [server]"), COUNT(wrappers) * MS);
	test_free(test);
}

Test(lock_sites, where_all_of_them_wrap_it_is_the_innermost)
{
	struct lock_site_test *test = test_new();
	const uint64_t frames[] = { call_in(1), call_in(2) };

	test->names[1] = test->names[2] = "std::mutex::lock";
	add_to(test, "web", frames, 2, MS);
	sites_come(test);
	scrape(test, MS);
	cr_expect_eq(shown(test, "std::mutex::lock+0x10 [server]"), MS);
	test_free(test);
}

Test(lock_sites, a_place_without_a_name_is_its_address)
{
	struct lock_site_test *test = test_new();
	struct survey_wish wish;

	test->names[3] = "";
	add(test, 3, MS);
	names_come(test);
	add(test, 4, MS);
	for (unsigned int i = 0; i < CALL_SITE_TRIES; i++) {
		cr_assert(lock_sites_ask(test->sites, &test->files, &wish));
		wish.result = -ETIMEDOUT;
		lock_sites_named(test->sites, &wish);
	}
	cr_expect_not(lock_sites_lack(test->sites));
	cr_expect_not(lock_sites_ask(test->sites, &test->files, &wish));
	sites_come(test);
	scrape(test, 2 * MS);
	cr_expect_eq(shown(test, "server+0x310"), MS);
	cr_expect_eq(shown(test, "server+0x410"), MS);
	test_free(test);
}

Test(lock_sites, a_name_that_is_late_comes_another_time)
{
	struct lock_site_test *test = test_new();
	struct survey_wish wish;

	add(test, 1, MS);
	cr_assert(lock_sites_ask(test->sites, &test->files, &wish));
	wish.result = -ETIMEDOUT;
	lock_sites_named(test->sites, &wish);
	sites_come(test);
	scrape(test, MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), MS);
	test_free(test);
}

/* Whichever it is in which there are new places all the time. */
Test(lock_sites, names_are_asked_for_in_one_file_after_the_other)
{
	struct lock_site_test *test = test_new();
	struct survey_wish wish;
	uint32_t asked[4];

	test->file[LIBC].path = (char *)"/usr/lib/module.so";
	for (uint64_t i = 0; i < 4; i++) {
		const uint64_t frames[] = { call_in(1 + i), frame_make(LIBC, 0x100 * (1 + i)) };

		add_to(test, "web", frames, 2, MS);
		cr_assert(lock_sites_ask(test->sites, &test->files, &wish));
		asked[i] = wish.file;
		names_tell(test, &wish);
		lock_sites_named(test->sites, &wish);
	}
	for (uint32_t i = 1; i < 4; i++)
		cr_expect_neq(asked[i], asked[i - 1]);
	test_free(test);
}

Test(lock_sites, a_file_that_has_the_number_of_another_is_not_taken_for_it)
{
	struct lock_site_test *test = test_new();

	add(test, 1, MS);
	sites_come(test);
	scrape(test, MS);
	test->file[SERVER].id = 200;
	test->file[SERVER].path = (char *)"/usr/bin/other_server";
	test->names[1] = "g";
	add(test, 1, MS);
	sites_come(test);
	scrape(test, MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), MS);
	cr_expect_eq(shown(test, "g+0x10 [other_server]"), MS);
	test_free(test);
}

Test(lock_sites, the_same_place_of_another_file_of_that_name_is_one_site)
{
	struct lock_site_test *test = test_new();

	add(test, 1, MS);
	names_come(test);
	test->file[SERVER].id = 200; /* as of another container */
	add(test, 1, MS);
	sites_come(test);
	scrape(test, 2 * MS);
	cr_expect_eq(shown(test, "f1+0x10 [server]"), 2 * MS);
	test_free(test);
}
