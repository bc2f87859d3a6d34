/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the process that compares passwords, from a side that is not what it was. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "web/checker.h"
#include "web/comparison.h"

/* Of "secret": at the lowest cost, and by a method that is not bcrypt, as long as one of bcrypt. */
#define SECRET "$2y$04$sHi80TSybythvzXiyEQIsuxv6.Hee4VMeRBau7TOOEH1fcSUTKHdK"
#define SALT "$5$thirteenchars$"

static uint8_t answer(const char *hash, const char *password)
{
	_cleanup_(cleanup_free) struct crypt_data *data = calloc(1, sizeof(*data));
	struct comparison comparison;

	cr_assert_not_null(data);
	comparison_fill(&comparison, hash, password);
	return comparison_answer(&comparison, data);
}

Test(comparison, the_right_password_is_right)
{
	cr_expect_eq(answer(SECRET, "secret"), 1);
	cr_expect_eq(answer(SECRET, "Secret"), 0);
	cr_expect_eq(answer(SECRET, ""), 0);
}

Test(comparison, nothing_but_bcrypt_is_computed)
{
	_cleanup_(cleanup_free) struct crypt_data *data = calloc(1, sizeof(*data));
	const char *hash;

	cr_assert_not_null(data);
	hash = crypt_r("secret", SALT, data);
	cr_assert_not_null(hash);
	cr_assert_eq(strlen(hash), COMPARISON_HASH_BYTES - 1);
	cr_expect_eq(answer(hash, "secret"), 0);
	cr_expect_eq(answer("", ""), 0);
	cr_expect_eq(answer("*0", ""), 0);
}

Test(comparison, texts_without_an_end_get_one)
{
	_cleanup_(cleanup_free) struct crypt_data *data = calloc(1, sizeof(*data));
	struct comparison comparison;

	cr_assert_not_null(data);
	memset(&comparison, 'x', sizeof(comparison));
	memcpy(comparison.hash, SECRET, COMPARISON_HASH_BYTES - 1);
	cr_expect_eq(comparison_answer(&comparison, data), 0);
	cr_expect_eq(strlen(comparison.hash), COMPARISON_HASH_BYTES - 1);
	cr_expect_eq(strlen(comparison.password), CHECKER_PASSWORD_BYTES);
}

Test(comparison, an_answer_is_yes_or_no)
{
	static const uint8_t answers[] = { 0, 1, 2, 255 };

	for (size_t i = 0; i < sizeof(answers); i++) {
		uint8_t answer = answers[i];

		cr_expect_eq(checker_kind.check(&answer), answers[i] <= 1);
		cr_expect_eq(answer, answers[i]);
	}
}
