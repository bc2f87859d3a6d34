/* SPDX-License-Identifier: Apache-2.0 */
/* Which waits are sampled: about so many a second, and no kind of them more than another. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdint.h>

#include "draws.h"
#include "machine/paces.h"

#define US 1000ULL
#define MS 1000000ULL
#define START (5000 * MS)

/* After a hundred events. */
static struct pace pace_of(uint64_t interval_ns)
{
	struct pace pace = { 0 };

	for (uint64_t i = 1; i <= 100; i++)
		pace_step(&pace, START + i * interval_ns, MS);
	return pace;
}

Test(paces, are_how_often_something_happens)
{
	static const uint64_t intervals[] = { 10 * US, MS, 100 * MS };

	for (size_t i = 0; i < sizeof(intervals) / sizeof(*intervals); i++) {
		struct pace pace = pace_of(intervals[i]);

		cr_expect_geq(pace.every_ns, intervals[i] * 9 / 10);
		cr_expect_leq(pace.every_ns, intervals[i] * 11 / 10);
	}
}

Test(paces, are_bounded_whatever_the_clocks_say)
{
	struct pace pace = { .every_ns = PACE_NS_MAX };

	cr_expect_eq(pace_step(&pace, UINT64_MAX, MS), 0);
	cr_expect_leq(pace.every_ns, PACE_NS_MAX);
	pace = (struct pace){ .last_ns = START };
	cr_expect_eq(pace_step(&pace, START - 1, MS), PACE_SHIFT_MAX, "a CPU is behind another");
	cr_expect_eq(pace.every_ns, 0);
}

Test(paces, leave_out_what_is_more_than_wanted)
{
	for (uint64_t every = 1; every < 10 * MS; every += every / 3 + 1) {
		struct pace pace = { .last_ns = START, .every_ns = every };
		uint32_t shift = pace_step(&pace, START + every, MS);

		cr_expect(shift == PACE_SHIFT_MAX || pace.every_ns << shift >= MS, "%lu", every);
		cr_expect(!shift || pace.every_ns << (shift - 1) < MS, "%lu", every);
	}
}

Test(paces, leave_out_nothing_of_what_is_seldom)
{
	struct paces cpu = { pace_of(MS), pace_of(MS) };
	struct pace thread = pace_of(2 * MS);

	for (uint64_t i = 1; i < 1000; i++)
		cr_expect_eq(pace_draw(&thread, &cpu, 1, START + 200 * MS + i * 2 * MS,
				       (uint32_t)i * 2654435761U),
			     0);
}

/* However often other threads of the CPU do. */
Test(paces, leave_out_no_wait_of_a_thread_that_seldom_does)
{
	struct pace often = pace_of(10 * US), seldom = pace_of(50 * MS);
	struct paces cpu = { pace_of(10 * US), pace_of(50 * MS) };
	uint64_t now = START + 5000 * MS, seed = 20261128, taken = 0;

	for (uint64_t i = 1; i < 50000; i++) {
		now += 10 * US;
		taken += pace_draw(&often, &cpu, 1, now,
				   (uint32_t)random_below(&seed, UINT32_MAX)) >= 0;
		if (i % 5000 == 0)
			cr_expect_eq(pace_draw(&seldom, &cpu, 1, now,
					       (uint32_t)random_below(&seed, UINT32_MAX)),
				     0);
	}
	cr_expect_lt(taken, 5000);
}

static double taken_of(uint32_t cost, double *told)
{
	struct pace thread = { 0 };
	struct paces cpu = { 0 };
	uint64_t now = START, seed = 20261129, taken = 0;

	for (int i = 0; i < 200000; i++) {
		int shift = pace_draw(&thread, &cpu, cost, now += 100 * US,
				      (uint32_t)random_below(&seed, UINT32_MAX));

		taken += shift >= 0;
		*told += shift < 0 ? 0 : (double)(1U << shift);
	}
	return (double)taken;
}

Test(paces, take_fewer_of_what_costs_more_and_these_stand_for_as_many)
{
	double told[2] = { 0 }, cheap = taken_of(1, &told[0]), dear = taken_of(4, &told[1]);

	cr_expect_geq(dear, 0.2 * cheap);
	cr_expect_leq(dear, 0.3 * cheap);
	for (int i = 0; i < 2; i++)
		cr_expect_lt(fabs(told[i] - 200000), 20000, "%.0f", told[i]);
}

struct kind {
	double true_ns, told_ns, squares;
};

/* Threads of one CPU that wait for two things: the long waits come in rows, or one by one. */
static void expect_no_bias(uint64_t *seed, uint64_t threads, uint64_t row, uint64_t every)
{
	struct pace paces[8] = { 0 };
	struct paces cpu = { 0 };
	uint64_t now = START, taken = 0;
	struct kind kinds[2] = { 0 };

	for (uint64_t i = 0; i < 600000; i++) {
		struct kind *kind = &kinds[i / threads % every < row];
		uint64_t ns = kind == &kinds[1] ? 2 * MS + random_below(seed, 4 * MS)
						: 10 * US + random_below(seed, 90 * US);
		int shift = pace_draw(&paces[i % threads], &cpu, 1, now,
				      (uint32_t)random_below(seed, UINT32_MAX));

		now += (ns + random_below(seed, 20 * US)) / threads;
		kind->true_ns += (double)ns;
		if (shift < 0)
			continue;
		kind->told_ns += (double)ns * (1ULL << shift);
		kind->squares += (double)ns * (double)ns * (double)((1ULL << shift) - 1) *
				 (double)(1ULL << shift);
		taken++;
	}
	for (int i = 0; i < 2; i++)
		cr_expect_lt(fabs(kinds[i].told_ns - kinds[i].true_ns),
			     4.5 * sqrt(kinds[i].squares) + 1, "%d of %lu in %lu: %.0f for %.0f", i,
			     row, every, kinds[i].told_ns, kinds[i].true_ns);
	cr_expect_lt((double)taken, 2 * 1.5 * (double)(now - START) / (double)CPU_PACE_NS);
}

Test(paces, favour_neither_long_waits_nor_short_ones)
{
	uint64_t seed = 20261127;

	for (uint64_t threads = 1; threads <= 8; threads *= 8) {
		expect_no_bias(&seed, threads, 1, 20);
		expect_no_bias(&seed, threads, 5, 400);
		expect_no_bias(&seed, threads, 200, 1000);
	}
}
