/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of made-up kinds: what cannot be one, what is told, and what is left of it. */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "features/features.h"
#include "helpers/helper.h"
#include "helping.h"
#include "made_up.h"
#include "plain_kernel.h"

static const struct user nobody_else;

/* Answers what it has been asked before, and keeps what it is asked now. */
static int echo(struct helper_work *work, void *question, void *answer)
{
	int result = *(const int *)work->arg;

	memcpy(answer, work->scratch, sizeof(uint64_t));
	memcpy(work->scratch, question, sizeof(uint64_t));
	return result;
}

static bool is_less_than_nine(void *answer)
{
	return *(const uint64_t *)answer < 9;
}

static const struct helper_kind echoes = {
	.name = "made-up",
	.strict = true,
	.question_bytes = sizeof(uint64_t),
	.answer_bytes = sizeof(uint64_t),
	.scratch_bytes = sizeof(uint64_t),
	.answer = echo,
	.check = is_less_than_nine,
};

static int ask(struct helper *helper, uint64_t question, uint64_t *answer)
{
	struct pollfd readable = { .fd = helper_fd(helper), .events = POLLIN };

	cr_assert_eq(helper_ask(helper, &question, UINT64_MAX), 0);
	cr_assert_eq(poll(&readable, 1, 10000), 1);
	return helper_take(helper, clock_monotonic_ns(), answer);
}

Test(helper, it_answers_from_memory_of_its_own)
{
	static const int right = 0;
	_cleanup_(helper_stopp) struct helper *helper = helping_start(&echoes, &right);
	uint64_t answer = 77;

	cr_expect(helper_is_ready(helper));
	cr_expect_eq(helper_take(helper, 0, &answer), -EAGAIN);
	cr_expect_eq(ask(helper, 3, &answer), 0);
	cr_expect_eq(answer, 0, "its memory begins as zeros");
	cr_expect_eq(ask(helper, 12, &answer), 0);
	cr_expect_eq(answer, 3);
	cr_expect_eq(ask(helper, 1, &answer), -EPROTO, "12 can be no answer");
	cr_expect_eq(answer, 3, "and is not told");
	cr_expect(helper_alive(helper));
}

Test(helper, it_tells_why_there_is_no_answer)
{
	static const int wrong = -ENOENT;
	_cleanup_(helper_stopp) struct helper *helper = helping_start(&echoes, &wrong);
	uint64_t answer = 77;

	cr_expect_eq(ask(helper, 3, &answer), -ENOENT);
	cr_expect_eq(answer, 77);
}

/* To become a user takes what this one does not have. */
Test(helper, one_that_cannot_give_up_what_it_has_does_not_start)
{
	const struct user other = { .become = true, .uid = 1, .gid = 1 };
	const struct helper_options options = { .kind = &echoes, .user = &other };
	struct helper *helper = NULL;

	cr_assert_eq(setresuid(65534, 65534, 65534), 0);
	cr_expect_eq(helper_start(&options, &helper), -EPERM);
	cr_expect_null(helper);
}

Test(helper, what_cannot_be_a_kind_is_refused)
{
	struct helper_kind kinds[] = { echoes, echoes, echoes, echoes, echoes, echoes };
	struct helper *helper = NULL;

	kinds[0].question_bytes = HELPER_BYTES_MAX + 1;
	kinds[1].answer_bytes = HELPER_BYTES_MAX + 1;
	kinds[2].worker = "made-up-child";
	kinds[3].takes_fd = true;
	kinds[4].gives_fd = true;
	kinds[5].shared_bytes = HELPER_SHARED_MAX + 1;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const struct helper_options options = { .kind = &kinds[i], .user = &nobody_else };

		cr_expect_eq(helper_start(&options, &helper), -EINVAL, "kind %zu", i);
	}
}

/* --- of features ---------------------------------------------------------------------------- */

static void expect_answers(struct helper *helper, bool helps, char right)
{
	char question = 'q', answer = 0;
	struct pollfd readable = { .events = POLLIN };

	cr_assert_eq(helper != NULL, helps);
	if (!helps)
		return;
	readable.fd = helper_fd(helper);
	cr_expect_eq(helper_ask(helper, &question, UINT64_MAX), 0);
	cr_expect_eq(poll(&readable, 1, 10000), 1);
	cr_expect_eq(helper_take(helper, 0, &answer), 0);
	cr_expect_eq(answer, right);
}

static void expect_helps(unsigned int wanted, bool helps)
{
	const struct helper_options options = { .user = &nobody_else, .sandbox = SANDBOX_OFF };
	void *settings[LOADER_FEATURES_MAX] = { NULL };
	struct kernel kernel = { .loader = plain_loader_new(wanted, NULL, NULL) };
	const struct feature_env env = { .kernel = &kernel };
	struct features features = { 0 };
	struct features_failure failure;

	cr_assert_eq(features_help(&features, wanted, &options, settings, &failure), 0);
	cr_assert_eq(features_open(&features, &env, settings), 0);
	for (size_t i = 0; i < FEATURE_HELPERS_MAX; i++)
		expect_answers(made_up_helpers[i], helps, (char)('q' + i));
	features_close(&features);
	plain_loader_free(kernel.loader);
}

Test(helper, a_feature_that_is_wanted_has_its_process)
{
	unsigned int made_up = 1U << (unsigned int)features_find("made_up");

	expect_helps(made_up, true);
	expect_helps(0, false);
}
