/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/extents.h"

Test(extents, are_taken_lowest_first_and_given_back)
{
	struct extents extents;
	uint32_t a, b, c;

	cr_assert_eq(extents_init(&extents, 1, 101), 0);
	cr_expect_eq(extents_take(&extents, 40, &a), 0);
	cr_expect_eq(extents_take(&extents, 60, &b), 0);
	cr_expect_eq(a, 1);
	cr_expect_eq(b, 41);
	cr_expect_eq(extents_take(&extents, 1, &c), -ENOSPC);
	extents_give(&extents, a, 40);
	cr_expect_eq(extents_take(&extents, 41, &c), -ENOSPC);
	cr_expect_eq(extents_take(&extents, 10, &c), 0);
	cr_expect_eq(c, 1);
	extents_give(&extents, b, 60);
	extents_give(&extents, c, 10);
	cr_expect_eq(extents_take(&extents, 100, &a), 0, "what lies together is one");
	extents_free(&extents);
}

Test(extents, of_no_length_take_nothing)
{
	struct extents extents;
	uint32_t at, all;

	cr_assert_eq(extents_init(&extents, 0, 10), 0);
	cr_expect_eq(extents_take(&extents, 0, &at), 0);
	extents_give(&extents, at, 0);
	cr_expect_eq(extents_take(&extents, 10, &all), 0);
	cr_expect_eq(extents_take(&extents, 0, &at), 0);
	extents_free(&extents);
}

/* Against a plain map of which element is whose. */
Test(extents, never_overlap_and_never_get_lost)
{
	enum { ELEMENTS = 500, PARTS = 60 };
	struct extent parts[PARTS] = { 0 };
	bool taken[ELEMENTS] = { false };
	struct extents extents;
	size_t in_use = 0;

	srand(1);
	cr_assert_eq(extents_init(&extents, 0, ELEMENTS), 0);
	for (int i = 0; i < 20000; i++) {
		struct extent *part = &parts[rand() % PARTS];

		if (part->len) {
			memset(taken + part->at, false, part->len);
			in_use -= part->len;
			cr_assert_eq(extents_give(&extents, part->at, part->len), 0);
			part->len = 0;
			continue;
		}
		part->len = 1 + (uint32_t)(rand() % 30);
		if (extents_take(&extents, part->len, &part->at)) {
			part->len = 0;
			continue;
		}
		cr_assert_leq(part->at + part->len, ELEMENTS);
		for (uint32_t k = part->at; k < part->at + part->len; k++) {
			cr_assert_not(taken[k]);
			taken[k] = true;
		}
		in_use += part->len;
	}
	for (size_t i = 0; i < extents.len; i++)
		in_use += extents.free[i].len;
	cr_expect_eq(in_use, ELEMENTS);
	extents_free(&extents);
}
