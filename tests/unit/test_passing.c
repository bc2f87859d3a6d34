/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that go with questions and answers, and those that an intruder sends besides. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "helpers/asker.h"
#include "passed.h"

#define SECOND 1000000000ULL
#define BYTES (offsetof(struct helper_message, bytes) + sizeof(uint64_t))
#define ROUNDS 1000

static bool is_less_than_nine(void *answer)
{
	return *(const uint64_t *)answer < 9;
}

#define KIND(takes, gives)                                                              \
	{                                                                               \
		.worker = "made-up", .question_bytes = sizeof(uint64_t),                \
		.answer_bytes = sizeof(uint64_t), .takes_fd = takes, .gives_fd = gives, \
		.check = is_less_than_nine,                                             \
	}

static const struct helper_kind both = KIND(true, true), takes = KIND(true, false),
				gives = KIND(false, true), neither = KIND(false, false);

struct scene {
	struct asker asker;
	int peer, control;
	int file; /* that is passed */
	size_t open; /* descriptors at the start */
};

static struct scene scene_make(const struct helper_kind *kind)
{
	struct scene scene = { .asker.kind = kind, .asker.ready = true };
	int questions[2], control[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, questions), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	scene.asker.questions = questions[0];
	scene.asker.control = control[0];
	scene.peer = questions[1];
	scene.control = control[1];
	scene.file = passed_file();
	scene.open = passed_open();
	return scene;
}

/* Also checks that nothing was left open. */
static void scene_close(const struct scene *scene)
{
	cr_expect_eq(passed_open(), scene->open);
	close(scene->asker.questions);
	close(scene->asker.control);
	close(scene->peer);
	close(scene->control);
	close(scene->file);
}

static void ask(struct scene *scene)
{
	const uint64_t question = 7;
	int fd = scene->asker.kind->takes_fd ? scene->file : -1;

	cr_assert_eq(asker_ask(&scene->asker, &question, fd, SECOND), 0);
}

static struct helper_message answer_to(const struct scene *scene)
{
	return (struct helper_message){ .number = scene->asker.asked };
}

/* What is told of @answer with so many descriptors; none comes of it. */
static int told_of(struct scene *scene, const struct helper_message *answer, size_t copies)
{
	uint64_t out;
	int fd, r;

	passed_send(scene->peer, answer, BYTES, scene->file, copies);
	r = asker_take(&scene->asker, 0, &out, &fd);
	cr_expect_eq(fd, -1);
	cr_expect_eq(passed_open(), scene->open);
	return r;
}

static void round_trip(struct scene *scene)
{
	struct helper_message question, answer;
	int asked = -1, answered = -1;
	uint64_t out;

	ask(scene);
	cr_assert_eq(helper_question_receive(&both, scene->peer, &question, &asked), 0);
	cr_assert_eq(passed_inode(asked), passed_inode(scene->file));
	cr_assert(fcntl(asked, F_GETFD) & FD_CLOEXEC);
	answer = (struct helper_message){ .number = question.number };
	cr_assert_eq(helper_answer_send(&both, scene->peer, &answer, asked), 0);
	close(asked);
	cr_assert_eq(asker_take(&scene->asker, 0, &out, &answered), 0);
	cr_assert_eq(passed_inode(answered), passed_inode(scene->file));
	cr_assert(fcntl(answered, F_GETFD) & FD_CLOEXEC);
	close(answered);
}

Test(passing, descriptors_go_both_ways_and_none_is_left)
{
	_cleanup_(scene_close) struct scene scene = scene_make(&both);

	for (int i = 0; i < ROUNDS; i++)
		round_trip(&scene);
}

Test(passing, an_answer_may_come_without_one)
{
	_cleanup_(scene_close) struct scene scene = scene_make(&both);
	struct helper_message answer;

	ask(&scene);
	answer = answer_to(&scene);
	cr_expect_eq(told_of(&scene, &answer, 0), 0);
}

Test(passing, a_question_has_one_where_one_is_taken_and_else_none)
{
	static const struct helper_kind *const kinds[] = { &both, &takes, &gives, &neither };
	const uint64_t question = 7;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		_cleanup_(scene_close) struct scene scene = scene_make(kinds[i]);
		int wrong = kinds[i]->takes_fd ? -1 : scene.file;

		cr_expect_eq(asker_ask(&scene.asker, &question, wrong, SECOND), -EINVAL);
		cr_expect_not(scene.asker.open);
	}
}

/* An intruder in the exporter asks. */
Test(passing, what_answers_takes_no_more_and_no_less_than_is_due)
{
	static const struct {
		const struct helper_kind *kind;
		size_t copies;
		int received;
	} cases[] = {
		{ &both, 0, -EPIPE },  { &both, 1, 0 },       { &both, 2, -EPIPE },
		{ &both, 3, -EPIPE },  { &both, 8, -EPIPE },  { &gives, 0, 0 },
		{ &gives, 1, -EPIPE }, { &gives, 2, -EPIPE }, { &takes, 1, 0 },
		{ &takes, 2, -EPIPE }, { &neither, 1, 0 }, /* the kernel closes it */
	};
	const struct helper_message asked = { .number = 1 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(scene_close) struct scene scene = scene_make(cases[i].kind);
		struct helper_message question;
		int fd;

		passed_send(scene.peer, &asked, BYTES, scene.file, cases[i].copies);
		cr_expect_eq(helper_question_receive(cases[i].kind, scene.asker.questions,
						     &question, &fd),
			     cases[i].received, "case %zu", i);
		cr_expect_eq(fd >= 0, !cases[i].received && cases[i].kind->takes_fd);
		cleanup_close(&fd);
	}
}

Test(passing, a_question_of_another_size_leaves_nothing_open)
{
	_cleanup_(scene_close) struct scene scene = scene_make(&takes);
	struct helper_message asked = { .number = 1 }, question;
	int fd;

	for (size_t len = BYTES - 1; len <= BYTES + 1; len += 2) {
		passed_send(scene.peer, &asked, len, scene.file, 1);
		cr_expect_eq(helper_question_receive(&takes, scene.asker.questions, &question, &fd),
			     -EPIPE);
		cr_expect_eq(fd, -1);
	}
}

Test(passing, several_descriptors_make_an_answer_none_and_are_closed)
{
	_cleanup_(scene_close) struct scene scene = scene_make(&both);

	for (size_t copies = 2; copies <= PASSED_MAX; copies++) {
		struct helper_message answer;

		ask(&scene);
		answer = answer_to(&scene);
		cr_expect_eq(told_of(&scene, &answer, copies), -EPROTO, "%zu", copies);
		cr_expect_not(scene.asker.open);
		cr_expect_not(scene.asker.ended);
	}
}

Test(passing, a_descriptor_where_none_is_due_makes_an_answer_none)
{
	_cleanup_(scene_close) struct scene scene = scene_make(&takes);
	struct helper_message answer;

	ask(&scene);
	answer = answer_to(&scene);
	cr_expect_eq(told_of(&scene, &answer, 1), -EPROTO);
}

/* It can do without recvmsg(2), and so does not learn of it. */
Test(passing, what_comes_where_no_descriptor_is_ever_taken_is_closed)
{
	_cleanup_(scene_close) struct scene scene = scene_make(&neither);

	for (int i = 0; i < ROUNDS; i++) {
		struct helper_message question, answer;
		int fd;

		ask(&scene);
		cr_assert_eq(helper_question_receive(&neither, scene.peer, &question, &fd), 0);
		answer = answer_to(&scene);
		cr_assert_eq(told_of(&scene, &answer, 2), 0);
	}
}

Test(passing, what_comes_with_no_answer_is_closed)
{
	_cleanup_(scene_close) struct scene scene = scene_make(&both);
	struct helper_message refused, unchecked, other, hello = { .number = HELPER_HELLO };

	ask(&scene);
	refused = answer_to(&scene);
	refused.result = -ENOENT;
	cr_expect_eq(told_of(&scene, &refused, 1), -EPROTO, "with an error");
	ask(&scene);
	unchecked = answer_to(&scene);
	*(uint64_t *)unchecked.bytes = 9;
	cr_expect_eq(told_of(&scene, &unchecked, 1), -EPROTO, "fails its check");
	ask(&scene);
	other = answer_to(&scene);
	other.number++;
	cr_expect_eq(told_of(&scene, &other, 1), -EAGAIN, "of another number");
	other.number -= 2;
	cr_expect_eq(told_of(&scene, &other, 1), -EAGAIN, "late");
	cr_expect_eq(told_of(&scene, &hello, 1), -ETIMEDOUT, "a hello");
	cr_expect_not(scene.asker.ready);
}

Test(passing, what_comes_with_the_end_is_closed)
{
	for (size_t len = BYTES - 1; len <= BYTES + 1; len += 2) {
		_cleanup_(scene_close) struct scene scene = scene_make(&both);
		struct helper_message answer = { 0 };
		uint64_t out;
		int fd;

		ask(&scene);
		answer.number = scene.asker.asked;
		passed_send(scene.peer, &answer, len, scene.file, 1);
		cr_expect_eq(asker_take(&scene.asker, 0, &out, &fd), -EPIPE);
		cr_expect_eq(fd, -1);
	}
}

Test(passing, a_hello_brings_nothing)
{
	_cleanup_(scene_close) struct scene scene = scene_make(&both);
	const struct helper_message hello = { .number = HELPER_HELLO };

	passed_send(scene.peer, &hello, BYTES, scene.file, 1);
	cr_expect_eq(asker_begin(&scene.asker), -EPROTO);
}
