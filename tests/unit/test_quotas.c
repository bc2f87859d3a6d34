/* SPDX-License-Identifier: Apache-2.0 */
/* How many sockets and threads fit a memory limit. */
#include <criterion/criterion.h>

#include "abi/quotas.h"
#include "core.h"
#include "kernel/quotas.h"

#define MIB (1024ULL * 1024ULL)

/* What each takes: as it is, and if it were more. */
static const uint32_t bytes[QUOTAS] = { [QUOTA_SOCKETS] = 640, [QUOTA_THREADS] = 576 };
static const uint32_t larger[QUOTAS] = { [QUOTA_SOCKETS] = 800, [QUOTA_THREADS] = 576 };

TestSuite(quotas);

Test(quotas, half_of_what_is_left_after_a_reserve_is_for_sockets_and_a_quarter_for_threads)
{
	const struct memory_limit limit = { .limit_bytes = 144 * MIB, .used_bytes = 16 * MIB };
	struct quotas_fit fit;

	quotas_fit(&limit, bytes, &fit);
	cr_expect_eq(fit.max[QUOTA_SOCKETS], 56 * MIB / 640);
	cr_expect_eq(fit.max[QUOTA_THREADS], 28 * MIB / 576);
	quotas_fit(&limit, larger, &fit);
	cr_expect_eq(fit.max[QUOTA_SOCKETS], 56 * MIB / 800);
}

Test(quotas, the_reserve_is_half_of_what_is_left_at_most)
{
	const struct memory_limit limit = { .limit_bytes = 32 * MIB, .used_bytes = 16 * MIB };
	struct quotas_fit fit;

	quotas_fit(&limit, bytes, &fit);
	cr_expect_eq(fit.max[QUOTA_SOCKETS], 4 * MIB / 640);
	cr_expect_eq(fit.max[QUOTA_THREADS], 2 * MIB / 576);
}

Test(quotas, there_are_no_more_sockets_than_places)
{
	const struct memory_limit limit = { .limit_bytes = 4096 * MIB, .used_bytes = 16 * MIB };
	struct quotas_fit fit;

	quotas_fit(&limit, bytes, &fit);
	cr_expect_eq(fit.max[QUOTA_SOCKETS], SOCKETS_MAX - 1);
}

/* 0 would be no bound at all. */
Test(quotas, where_nothing_is_left_there_is_a_bound_still)
{
	const struct memory_limit limits[] = { { 16 * MIB, 16 * MIB }, { 8 * MIB, 16 * MIB } };
	struct quotas_fit fit;

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		quotas_fit(&limits[i], bytes, &fit);
		cr_expect_eq(fit.max[QUOTA_SOCKETS], 8);
		cr_expect_eq(fit.max[QUOTA_THREADS], 8);
	}
}

Test(quotas, the_last_eighth_is_for_those_that_begin_something)
{
	const struct quota seven = { .max = 64, .taken = 56 }, full = { .max = 64, .taken = 64 };

	cr_expect(quota_left(&(struct quota){ .max = 64, .taken = 55 }, 0));
	cr_expect_not(quota_left(&seven, 0));
	cr_expect(quota_left(&seven, 1));
	cr_expect_not(quota_left(&full, 1));
}

Test(quotas, without_a_limit_there_is_no_bound)
{
	cr_expect(quota_left(&(struct quota){ .max = 0, .taken = 1ULL << 40 }, 0));
}

/* What happens while threads are counted: so many come, go, and are met. */
struct meanwhile {
	struct quota *quota;
	uint64_t come, gone, met;
};

static int meet(void *arg, enum walk walk)
{
	const struct meanwhile *meanwhile = arg;

	if (walk != WALK_MEMBERS)
		return 0;
	cr_expect_eq(meanwhile->quota->met, 0);
	meanwhile->quota->taken += meanwhile->come;
	meanwhile->quota->given += meanwhile->gone;
	meanwhile->quota->met += meanwhile->met;
	return 0;
}

/*
 * So many are held after 100 were, by all that was told of. The walk before has found as much too
 * much.
 */
static void expect_recounted(uint64_t come, uint64_t gone, uint64_t met, int64_t held)
{
	struct core *core = core_start(features_collectors());
	struct quota *quota = plain_at(core->loader, "quotas", QUOTA_THREADS);
	struct meanwhile meanwhile = { quota, come, gone, met };

	*quota = (struct quota){ .taken = 5000, .given = 4900, .met = 77, .excess = 1000 };
	core->walk = meet;
	core->arg = &meanwhile;
	cr_expect_eq(quotas_recount_threads(&core->kernel), 0);
	cr_expect_eq(quota_held(quota), held, "%ld", (long)quota_held(quota));
	core_stop(core);
}

Test(quotas, a_count_that_is_right_stays)
{
	expect_recounted(0, 0, 100, 100);
	expect_recounted(10, 0, 100, 110); /* those that came were not met */
	expect_recounted(10, 0, 110, 110); /* or were */
	expect_recounted(0, 10, 100, 90); /* those that went were met */
	expect_recounted(0, 10, 90, 90); /* or were not */
}

Test(quotas, threads_whose_end_nobody_told_of_hold_no_room)
{
	expect_recounted(0, 0, 60, 60);
	expect_recounted(10, 0, 60, 70);
	expect_recounted(0, 10, 60, 60);
}

/* A walk that meets 60 of 100, and after it the end of @told of them is told; then another one. */
static void expect_recounted_twice(uint64_t told)
{
	struct core *core = core_start(features_collectors());
	struct quota *quota = plain_at(core->loader, "quotas", QUOTA_THREADS);
	struct meanwhile meanwhile = { .quota = quota, .met = 60 };

	*quota = (struct quota){ .taken = 100 };
	core->walk = meet;
	core->arg = &meanwhile;
	cr_expect_eq(quotas_recount_threads(&core->kernel), 0);
	cr_expect_eq(quota_held(quota), 100);
	quota->given += told;
	cr_expect_eq(quotas_recount_threads(&core->kernel), 0);
	cr_expect_eq(quota_held(quota), 60);
	core_stop(core);
}

Test(quotas, threads_whose_end_is_told_after_the_walk_are_given_back_once)
{
	expect_recounted_twice(40);
	expect_recounted_twice(30); /* ten ends were not told */
	expect_recounted_twice(0);
}

Test(quotas, threads_that_nobody_told_of_take_room)
{
	expect_recounted(0, 0, 130, 130);
	expect_recounted(10, 0, 130, 130);
	expect_recounted(0, 10, 130, 120);
}

Test(quotas, a_walk_that_fails_changes_nothing)
{
	enum walk fails = WALK_MEMBERS;
	struct core *core = core_start(features_collectors());
	struct quota *quota = plain_at(core->loader, "quotas", QUOTA_THREADS);

	*quota = (struct quota){ .taken = 100 };
	core->walk = core_walk_fails;
	core->arg = &fails;
	cr_expect_eq(quotas_recount_threads(&core->kernel), -ENOMEM);
	cr_expect_eq(quota_held(quota), 100);
	core_stop(core);
}

Test(quotas, threads_are_counted_every_ten_seconds)
{
	struct core *core = core_start(features_collectors());

	core_scrape(core);
	core_scrape(core);
	cr_expect_eq(plain_walks(core->loader, WALK_MEMBERS), 1);
	core_stop(core);
}

Test(quotas, fewer_than_none_are_shown_as_none)
{
	struct core *core = core_start(features_collectors());
	struct quota *quota = plain_at(core->loader, "quotas", QUOTA_SOCKETS);

	*quota = (struct quota){ .max = 64, .taken = 5, .given = 7 };
	cr_expect_eq(quotas_row(&core->kernel, QUOTA_SOCKETS, "sockets").entries, 0);
	cr_expect(quotas_have_room(&core->kernel, QUOTA_SOCKETS));
	core_stop(core);
}
