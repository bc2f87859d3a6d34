/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hist_index() against exact arithmetic. With integers v and j,
 *
 *	v <= 2^(j/4) * 10^9  <=>  v^4 * 2^80 <= 2^(j + 80) * 10^36
 *
 * where every exponent is at least 0, so that no bound is ever rounded.
 */
#include <criterion/criterion.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "abi/histogram.h"

#define LIMBS 6 /* (2^64)^4 * 2^80 needs 336 bits */
#define SHIFT (-(HIST_MIN_INDEX - 1))
#define BOUNDS (HIST_BUCKETS - 1)
#define RANDOM_VALUES 3000000

struct wide {
	uint64_t limb[LIMBS]; /* least significant first */
};

static void wide_multiply(struct wide *wide, uint64_t factor)
{
	uint64_t carry = 0;

	for (int i = 0; i < LIMBS; i++) {
		unsigned __int128 product = (unsigned __int128)wide->limb[i] * factor + carry;

		wide->limb[i] = (uint64_t)product;
		carry = (uint64_t)(product >> 64);
	}
}

static void wide_shift(struct wide *wide, int bits)
{
	for (; bits >= 32; bits -= 32)
		wide_multiply(wide, 1ULL << 32);
	wide_multiply(wide, 1ULL << bits);
}

/* @value^4 * 2^@bits */
static struct wide wide_fourth_power(uint64_t value, int bits)
{
	struct wide wide = { { 1 } };

	for (int i = 0; i < 4; i++)
		wide_multiply(&wide, value);
	wide_shift(&wide, bits);
	return wide;
}

static int wide_compare(const struct wide *left, const struct wide *right)
{
	for (int i = LIMBS - 1; i >= 0; i--)
		if (left->limb[i] != right->limb[i])
			return left->limb[i] < right->limb[i] ? -1 : 1;
	return 0;
}

/* upper[i]: what v^4 * 2^80 may be at most for v to lie in cell i or below it. */
struct exact {
	struct wide upper[BOUNDS];
};

static struct exact exact_bounds(void)
{
	struct exact exact;

	for (int i = 0; i < BOUNDS; i++)
		exact.upper[i] = wide_fourth_power(1000000000, i);
	return exact;
}

/* Whether cell @index is the first one whose upper bound is not below @ns. */
static bool exact_is_cell(const struct exact *exact, uint64_t ns, uint32_t index)
{
	struct wide value = wide_fourth_power(ns, SHIFT);

	if (index >= HIST_BUCKETS)
		return false;
	if (index < BOUNDS && wide_compare(&value, &exact->upper[index]) > 0)
		return false;
	return !index || wide_compare(&value, &exact->upper[index - 1]) > 0;
}

/* floor(2^(j/4) * 10^9) with j = HIST_MIN_INDEX - 1 + @cell, found by bisection. */
static uint64_t exact_floor(const struct exact *exact, int cell)
{
	uint64_t low = 0, high = 1ULL << 40;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;
		struct wide value = wide_fourth_power(middle, SHIFT);

		if (wide_compare(&value, &exact->upper[cell]) <= 0)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* xorshift64*: the same values in every run. */
static uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 2685821657736338717ULL;
}

Test(histogram, covers_the_promised_range)
{
	cr_expect_eq(HIST_SCHEMA, 2);
	cr_expect_eq(HIST_MIN_INDEX, -79);
	cr_expect_eq(HIST_MAX_INDEX, 28);
	cr_expect_eq(HIST_BUCKETS, 110, "108 native buckets, zero and overflow");
}

Test(histogram, the_exact_arithmetic_of_this_test_is_right)
{
	struct exact exact = exact_bounds();

	cr_expect_eq(exact_floor(&exact, 0), 953, "10^9 / 2^20 = 953.67");
	cr_expect_eq(exact_floor(&exact, SHIFT), 1000000000);
	cr_expect_eq(exact_floor(&exact, SHIFT + 1), 1189207115, "2^(1/4) = 1.18920711500272");
	cr_expect_eq(exact_floor(&exact, SHIFT + 2), 1414213562, "2^(2/4) = 1.41421356237309");
	cr_expect_eq(exact_floor(&exact, SHIFT + 3), 1681792830, "2^(3/4) = 1.68179283050742");
	cr_expect_eq(exact_floor(&exact, SHIFT - 4), 500000000);
	cr_expect_eq(exact_floor(&exact, BOUNDS - 1), 128000000000);
}

Test(histogram, every_bound_is_inclusive_and_exact)
{
	struct exact exact = exact_bounds();

	for (int i = 0; i < BOUNDS; i++) {
		uint64_t bound = exact_floor(&exact, i);

		cr_expect_eq(hist_index(bound), i, "bound %d: %lu", i, bound);
		cr_expect_eq(hist_index(bound - 1), i, "below bound %d: %lu", i, bound - 1);
		cr_expect_eq(hist_index(bound + 1), i + 1, "above bound %d: %lu", i, bound + 1);
	}
}

Test(histogram, the_constants_of_both_ends_are_the_exact_bounds)
{
	struct exact exact = exact_bounds();

	cr_expect_eq(HIST_ZERO_MAX_NS, exact_floor(&exact, 0));
	cr_expect_eq(HIST_MAX_NS, exact_floor(&exact, BOUNDS - 1));
}

Test(histogram, extreme_values_have_a_cell)
{
	cr_expect_eq(hist_index(0), 0);
	cr_expect_eq(hist_index(1), 0);
	cr_expect_eq(hist_index(HIST_MAX_NS + 1), HIST_BUCKETS - 1);
	cr_expect_eq(hist_index(INT64_MAX), HIST_BUCKETS - 1);
	cr_expect_eq(hist_index(1ULL << 63), HIST_BUCKETS - 1);
	cr_expect_eq(hist_index(UINT64_MAX - 1), HIST_BUCKETS - 1);
	cr_expect_eq(hist_index(UINT64_MAX), HIST_BUCKETS - 1);
}

/* From 2^-9 s on a power of two seconds is a whole number of nanoseconds: 10^9 = 2^9 * 5^9. */
Test(histogram, classic_bounds_at_powers_of_two_seconds_are_exact)
{
	for (int exp = HIST_MIN_EXP; exp <= HIST_MAX_EXP; exp++) {
		uint64_t bound = exp < 0 ? 1000000000ULL >> -exp : 1000000000ULL << exp;
		uint32_t cell = HIST_PER_OCTAVE * (exp - HIST_MIN_EXP);

		cr_expect_eq(hist_index(bound), cell, "2^%d s", exp);
		cr_expect_eq(hist_index(bound + 1), cell + 1, "more than 2^%d s", exp);
	}
}

Test(histogram, never_goes_down_where_values_go_up)
{
	uint32_t last = 0;
	uint64_t ns;

	for (ns = 0; ns < 4000000; ns++) {
		uint32_t index = hist_index(ns);

		if (index != last && index != last + 1)
			cr_assert_fail("%lu ns: from cell %u to %u", ns, last, index);
		last = index;
	}
	/* Steps of at most a 64th are finer than any bucket. */
	for (; ns < 1ULL << 60; ns += ns / 64) {
		uint32_t index = hist_index(ns);

		if (index != last && index != last + 1)
			cr_assert_fail("%lu ns: from cell %u to %u", ns, last, index);
		last = index;
	}
	cr_expect_eq(last, HIST_BUCKETS - 1);
}

Test(histogram, millions_of_values_lie_in_their_exact_cell)
{
	struct exact exact = exact_bounds();
	uint64_t state = 0x9e3779b97f4a7c15;

	for (int i = 0; i < RANDOM_VALUES; i++) {
		/* Every order of magnitude as often as any other. */
		uint64_t ns = random_next(&state) >> (random_next(&state) & 63);

		/* Two of three where the buckets are: 2^9 to 2^37 ns. */
		if (i % 3)
			ns = random_next(&state) >> (27 + (random_next(&state) >> 32) % 29);
		if (!exact_is_cell(&exact, ns, hist_index(ns)))
			cr_assert_fail("%lu ns is not in cell %u", ns, hist_index(ns));
	}
}
