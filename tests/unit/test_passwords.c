/* SPDX-License-Identifier: Apache-2.0 */
/* With the real process that compares. */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "web/passwords.h"

#define PATIENCE_MS 20000
/* Of "secret", at the lowest cost. */
#define SECRET "$2y$04$sHi80TSybythvzXiyEQIsuxv6.Hee4VMeRBau7TOOEH1fcSUTKHdK"

static const struct http_origin here = { { 4, 127, 0, 0, 1 } }, there = { { 4, 10, 0, 0, 1 } };
static struct web_user users[] = { { (char[]){ "anna" }, (char[]){ SECRET } } };

static enum password_verdict check(struct passwords *passwords, const char *name,
				   const char *password, const struct http_origin *origin)
{
	struct credentials given = { 0 };

	snprintf(given.name, sizeof(given.name), "%s", name);
	snprintf(given.password, sizeof(given.password), "%s", password);
	return passwords_check(passwords, users, 1, &given, origin);
}

static void wait_for_answer(struct passwords *passwords)
{
	struct pollfd fd = { .fd = helper_fd(passwords->checker), .events = POLLIN };

	cr_assert_eq(poll(&fd, 1, PATIENCE_MS), 1);
	passwords_run(passwords);
}

static enum password_verdict check_to_end(struct passwords *passwords, const char *name,
					  const char *password)
{
	enum password_verdict verdict;

	while ((verdict = check(passwords, name, password, &here)) == PASSWORD_PENDING)
		wait_for_answer(passwords);
	return verdict;
}

#define PASSWORDS(name)                                                              \
	__attribute__((cleanup(helper_stopp))) struct helper *name##_checker = NULL; \
	struct passwords name;                                                       \
	cr_assert_eq(checker_start(&(const struct user){ 0 }, &name##_checker), 0);  \
	cr_assert_eq(passwords_init(&name, name##_checker), 0)

Test(passwords, the_right_one_is_right_and_then_known)
{
	PASSWORDS(passwords);

	cr_expect_eq(check(&passwords, "anna", "secret", &here), PASSWORD_PENDING);
	wait_for_answer(&passwords);
	cr_expect_eq(check(&passwords, "anna", "secret", &here), PASSWORD_RIGHT);
	cr_expect_eq(check(&passwords, "anna", "secret", &there), PASSWORD_RIGHT);
}

Test(passwords, others_are_wrong_and_then_known_as_wrong)
{
	static const char *const wrongs[] = { "", "Secret", "secret ", "secre" };
	PASSWORDS(passwords);

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
		cr_expect_eq(check_to_end(&passwords, "anna", wrongs[i]), PASSWORD_WRONG);
		cr_expect_eq(check(&passwords, "anna", wrongs[i], &here), PASSWORD_WRONG);
	}
	cr_expect_eq(check_to_end(&passwords, "anna", "secret"), PASSWORD_RIGHT);
}

Test(passwords, nobody_else_has_annas_password)
{
	PASSWORDS(passwords);

	cr_expect_eq(check_to_end(&passwords, "anna", "secret"), PASSWORD_RIGHT);
	cr_expect_eq(check_to_end(&passwords, "bert", "secret"), PASSWORD_WRONG);
	cr_expect_eq(check_to_end(&passwords, "", "secret"), PASSWORD_WRONG);
}

Test(passwords, a_new_hash_makes_the_old_password_wrong)
{
	/* Of something else, at the same cost. */
	char other[] = "$2y$04$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";
	struct web_user changed = { users[0].name, other };
	struct credentials given = { "anna", "secret" };
	enum password_verdict verdict;
	PASSWORDS(passwords);

	cr_expect_eq(check_to_end(&passwords, "anna", "secret"), PASSWORD_RIGHT);
	while ((verdict = passwords_check(&passwords, &changed, 1, &given, &here)) ==
	       PASSWORD_PENDING)
		wait_for_answer(&passwords);
	cr_expect_eq(verdict, PASSWORD_WRONG);
}

Test(passwords, an_origin_has_one_comparison_open)
{
	PASSWORDS(passwords);

	cr_expect_eq(check(&passwords, "anna", "wrong", &here), PASSWORD_PENDING);
	cr_expect_eq(check(&passwords, "anna", "wrong", &here), PASSWORD_PENDING, "the same one");
	cr_expect_eq(check(&passwords, "anna", "secret", &here), PASSWORD_BUSY);
	cr_expect_eq(check(&passwords, "bert", "wrong", &here), PASSWORD_BUSY);
	wait_for_answer(&passwords);
	cr_expect_eq(check_to_end(&passwords, "anna", "secret"), PASSWORD_RIGHT);
}

Test(passwords, one_that_floods_costs_others_one_comparison)
{
	PASSWORDS(passwords);

	cr_expect_eq(check(&passwords, "anna", "wrong", &here), PASSWORD_PENDING);
	cr_expect_eq(check(&passwords, "anna", "secret", &there), PASSWORD_PENDING);
	wait_for_answer(&passwords);
	cr_expect_eq(check(&passwords, "anna", "another", &here), PASSWORD_PENDING);
	wait_for_answer(&passwords);
	cr_expect_eq(check(&passwords, "anna", "secret", &there), PASSWORD_RIGHT);
	cr_expect_eq(check(&passwords, "anna", "secret", &here), PASSWORD_RIGHT, "it is known");
}

Test(passwords, a_right_one_waits_for_one_comparison_of_each_address)
{
	char password[] = "wrong A";
	PASSWORDS(passwords);

	for (uint8_t i = 0; i < PASSWORDS_QUEUE; i++) {
		const struct http_origin origin = { { 4, 10, 1, 0, i } };

		password[6] = (char)('A' + i);
		cr_expect_eq(check(&passwords, "anna", password, &origin), PASSWORD_PENDING);
	}
	cr_expect_eq(check(&passwords, "anna", "secret", &there), PASSWORD_BUSY, "64 wait");
	wait_for_answer(&passwords);
	cr_expect_eq(check(&passwords, "anna", "secret", &there), PASSWORD_PENDING);
	for (int i = 0; i < PASSWORDS_QUEUE; i++)
		wait_for_answer(&passwords);
	cr_expect_eq(check(&passwords, "anna", "secret", &there), PASSWORD_RIGHT);
}

Test(passwords, a_flood_of_wrong_ones_pushes_no_right_one_out)
{
	char password[32];
	PASSWORDS(passwords);

	cr_expect_eq(check_to_end(&passwords, "anna", "secret"), PASSWORD_RIGHT);
	for (int i = 0; i < PASSWORDS_WRONG + 10; i++) {
		snprintf(password, sizeof(password), "wrong %d", i);
		cr_expect_eq(check_to_end(&passwords, "anna", password), PASSWORD_WRONG);
	}
	cr_expect_eq(check(&passwords, "anna", "secret", &here), PASSWORD_RIGHT);
	cr_expect_eq(check(&passwords, "anna", "wrong 0", &here), PASSWORD_PENDING, "forgotten");
}

Test(passwords, the_header_is_read_strictly)
{
	static const struct {
		const char *header, *name, *password;
	} good[] = {
		{ "Basic YW5uYTpzZWNyZXQ=", "anna", "secret" },
		{ "basic   YW5uYTpzZWNyZXQ=", "anna", "secret" },
		{ "Basic YW5uYTo=", "anna", "" },
		{ "Basic OnNlY3JldA==", "", "secret" },
		{ "Basic YW5uYTphOmI=", "anna", "a:b" },
	};
	static const char *const bad[] = {
		"",
		"Basic",
		"Basic ",
		"Basic YW5uYQ==", /* no colon */
		"Basic YW5uYTpzZQBjcmV0", /* a NUL, behind which crypt(3) would not look */
		"Basic !!!!",
		"Bearer YW5uYTpzZWNyZXQ=",
		"BasicYW5uYTpzZWNyZXQ=",
	};
	struct credentials given;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		cr_expect_eq(credentials_parse(good[i].header, &given), 0, "%s", good[i].header);
		cr_expect_str_eq(given.name, good[i].name);
		cr_expect_str_eq(given.password, good[i].password);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_expect_eq(credentials_parse(bad[i], &given), -EINVAL, "%s", bad[i]);
}

Test(passwords, the_checker_takes_one_question_at_a_time)
{
	struct helper *none = NULL;
	struct passwords passwords;
	bool right = true;

	cr_assert_eq(checker_start(&(const struct user){ 0 }, &none), 0);
	cr_assert_eq(passwords_init(&passwords, none), 0);
	cr_expect_eq(checker_take(none, &right), 0, "there was no question");
	cr_expect_eq(checker_ask(none, SECRET, "x"), 0);
	cr_expect_eq(checker_ask(none, SECRET, "x"), -EBUSY, "one at a time");
	helper_stop(none);
}
