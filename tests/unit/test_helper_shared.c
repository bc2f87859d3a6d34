/* SPDX-License-Identifier: Apache-2.0 */
/* What a helper shares with the exporter: memory, and descriptors that go with messages. */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "helpers/helper.h"
#include "helping.h"
#include "passed.h"

#define SECOND 1000000000ULL
#define SHARED_BYTES (80U << 20)
#define ROUNDS 1000

enum what { WRITE, READ, HANG, PASS, REFUSE, LOOK, END };

struct question {
	uint64_t what, place, value;
};

static int question_answer(struct helper_work *work, void *asked, void *answer)
{
	const struct question *question = asked;
	uint64_t *shared = work->shared, *told = answer;
	unsigned char there;

	switch (question->what) {
	case WRITE:
		shared[question->place] = question->value;
		return 0;
	case READ:
		*told = shared[question->place];
		return 0;
	case HANG:
		shared[question->place] = question->value;
		for (;;)
			pause();
	case PASS: /* also what was asked with goes back */
		*told = passed_inode(work->fd);
		work->answer_fd = dup(work->fd);
		return 0;
	case REFUSE:
		work->answer_fd = dup(work->fd);
		return -ENOENT;
	case LOOK: /* is memory of this address there? */
		*told = mincore((void *)question->value, 1, &there) ? (uint64_t)errno : 0;
		return 0;
	default:
		_exit(1);
	}
}

static bool any(void *answer)
{
	(void)answer;
	return true;
}

#define KIND(passes)                                                                         \
	{                                                                                    \
		.name = "made-up", .worker = "made-up-worker",                               \
		.question_bytes = sizeof(struct question), .answer_bytes = sizeof(uint64_t), \
		.shared_bytes = SHARED_BYTES, .takes_fd = passes, .gives_fd = passes,        \
		.answer = question_answer, .check = any,                                     \
	}

static const struct helper_kind sharing = KIND(false), passing = KIND(true);

static int take(struct helper *helper, uint64_t *answer, int *fd)
{
	struct pollfd readable = { .fd = helper_fd(helper), .events = POLLIN };

	cr_assert_eq(poll(&readable, 1, 10000), 1);
	return helper_take_with(helper, clock_monotonic_ns(), answer, fd);
}

static uint64_t told(struct helper *helper, enum what what, uint64_t place, uint64_t value)
{
	const struct question question = { what, place, value };
	uint64_t answer = 0;
	int fd;

	cr_assert_eq(helper_ask(helper, &question, UINT64_MAX), 0);
	cr_assert_eq(take(helper, &answer, &fd), 0);
	return answer;
}

/* Asks what is not answered, and waits until another worker is ready. */
static void replace(struct helper *helper, enum what what, uint64_t place, uint64_t value)
{
	const struct question question = { what, place, value };
	volatile uint64_t *shared = helper_shared(helper);
	uint64_t answer;
	int fd;

	cr_assert_eq(helper_ask(helper, &question, 0), 0);
	while (what == HANG && shared[place] != value)
		poll(NULL, 0, 1);
	cr_assert_eq(what == HANG ? helper_take(helper, 1, &answer) : take(helper, &answer, &fd),
		     -ETIMEDOUT);
	if (what == HANG)
		cr_assert_eq(take(helper, &answer, &fd), -EAGAIN);
	cr_assert(helper_is_ready(helper));
}

#define LAST (SHARED_BYTES / sizeof(uint64_t) - 1)

Test(helper_shared, both_see_what_the_other_has_written)
{
	_cleanup_(helper_stopp) struct helper *helper = helping_start(&sharing, NULL);
	volatile uint64_t *shared = helper_shared(helper);

	cr_assert_not_null(helper_shared(helper));
	cr_expect_eq(shared[LAST], 0);
	told(helper, WRITE, LAST, 5);
	cr_expect_eq(shared[LAST], 5);
	shared[3] = 8;
	cr_expect_eq(told(helper, READ, 3, 0), 8);
}

Test(helper_shared, both_still_do_after_a_worker_was_replaced)
{
	static const enum what ways[] = { HANG, END };

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		_cleanup_(helper_stopp) struct helper *helper = helping_start(&sharing, NULL);
		volatile uint64_t *shared = helper_shared(helper);

		told(helper, WRITE, 1, 5);
		replace(helper, ways[i], 2, 6);
		cr_expect_eq(told(helper, READ, 1, 0), 5);
		told(helper, WRITE, LAST, 7);
		cr_expect_eq(shared[LAST], 7);
		shared[1] = 9;
		cr_expect_eq(told(helper, READ, 1, 0), 9);
	}
}

Test(helper_shared, its_pages_can_be_given_back)
{
	_cleanup_(helper_stopp) struct helper *helper = helping_start(&sharing, NULL);
	volatile uint64_t *shared = helper_shared(helper);

	told(helper, WRITE, 1, 5);
	shared[LAST] = 6;
	cr_expect_eq(helper_shared_clear(helper), 0);
	cr_expect_eq(shared[1], 0);
	cr_expect_eq(told(helper, READ, LAST, 0), 0);
	told(helper, WRITE, 1, 5);
	cr_expect_eq(shared[1], 5);
}

/* Else it could write what the other answers. */
Test(helper_shared, another_helper_has_none_of_it)
{
	_cleanup_(helper_stopp) struct helper *helper = helping_start(&sharing, NULL);
	_cleanup_(helper_stopp) struct helper *other = helping_start(&sharing, NULL);
	uint64_t own = (uintptr_t)helper_shared(helper), others = (uintptr_t)helper_shared(other);

	cr_expect_eq(told(helper, LOOK, 0, own), 0);
	cr_expect_eq(told(other, LOOK, 0, others), 0);
	cr_expect_eq(told(other, LOOK, 0, own), ENOMEM);
}

Test(helper_shared, a_kind_without_has_none)
{
	struct helper_kind kind = sharing;

	kind.shared_bytes = 0;
	{
		_cleanup_(helper_stopp) struct helper *helper = helping_start(&kind, NULL);

		cr_expect_null(helper_shared(helper));
		cr_expect_eq(helper_shared_clear(helper), 0);
	}
}

static int pass(struct helper *helper, enum what what, int file, int *fd)
{
	const struct question question = { .what = what };
	uint64_t answer = 0;
	int r;

	cr_assert_eq(helper_ask_with(helper, &question, file, UINT64_MAX), 0);
	r = take(helper, &answer, fd);
	if (!r)
		cr_assert_eq(answer, passed_inode(file), "the helper has the file");
	return r;
}

/* The helper has room for far less than it is asked in all: it closes what it is given, too. */
Test(helper_shared, descriptors_go_to_a_helper_and_come_back)
{
	_cleanup_(cleanup_close) int file = passed_file();
	_cleanup_(helper_stopp) struct helper *helper = helping_start(&passing, NULL);
	size_t before = passed_open();
	int fd;

	for (int i = 0; i < ROUNDS; i++) {
		cr_assert_eq(pass(helper, PASS, file, &fd), 0);
		cr_assert_eq(passed_inode(fd), passed_inode(file));
		close(fd);
		cr_assert_eq(pass(helper, REFUSE, file, &fd), -ENOENT);
		cr_assert_eq(fd, -1);
	}
	cr_expect_eq(passed_open(), before);
}

Test(helper_shared, an_answer_that_is_taken_without_its_descriptor_leaves_none)
{
	_cleanup_(cleanup_close) int file = passed_file();
	_cleanup_(helper_stopp) struct helper *helper = helping_start(&passing, NULL);
	const struct question question = { .what = PASS };
	struct pollfd readable = { .fd = helper_fd(helper), .events = POLLIN };
	size_t before = passed_open();
	uint64_t answer;

	cr_assert_eq(helper_ask_with(helper, &question, file, UINT64_MAX), 0);
	cr_assert_eq(poll(&readable, 1, 10000), 1);
	cr_expect_eq(helper_take(helper, clock_monotonic_ns(), &answer), 0);
	cr_expect_eq(passed_open(), before);
}
