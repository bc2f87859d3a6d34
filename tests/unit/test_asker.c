/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a helper's socket that asks, and what an intruder at the other end can tell it: the
 * helper is the namer.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "helpers/asker.h"
#include "registry/namer.h"

#define SECOND 1000000000ULL
#define ANSWER_BYTES (offsetof(struct helper_message, bytes) + sizeof(struct identity))
#define QUESTION_BYTES (offsetof(struct helper_message, bytes) + sizeof(struct namer_question))

static const struct namer_question question = { .pid = 1, .comm = "comm" };

struct scene {
	struct asker asker;
	int peer, control;
};

static void tell(const struct scene *scene, const void *bytes, size_t len)
{
	cr_assert_eq(send(scene->peer, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT), (ssize_t)len);
}

static void hello(const struct scene *scene)
{
	const struct helper_message answer = { .number = HELPER_HELLO };

	tell(scene, &answer, ANSWER_BYTES);
}

static struct scene scene_make(void)
{
	struct scene scene = { .peer = -1 };
	int questions[2], control[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, questions), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	scene = (struct scene){
		.asker = { .kind = &namer_kind, .questions = questions[0], .control = control[0] },
		.peer = questions[1],
		.control = control[1],
	};
	hello(&scene);
	cr_assert_eq(asker_begin(&scene.asker), 0);
	return scene;
}

static void scene_close(const struct scene *scene)
{
	cleanup_close(&scene->asker.questions);
	cleanup_close(&scene->asker.control);
	cleanup_close(&scene->peer);
	cleanup_close(&scene->control);
}

static struct identity *identity_in(struct helper_message *answer)
{
	return (struct identity *)answer->bytes;
}

static struct helper_message answer_make(const struct scene *scene)
{
	struct helper_message answer = { .number = scene->asker.asked };

	*identity_in(&answer) = (struct identity){
		.name = "nginx",
		.runtime = "native",
		.user = "33",
	};
	return answer;
}

static int take(struct scene *scene, struct identity *out)
{
	int fd;

	return asker_take(&scene->asker, 0, out, &fd);
}

/* What is told of a question that is answered like this. */
static int told_of(struct scene *scene, const struct helper_message *answer, struct identity *out)
{
	struct helper_message numbered = *answer;

	cr_assert_eq(asker_ask(&scene->asker, &question, -1, SECOND), 0);
	numbered.number = scene->asker.asked;
	tell(scene, &numbered, ANSWER_BYTES);
	return take(scene, out);
}

Test(asker, a_text_without_an_end_gets_one)
{
	_cleanup_(scene_close) struct scene scene = scene_make();
	struct helper_message answer = answer_make(&scene);
	struct identity identity;

	memset(answer.bytes, '7', sizeof(struct identity));
	cr_expect_eq(told_of(&scene, &answer, &identity), 0);
	cr_expect_eq(strlen(identity.name), sizeof(identity.name) - 1);
	cr_expect_eq(strlen(identity.exe), sizeof(identity.exe) - 1);
	cr_expect_eq(strlen(identity.runtime), sizeof(identity.runtime) - 1);
	cr_expect_eq(strlen(identity.unit), sizeof(identity.unit) - 1);
	cr_expect_eq(strlen(identity.container), sizeof(identity.container) - 1);
	cr_expect_eq(strlen(identity.user), sizeof(identity.user) - 1);
}

Test(asker, an_identity_without_what_everybody_has_is_none)
{
	_cleanup_(scene_close) struct scene scene = scene_make();
	struct helper_message whole = answer_make(&scene), answers[4];
	struct identity identity = { .name = "untouched" };

	for (int i = 0; i < 4; i++)
		answers[i] = whole;
	identity_in(&answers[0])->name[0] = '\0';
	identity_in(&answers[1])->runtime[0] = '\0';
	identity_in(&answers[2])->user[0] = '\0';
	identity_in(&answers[3])->user[1] = '"';
	for (int i = 0; i < 4; i++)
		cr_expect_eq(told_of(&scene, &answers[i], &identity), -EPROTO, "answer %d", i);
	cr_expect_str_eq(identity.name, "untouched");
	cr_expect_eq(told_of(&scene, &whole, &identity), 0);
}

/* -EAGAIN would leave the question neither answered nor open. */
Test(asker, an_answer_cannot_say_what_only_the_asker_says)
{
	static const int32_t results[] = { -EAGAIN, -EPIPE, -ETIMEDOUT, 1, INT32_MIN };
	_cleanup_(scene_close) struct scene scene = scene_make();
	struct helper_message answer = answer_make(&scene);
	struct identity identity;

	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		answer.result = results[i];
		cr_expect_eq(told_of(&scene, &answer, &identity), -EPROTO, "%d", results[i]);
		cr_expect_not(scene.asker.open);
		cr_expect_not(scene.asker.ended);
	}
	answer.result = -ESRCH;
	cr_expect_eq(told_of(&scene, &answer, &identity), -ESRCH);
}

Test(asker, who_floods_is_not_listened_to_without_end)
{
	_cleanup_(scene_close) struct scene scene = scene_make();
	const struct helper_message answer = { .number = HELPER_HELLO };
	struct pollfd more = { .fd = scene.asker.questions, .events = POLLIN };
	struct identity identity;
	int told = 0;

	while (send(scene.peer, &answer, ANSWER_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		told++;
	cr_assert_gt(told, ASKER_MESSAGES_MAX);
	cr_expect_eq(take(&scene, &identity), -EAGAIN);
	cr_expect_eq(poll(&more, 1, 0), 1, "the rest is left to the next call");
	for (int i = 0; i < told; i++)
		cr_expect_eq(take(&scene, &identity), -EAGAIN);
	cr_expect_eq(poll(&more, 1, 0), 0);
}

/* A flood is no reason to wait longer. */
Test(asker, a_question_is_late_also_under_a_flood)
{
	_cleanup_(scene_close) struct scene scene = scene_make();
	struct helper_message late = answer_make(&scene);
	struct identity identity;
	int fd;

	cr_assert_eq(asker_ask(&scene.asker, &question, -1, SECOND), 0);
	late.number = scene.asker.asked + 1;
	while (send(scene.peer, &late, ANSWER_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		;
	cr_expect_eq(asker_take(&scene.asker, SECOND - 1, &identity, &fd), -EAGAIN);
	cr_expect_eq(asker_take(&scene.asker, SECOND, &identity, &fd), -ETIMEDOUT);
}

Test(asker, a_message_of_another_size_is_the_end)
{
	static const size_t sizes[] = { 1, ANSWER_BYTES - 1, ANSWER_BYTES + 1 };
	char bytes[ANSWER_BYTES + 1] = "";
	struct identity identity;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		_cleanup_(scene_close) struct scene scene = scene_make();

		tell(&scene, bytes, sizes[i]);
		cr_expect_eq(take(&scene, &identity), -EPIPE);
		cr_expect(scene.asker.ended);
		cr_expect_eq(take(&scene, &identity), -EPIPE);
		cr_expect_eq(asker_ask(&scene.asker, &question, -1, SECOND), -EPIPE);
	}
}

Test(asker, it_begins_with_a_hello)
{
	static const struct {
		uint32_t number;
		int32_t result;
		int begun;
	} cases[] = { { HELPER_HELLO, 0, 0 },
		      { HELPER_HELLO, -EPERM, -EPERM },
		      { HELPER_HELLO, 1, -EPROTO },
		      { 1, 0, -EPROTO } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(scene_close) struct scene scene = scene_make();
		struct helper_message answer = answer_make(&scene);

		answer.number = cases[i].number;
		answer.result = cases[i].result;
		tell(&scene, &answer, ANSWER_BYTES);
		cr_expect_eq(asker_begin(&scene.asker), cases[i].begun, "case %zu", i);
		cr_expect_eq(scene.asker.ready, cases[i].begun == 0);
	}
}

Test(asker, what_answers_takes_nothing_but_questions)
{
	_cleanup_(scene_close) struct scene scene = scene_make();
	char bytes[QUESTION_BYTES + 1];
	struct helper_message received;
	int fd;

	memset(bytes, 'x', sizeof(bytes));
	for (size_t len = QUESTION_BYTES - 1; len <= QUESTION_BYTES + 1; len++) {
		cr_assert_eq(send(scene.asker.questions, bytes, len, 0), (ssize_t)len);
		cr_expect_eq(helper_question_receive(&namer_kind, scene.peer, &received, &fd),
			     len == QUESTION_BYTES ? 0 : -EPIPE);
	}
}

/* As long as any may be: no byte behind it is written. */
Test(asker, the_longest_question_fits)
{
	static const struct helper_kind longest = { .question_bytes = HELPER_BYTES_MAX };
	_cleanup_(scene_close) struct scene scene = scene_make();
	struct {
		struct helper_message message;
		char behind[8];
	} received = { .behind = "behind" };
	char bytes[sizeof(struct helper_message) + 1];
	int fd;

	memset(bytes, 'x', sizeof(bytes));
	cr_assert_eq(send(scene.asker.questions, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
	cr_expect_eq(helper_question_receive(&longest, scene.peer, &received.message, &fd), -EPIPE);
	cr_expect_str_eq(received.behind, "behind");
}

/* An intruder in the exporter asks: a text without an end gets one. */
Test(asker, the_reader_ends_what_it_is_asked)
{
	struct helper_work work = { .arg = "tests/unit/fixtures/proc" };
	struct namer_question hostile;
	struct identity identity = { 0 };

	memset(&hostile, 'x', sizeof(hostile));
	hostile.pid = 100;
	hostile.start_ns = 0;
	cr_expect_eq(namer_kind.answer(&work, &hostile, &identity), 0);
	cr_expect_eq(strlen(hostile.comm), sizeof(hostile.comm) - 1);
}

/* What is not replaced has nothing to say but answers: all else is its end. */
Test(asker, without_a_worker_what_was_not_asked_is_the_end)
{
	struct helper_kind single = namer_kind;
	struct identity identity;

	single.worker = NULL;
	for (uint32_t number = HELPER_HELLO; number < 3; number++) {
		_cleanup_(scene_close) struct scene scene = scene_make();
		struct helper_message answer = answer_make(&scene);

		scene.asker.kind = &single;
		answer.number = number;
		tell(&scene, &answer, ANSWER_BYTES);
		cr_expect_eq(take(&scene, &identity), -EPIPE, "message %u", number);
		cr_expect(scene.asker.ended);
	}
}
