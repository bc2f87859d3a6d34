/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

/* What another CPU does just before an exchange, once. */
static void (*other)(void);

static void meet(void)
{
	void (*event)(void) = other;

	other = NULL;
	if (event)
		event();
}

#define __sync_val_compare_and_swap(at, from, to) \
	(meet(), __sync_val_compare_and_swap(at, from, to))

#include "machine/overflows.h"

static struct listen_counts *met;

static struct listen_counts counts(__u64 listened, __u64 deferred)
{
	return (struct listen_counts){ .overflows = listened, .deferred = deferred };
}

Test(overflows, an_overflow_that_was_dropped_twice_is_one)
{
	struct listen_counts given = counts(100, 0), total = counts(120, 0);

	cr_expect_eq(overflows_of(&given, &total, 0, 33), 20);
	cr_expect_eq(given.overflows, 120);
	cr_expect_eq(overflows_of(&given, &total, 0, 7), 0, "all are given");
}

Test(overflows, acknowledgements_that_were_put_off_are_none)
{
	struct listen_counts given = counts(5, 50), total = counts(5, 550);

	cr_expect_eq(overflows_of(&given, &total, 1, 500), 0);
	cr_expect_eq(given.deferred, 550);
}

Test(overflows, a_socket_that_puts_off_can_overflow_as_well)
{
	struct listen_counts given = counts(0, 0), total = counts(20, 500);

	cr_expect_eq(overflows_of(&given, &total, 1, 540), 20);
}

Test(overflows, those_of_one_socket_are_not_given_to_another)
{
	struct listen_counts given = counts(0, 0), total = counts(20, 500);

	cr_expect_eq(overflows_of(&given, &total, 1, 500), 0);
	cr_expect_eq(overflows_of(&given, &total, 0, 25), 20);
	cr_expect_eq(overflows_of(&given, &total, 0, 25), 0);
}

Test(overflows, a_socket_has_no_more_than_it_has_dropped)
{
	struct listen_counts given = counts(0, 0), total = counts(1000, 0);

	cr_expect_eq(overflows_of(&given, &total, 0, 3), 3);
	cr_expect_eq(overflows_of(&given, &total, 0, 0), 0);
	cr_expect_eq(given.overflows, 3);
}

Test(overflows, a_sum_that_is_behind_gives_nothing)
{
	struct listen_counts given = counts(10, 10), total = counts(9, 9);

	cr_expect_eq(overflows_of(&given, &total, 1, 5), 0);
	cr_expect_eq(given.overflows, 10);
	cr_expect_eq(given.deferred, 10);
}

static void other_socket(void)
{
	const struct listen_counts total = counts(10, 0);

	cr_expect_eq(overflows_of(met, &total, 0, 4), 4);
}

Test(overflows, a_socket_that_meets_another_one_takes_none_until_the_next_time)
{
	struct listen_counts given = counts(0, 0), total = counts(10, 0);

	met = &given;
	other = other_socket;
	cr_expect_eq(overflows_of(&given, &total, 0, 7), 0);
	cr_expect_eq(overflows_of(&given, &total, 0, 7), 6);
}
