/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a helper, the namer, both ways: the input is what happens one after the other, a byte
 * that tells what and the bytes that it takes. The side that answers can give wrong names and no
 * answer: there is one for each question at most, its texts have their ends, and no other error is
 * told.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/asker.h"
#include "registry/namer.h"
#include "fuzz.h"

#define SECOND 1000000000ULL
#define ANSWER_BYTES (offsetof(struct helper_message, bytes) + sizeof(struct identity))
#define QUESTION_BYTES (offsetof(struct helper_message, bytes) + sizeof(struct namer_question))

enum event { ASK, TAKE, HELLO, ANSWER, DATAGRAM, LATER, END, EVENTS };

struct input {
	const uint8_t *data;
	size_t len;
};

struct scene {
	struct asker asker;
	int peer, control; /* the other ends */
	uint64_t now_ns;
	struct identity taken;
};

static uint8_t take_byte(struct input *input)
{
	if (!input->len)
		return 0;
	input->len--;
	return *input->data++;
}

/* So many bytes as the next one says, and zeros behind them. */
static size_t take_bytes(struct input *input, void *out, size_t size)
{
	size_t len = take_byte(input) * 8U;

	if (len > input->len)
		len = input->len;
	if (len > size)
		len = size;
	memset(out, 0, size);
	memcpy(out, input->data, len);
	input->data += len;
	input->len -= len;
	return len;
}

/* What does not fit into the socket is not sent. */
static void tell(const struct scene *scene, const void *bytes, size_t len)
{
	(void)!send(scene->peer, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void tell_answer(struct scene *scene, struct input *input, uint32_t number)
{
	struct helper_message answer = { .number = number };
	struct identity *identity = (struct identity *)answer.bytes;

	answer.result = -(int8_t)take_byte(input);
	take_bytes(input, identity, sizeof(*identity));
	/* The first text is long: a few bytes do for the others. */
	take_bytes(input, identity->runtime, sizeof(identity->runtime));
	take_bytes(input, identity->user, sizeof(identity->user));
	tell(scene, &answer, ANSWER_BYTES);
}

static void tell_datagram(struct scene *scene, struct input *input)
{
	char bytes[2 * ANSWER_BYTES];

	tell(scene, bytes, take_bytes(input, bytes, sizeof(bytes)));
}

#define MUST_END(text) MUST(memchr(text, '\0', sizeof(text)))

static void check_identity(const struct identity *identity)
{
	MUST_END(identity->name);
	MUST_END(identity->exe);
	MUST_END(identity->runtime);
	MUST_END(identity->unit);
	MUST_END(identity->container);
	MUST_END(identity->user);
	MUST(*identity->name && *identity->runtime && *identity->user);
}

static void check_take(struct scene *scene)
{
	bool was_open = scene->asker.open, had_ended = scene->asker.ended;
	int fd, r = asker_take(&scene->asker, scene->now_ns, &scene->taken, &fd);

	MUST(r <= 0 && r > -4096 && fd == -1);
	if (r == 0)
		check_identity(&scene->taken);
	MUST((r == -EPIPE) == scene->asker.ended);
	MUST(!had_ended || r == -EPIPE);
	if (r == -EAGAIN)
		MUST(was_open == scene->asker.open);
	else
		MUST(!scene->asker.open && (was_open || r == -EPIPE));
	MUST(!scene->asker.ended || (!scene->asker.ready && !scene->asker.open));
}

/* The end that reads gets what the other has sent, or nothing. */
static void check_question(const struct scene *scene, const struct namer_question *asked)
{
	struct helper_message question;
	int fd;

	MUST(helper_question_receive(&namer_kind, scene->peer, &question, &fd) == 0);
	MUST(question.number == scene->asker.asked && question.number != HELPER_HELLO);
	MUST(memcmp(question.bytes, asked, sizeof(*asked)) == 0);
}

static void check_ask(struct scene *scene, struct input *input)
{
	bool usable = scene->asker.ready && !scene->asker.open && !scene->asker.ended;
	struct namer_question question;
	int r;

	take_bytes(input, &question, sizeof(question));
	r = asker_ask(&scene->asker, &question, -1, scene->now_ns + SECOND);
	MUST(r == 0 || r == -EBUSY || (r == -EPIPE && scene->asker.ended));
	MUST(r != 0 || (usable && scene->asker.open));
	if (!r && scene->peer >= 0)
		check_question(scene, &question);
}

static void peer_end(struct scene *scene)
{
	if (scene->peer < 0)
		return;
	close(scene->peer);
	close(scene->control);
	scene->peer = scene->control = -1;
}

/* What a reader is asked by an intruder that has taken the exporter over. */
static void check_hostile_question(const uint8_t *data, size_t len)
{
	struct helper_message question;
	struct identity identity = { 0 };
	size_t sent = len < 2 * QUESTION_BYTES ? len : 2 * QUESTION_BYTES;
	int ends[2], fd, r;

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	MUST(send(ends[0], data, sent, MSG_NOSIGNAL) == (ssize_t)sent);
	close(ends[0]);
	memset(&question, 'x', sizeof(question));
	r = helper_question_receive(&namer_kind, ends[1], &question, &fd);
	MUST(r == (sent == QUESTION_BYTES ? 0 : -EPIPE));
	if (!r) {
		struct helper_work work = { .arg = "/nonexistent" };

		namer_kind.answer(&work, question.bytes, &identity);
		MUST_END(((struct namer_question *)question.bytes)->comm);
	}
	close(ends[1]);
}

static void happen(struct scene *scene, enum event event, struct input *input)
{
	switch (event) {
	case ASK:
		check_ask(scene, input);
		break;
	case TAKE:
		check_take(scene);
		break;
	case HELLO:
		tell_answer(scene, input, HELPER_HELLO);
		break;
	case ANSWER:
		tell_answer(scene, input, scene->asker.asked + take_byte(input) % 4);
		break;
	case DATAGRAM:
		tell_datagram(scene, input);
		break;
	case LATER:
		scene->now_ns += SECOND / 2;
		break;
	default:
		peer_end(scene);
	}
}

static void scene_play(struct input *input)
{
	struct scene scene = { .asker.kind = &namer_kind, .now_ns = SECOND };
	int questions[2], control[2];

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, questions) == 0);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
	scene.asker.questions = questions[0];
	scene.asker.control = control[0];
	scene.peer = questions[1];
	scene.control = control[1];
	tell(&scene, &(struct helper_message){ .number = HELPER_HELLO }, ANSWER_BYTES);
	MUST(asker_begin(&scene.asker) == 0);
	while (input->len)
		happen(&scene, (enum event)(take_byte(input) % EVENTS), input);
	peer_end(&scene);
	check_take(&scene);
	close(scene.asker.questions);
	close(scene.asker.control);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input input = { data, len };

	check_hostile_question(data, len);
	scene_play(&input);
	return 0;
}
