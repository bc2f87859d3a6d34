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

/* Asks with the passwords "FIRST 0", "FIRST 1", ...; how many wait. */
static int flood(struct passwords *passwords, const char *first, int count,
		 const struct http_origin *origin)
{
	char password[32];
	int pending = 0;

	for (int i = 0; i < count; i++) {
		snprintf(password, sizeof(password), "%s %d", first, i);
		pending += check(passwords, "anna", password, origin) == PASSWORD_PENDING;
	}
	return pending;
}

Test(passwords, the_last_of_who_has_most_waiting_gives_way)
{
	PASSWORDS(passwords);

	cr_expect_eq(flood(&passwords, "wrong", 2 * PASSWORDS_QUEUE, &here), PASSWORDS_QUEUE);
	cr_expect_eq(check(&passwords, "anna", "one more", &here), PASSWORD_BUSY);
	cr_expect_eq(check(&passwords, "anna", "wrong 0", &here), PASSWORD_PENDING);
	cr_expect_eq(flood(&passwords, "there", PASSWORDS_QUEUE, &there), PASSWORDS_QUEUE / 2);
	cr_expect_eq(check(&passwords, "anna", "secret", &there), PASSWORD_BUSY);
	cr_expect_eq(flood(&passwords, "wrong", PASSWORDS_QUEUE, &here), PASSWORDS_QUEUE / 2,
		     "those that came first still wait");
	for (int i = 0; i < PASSWORDS_QUEUE; i++)
		wait_for_answer(&passwords);
	cr_expect_eq(check_to_end(&passwords, "anna", "secret"), PASSWORD_RIGHT);
	cr_expect_eq(passwords.shares.len, 0);
}

Test(passwords, who_has_asked_for_little_is_served_before_who_floods)
{
	struct http_origin origins[8];
	PASSWORDS(passwords);

	/* Several origins, each with several questions, some of which were compared already. */
	for (uint8_t i = 0; i < 8; i++) {
		origins[i] = (struct http_origin){ { 4, 10, 1, 0, i } };
		cr_expect_eq(flood(&passwords, (char[]){ (char)('a' + i), '\0' }, 4, &origins[i]),
			     4);
	}
	for (int i = 0; i < 12; i++)
		wait_for_answer(&passwords);
	cr_expect_eq(check(&passwords, "anna", "secret", &there), PASSWORD_PENDING);
	wait_for_answer(&passwords); /* the one that was being compared */
	wait_for_answer(&passwords);
	cr_expect_eq(check(&passwords, "anna", "secret", &there), PASSWORD_RIGHT);
	/* All of them have had their turn before any has had three. */
	for (int i = 0; i < 3; i++)
		wait_for_answer(&passwords);
	for (uint8_t i = 0; i < 8; i++)
		cr_expect_eq(flood(&passwords, (char[]){ (char)('a' + i), '\0' }, 2, &origins[i]),
			     0);
}

Test(passwords, among_many_addresses_who_has_not_had_a_turn_finds_room)
{
	struct http_origin origins[PASSWORDS_QUEUE + 1];
	PASSWORDS(passwords);

	for (uint8_t i = 0; i <= PASSWORDS_QUEUE; i++)
		origins[i] = (struct http_origin){ { 4, 10, 1, 0, i } };
	for (uint8_t i = 0; i < PASSWORDS_QUEUE; i++)
		cr_expect_eq(flood(&passwords, (char[]){ (char)('A' + i), '\0' }, 1, &origins[i]),
			     1);
	cr_expect_eq(check(&passwords, "anna", "late", &origins[PASSWORDS_QUEUE]), PASSWORD_BUSY,
		     "the others came before");
	for (int i = 0; i < 4; i++) {
		wait_for_answer(&passwords);
		cr_expect_eq(flood(&passwords, (char[]){ (char)('a' + i), '\0' }, 1, &origins[i]),
			     1, "who had its turn comes again");
	}
	cr_expect_eq(check(&passwords, "anna", "again", &origins[0]), PASSWORD_BUSY);
	cr_expect_eq(check(&passwords, "anna", "late", &origins[PASSWORDS_QUEUE]),
		     PASSWORD_PENDING);
	for (int i = 0; i < PASSWORDS_QUEUE - 3; i++)
		wait_for_answer(&passwords);
	cr_expect_eq(check(&passwords, "anna", "late", &origins[PASSWORDS_QUEUE]), PASSWORD_WRONG);
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
