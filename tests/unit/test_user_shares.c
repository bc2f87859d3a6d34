/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a table one user may take. */
#include <criterion/criterion.h>

#include "abi/shares.h"

#define MAX 64U

TestSuite(user_shares);

Test(user_shares, a_user_may_have_more_than_a_quarter_of_a_table_that_is_half_free)
{
	cr_expect_not(share_refused(1000, MAX / 2 - 1, MAX / 2 - 1, MAX));
	cr_expect(share_refused(1000, MAX / 2, MAX / 2, MAX));
}

Test(user_shares, of_a_table_that_is_half_full_a_user_gets_a_quarter)
{
	cr_expect_not(share_refused(1000, MAX / 4 - 1, MAX / 2, MAX));
	cr_expect(share_refused(1000, MAX / 4, MAX / 2, MAX));
}

Test(user_shares, the_last_eighth_is_of_root_alone)
{
	cr_expect_not(share_refused(1000, 0, MAX - MAX / 8 - 1, MAX));
	cr_expect(share_refused(1000, 0, MAX - MAX / 8, MAX));
	cr_expect_not(share_refused(0, MAX - 1, MAX - 1, MAX));
}
