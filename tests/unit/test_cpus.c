/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>

#include "base/cpus.h"

Test(cpus, are_as_many_as_the_highest_number_says)
{
	cr_expect_eq(cpus_numbered("0\n"), 1);
	cr_expect_eq(cpus_numbered("0-1\n"), 2);
	cr_expect_eq(cpus_numbered("0-127"), 128);
}

Test(cpus, whose_numbers_have_gaps_need_room_for_the_gaps)
{
	cr_expect_eq(cpus_numbered("0-3,8-11\n"), 12);
	cr_expect_eq(cpus_numbered("0,2,4,6\n"), 7);
	cr_expect_eq(cpus_numbered("8-11,0-3\n"), 12);
}

Test(cpus, of_a_list_that_is_none_are_not_invented)
{
	static const char *const wrong[] = { "",     "\n",   "-",       "0-",
					     "0,\n", ",0\n", "0 1",     "zero",
					     "-1\n", "0-1x", " 0\n",    "0--1",
					     "0-1,", "+1",   "65536\n", "0-99999999999999999999" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		cr_expect_eq(cpus_numbered(wrong[i]), -EINVAL, "%s", wrong[i]);
}
