/* SPDX-License-Identifier: Apache-2.0 */
#include "web/checker.h"

#include <crypt.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#define NICENESS 10

static int question_answer(struct helper_work *work, void *question, void *answer)
{
	*(uint8_t *)answer = comparison_answer(question, work->scratch);
	return 0;
}

static bool answer_check(void *answer)
{
	return *(const uint8_t *)answer <= 1;
}

const struct helper_kind checker_kind = {
	.name = "check-password",
	.strict = true,
	.niceness = NICENESS,
	.question_bytes = sizeof(struct comparison),
	.answer_bytes = sizeof(uint8_t),
	.scratch_bytes = sizeof(struct crypt_data),
	.answer = question_answer,
	.check = answer_check,
};

int checker_start(const struct user *user, struct helper **checker)
{
	const struct helper_options options = { .kind = &checker_kind, .user = user };

	return helper_start(&options, checker);
}

int checker_ask(struct helper *checker, const char *hash, const char *password)
{
	struct comparison comparison;
	int r;

	comparison_fill(&comparison, hash, password);
	r = helper_ask(checker, &comparison, UINT64_MAX);
	explicit_bzero(&comparison, sizeof(comparison));
	return r;
}

int checker_take(struct helper *checker, bool *right)
{
	uint8_t answer;
	int r = helper_take(checker, 0, &answer);

	if (r == -EAGAIN)
		return 0;
	if (r)
		return -EPIPE;
	*right = answer;
	return 1;
}
