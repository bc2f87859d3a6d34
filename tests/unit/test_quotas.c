/* SPDX-License-Identifier: Apache-2.0 */
/* How many sockets and threads fit a memory limit. */
#include <criterion/criterion.h>

#include "abi/quotas.h"
#include "kernel/quotas.h"

#define MIB (1024ULL * 1024ULL)

TestSuite(quotas);

Test(quotas, half_of_what_is_left_after_a_reserve_is_for_sockets_and_a_quarter_for_threads)
{
	const struct memory_limit limit = { .limit_bytes = 272 * MIB, .used_bytes = 16 * MIB };
	struct quotas_fit fit;

	quotas_fit(&limit, false, &fit);
	cr_expect_eq(fit.max[QUOTA_SOCKETS], 120 * MIB / 640);
	cr_expect_eq(fit.max[QUOTA_THREADS], 60 * MIB / 576);
	quotas_fit(&limit, true, &fit);
	cr_expect_eq(fit.max[QUOTA_SOCKETS], 120 * MIB / 800);
}

Test(quotas, the_reserve_is_half_of_what_is_left_at_most)
{
	const struct memory_limit limit = { .limit_bytes = 32 * MIB, .used_bytes = 16 * MIB };
	struct quotas_fit fit;

	quotas_fit(&limit, false, &fit);
	cr_expect_eq(fit.max[QUOTA_SOCKETS], 4 * MIB / 640);
	cr_expect_eq(fit.max[QUOTA_THREADS], 2 * MIB / 576);
}

/* 0 would be no bound at all. */
Test(quotas, where_nothing_is_left_there_is_a_bound_still)
{
	const struct memory_limit limits[] = { { 16 * MIB, 16 * MIB }, { 8 * MIB, 16 * MIB } };
	struct quotas_fit fit;

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		quotas_fit(&limits[i], false, &fit);
		cr_expect_eq(fit.max[QUOTA_SOCKETS], 8);
		cr_expect_eq(fit.max[QUOTA_THREADS], 8);
	}
}

Test(quotas, the_last_eighth_is_for_those_that_begin_something)
{
	const struct quota seven = { .max = 64, .held = 56 }, full = { .max = 64, .held = 64 };

	cr_expect(quota_left(&(struct quota){ .max = 64, .held = 55 }, 0));
	cr_expect_not(quota_left(&seven, 0));
	cr_expect(quota_left(&seven, 1));
	cr_expect_not(quota_left(&full, 1));
}

Test(quotas, without_a_limit_there_is_no_bound)
{
	cr_expect(quota_left(&(struct quota){ .max = 0, .held = 1ULL << 40 }, 0));
}
