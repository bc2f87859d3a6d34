/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "security/capabilities.h"

#define NOBODY 65534

static const struct user stay;
static const struct privileges all = {
	.known = true,
	.effective = CAPABILITY(CAP_SETUID) | CAPABILITY(CAP_SETGID),
};

Test(capabilities, helpers_become_who_was_asked_for)
{
	const struct user wanted = { .become = true, .name = "daemon", .uid = 1, .gid = 1 };
	const struct privileges none = { .known = true };
	struct user user;

	cr_expect_eq(user_of_helpers(&none, &wanted, &user), 0);
	cr_expect(user.become);
	cr_expect_eq(user.uid, 1);
	cr_expect_str_eq(user.name, "daemon");
}

Test(capabilities, helpers_of_root_become_nobody_without_groups)
{
	struct user user;

	if (getuid())
		cr_skip_test("who is not root stays who he is");
	cr_expect_eq(user_of_helpers(&all, &stay, &user), 0);
	cr_expect(user.become);
	cr_expect_eq(user.uid, NOBODY);
	cr_expect_eq(user.gid, NOBODY);
	cr_expect_str_eq(user.name, "");
}

/* In a user namespace there may be no such id, and nothing can be measured anyway. */
Test(capabilities, helpers_of_root_stay_root_where_they_cannot_change)
{
	struct privileges lacks[] = { all, all, all, all };

	if (getuid())
		cr_skip_test("who is not root stays who he is");
	lacks[0].effective &= ~CAPABILITY(CAP_SETUID);
	lacks[1].effective &= ~CAPABILITY(CAP_SETGID);
	lacks[2].user_namespace = true;
	lacks[3].known = false;
	for (size_t i = 0; i < sizeof(lacks) / sizeof(*lacks); i++) {
		struct user user = { .become = true };

		cr_expect_eq(user_of_helpers(&lacks[i], &stay, &user), -EPERM, "%zu", i);
		cr_expect_not(user.become);
	}
}
