/* SPDX-License-Identifier: Apache-2.0 */
/* How many sockets and threads fit a memory limit. */
#include <criterion/criterion.h>

#include "abi/quotas.h"
#include "core.h"
#include "kernel/quotas.h"

#define MIB (1024ULL * 1024ULL)

/* What each takes: with one backend, and with one that has more. */
static const uint32_t bytes[QUOTAS] = { [QUOTA_SOCKETS] = 640, [QUOTA_THREADS] = 576 };
static const uint32_t larger[QUOTAS] = { [QUOTA_SOCKETS] = 800, [QUOTA_THREADS] = 576 };

TestSuite(quotas);

Test(quotas, half_of_what_is_left_after_a_reserve_is_for_sockets_and_a_quarter_for_threads)
{
	const struct memory_limit limit = { .limit_bytes = 272 * MIB, .used_bytes = 16 * MIB };
	struct quotas_fit fit;

	quotas_fit(&limit, bytes, &fit);
	cr_expect_eq(fit.max[QUOTA_SOCKETS], 120 * MIB / 640);
	cr_expect_eq(fit.max[QUOTA_THREADS], 60 * MIB / 576);
	quotas_fit(&limit, larger, &fit);
	cr_expect_eq(fit.max[QUOTA_SOCKETS], 120 * MIB / 800);
}

Test(quotas, the_reserve_is_half_of_what_is_left_at_most)
{
	const struct memory_limit limit = { .limit_bytes = 32 * MIB, .used_bytes = 16 * MIB };
	struct quotas_fit fit;

	quotas_fit(&limit, bytes, &fit);
	cr_expect_eq(fit.max[QUOTA_SOCKETS], 4 * MIB / 640);
	cr_expect_eq(fit.max[QUOTA_THREADS], 2 * MIB / 576);
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

static const enum walk walk_of[QUOTAS] = {
	[QUOTA_SOCKETS] = WALK_TRACKED,
	[QUOTA_THREADS] = WALK_MEMBERS,
};

/* What happens while sockets, or threads, are counted: so many come, go, and are met. */
struct meanwhile {
	struct quota *quota;
	enum walk walk;
	uint64_t come, gone, met;
};

static int meet(void *arg, enum walk walk)
{
	const struct meanwhile *meanwhile = arg;

	if (walk != meanwhile->walk)
		return 0;
	cr_expect_eq(meanwhile->quota->met, 0);
	meanwhile->quota->taken += meanwhile->come;
	meanwhile->quota->given += meanwhile->gone;
	meanwhile->quota->met += meanwhile->met;
	return 0;
}

static int64_t recounted_of(unsigned int kind, uint64_t come, uint64_t gone, uint64_t met)
{
	struct core *core = core_start(features_collectors());
	struct quota *quota = plain_at(core->loader, "quotas", kind);
	struct meanwhile meanwhile = { quota, walk_of[kind], come, gone, met };
	int64_t held;

	*quota = (struct quota){ .taken = 5000, .given = 4900, .met = 77, .excess = 1000 };
	core->walk = meet;
	core->arg = &meanwhile;
	cr_expect_eq(quotas_recount(&core->kernel, kind), 0);
	held = quota_held(quota);
	core_stop(core);
	return held;
}

/*
 * How many are held after 100 were, by all that was told of: the same of either kind. The walk
 * before has found as much too much.
 */
static int64_t recounted(uint64_t come, uint64_t gone, uint64_t met)
{
	int64_t sockets = recounted_of(QUOTA_SOCKETS, come, gone, met);

	cr_expect_eq(recounted_of(QUOTA_THREADS, come, gone, met), sockets);
	return sockets;
}

Test(quotas, a_count_that_is_right_stays)
{
	cr_expect_eq(recounted(0, 0, 100), 100);
	cr_expect_eq(recounted(10, 0, 100), 110, "those that came were not met");
	cr_expect_eq(recounted(10, 0, 110), 110, "or were");
	cr_expect_eq(recounted(0, 10, 100), 90, "those that went were met");
	cr_expect_eq(recounted(0, 10, 90), 90, "or were not");
}

Test(quotas, sockets_whose_end_nobody_told_of_hold_no_room)
{
	cr_expect_eq(recounted(0, 0, 60), 60);
	cr_expect_eq(recounted(10, 0, 60), 70);
	cr_expect_eq(recounted(0, 10, 60), 60);
}

/* A walk that meets 60 of 100, and after it the end of @told of them is told; then another one. */
static int64_t recounted_twice(unsigned int kind, uint64_t told)
{
	struct core *core = core_start(features_collectors());
	struct quota *quota = plain_at(core->loader, "quotas", kind);
	struct meanwhile meanwhile = { .quota = quota, .walk = walk_of[kind], .met = 60 };
	int64_t held;

	*quota = (struct quota){ .taken = 100 };
	core->walk = meet;
	core->arg = &meanwhile;
	cr_expect_eq(quotas_recount(&core->kernel, kind), 0);
	cr_expect_eq(quota_held(quota), 100);
	quota->given += told;
	cr_expect_eq(quotas_recount(&core->kernel, kind), 0);
	held = quota_held(quota);
	core_stop(core);
	return held;
}

Test(quotas, threads_whose_end_is_told_after_the_walk_are_given_back_once)
{
	cr_expect_eq(recounted_twice(QUOTA_THREADS, 40), 60);
	cr_expect_eq(recounted_twice(QUOTA_THREADS, 30), 60, "ten ends were not told");
	cr_expect_eq(recounted_twice(QUOTA_THREADS, 0), 60);
	cr_expect_eq(recounted_twice(QUOTA_SOCKETS, 0), 60);
}

Test(quotas, sockets_that_nobody_told_of_take_room)
{
	cr_expect_eq(recounted(0, 0, 130), 130);
	cr_expect_eq(recounted(10, 0, 130), 130);
	cr_expect_eq(recounted(0, 10, 130), 120);
}

Test(quotas, a_walk_that_fails_changes_nothing)
{
	enum walk fails = WALK_TRACKED;
	struct core *core = core_start(features_collectors());
	struct quota *quota = plain_at(core->loader, "quotas", QUOTA_SOCKETS);

	*quota = (struct quota){ .taken = 100 };
	core->walk = core_walk_fails;
	core->arg = &fails;
	cr_expect_eq(quotas_recount(&core->kernel, QUOTA_SOCKETS), -ENOMEM);
	cr_expect_eq(quota_held(quota), 100);
	core_stop(core);
}

Test(quotas, sockets_and_threads_are_counted_every_ten_seconds)
{
	struct core *core = core_start(features_collectors());

	core_scrape(core);
	core_scrape(core);
	for (unsigned int kind = 0; kind < QUOTAS; kind++)
		cr_expect_eq(plain_walks(core->loader, walk_of[kind]), 1, "%u", kind);
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
