/* SPDX-License-Identifier: Apache-2.0 */
#include "helpers/asker.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES offsetof(struct helper_message, bytes)
#define ERRNO_MAX 4095 /* include/linux/err.h */

/* --- the end that answers ------------------------------------------------------------------- */

int helper_question_receive(const struct helper_kind *kind, int fd, struct helper_message *question)
{
	size_t bytes = HEAD_BYTES + kind->question_bytes;
	ssize_t got;

	/* One byte more: read(2) cuts a message, and does not say so. */
	do {
		got = read(fd, question, bytes + 1);
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)bytes ? 0 : -EPIPE;
}

int helper_answer_send(const struct helper_kind *kind, int fd, const struct helper_message *answer)
{
	size_t bytes = HEAD_BYTES + kind->answer_bytes;

	return write(fd, answer, bytes) == (ssize_t)bytes ? 0 : -EPIPE;
}

/* --- the end that asks ---------------------------------------------------------------------- */

static int asker_end(struct asker *asker)
{
	asker->ended = true;
	asker->ready = false;
	asker->open = false;
	return -EPIPE;
}

/* A result is 0, or an error by which asker_take() does not say something else. */
static int32_t answer_result(const struct asker *asker, struct helper_message *answer)
{
	if (answer->result > 0 || answer->result < -ERRNO_MAX || answer->result == -EAGAIN ||
	    answer->result == -EPIPE || answer->result == -ETIMEDOUT)
		return -EPROTO;
	if (!answer->result && answer->number != HELPER_HELLO && !asker->kind->check(answer->bytes))
		return -EPROTO;
	return answer->result;
}

/* Does not wait. 0 with an answer that has been checked; -EAGAIN if there is none; -EPIPE. */
static int answer_receive(struct asker *asker, struct helper_message *answer)
{
	size_t bytes = HEAD_BYTES + asker->kind->answer_bytes;
	ssize_t got = recv(asker->questions, answer, bytes, MSG_DONTWAIT | MSG_TRUNC);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (got != (ssize_t)bytes)
		return asker_end(asker);
	answer->result = answer_result(asker, answer);
	return 0;
}

/* What hangs may come back from where it does, and answer: the number tells. */
static int worker_replace(struct asker *asker)
{
	asker->open = false;
	asker->ready = false;
	if (send(asker->control, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return asker_end(asker);
	return -ETIMEDOUT;
}

int asker_begin(struct asker *asker)
{
	struct helper_message hello;
	int r = answer_receive(asker, &hello);

	if (!r && hello.number != HELPER_HELLO)
		r = -EPROTO;
	if (!r)
		r = hello.result;
	asker->ready = !r;
	return r;
}

/* One message: what asker_take() returns, or 1: it is no answer, look for the next. */
static int message_take(struct asker *asker, void *out)
{
	struct helper_message answer;
	bool was_open = asker->open;
	int r = answer_receive(asker, &answer);

	if (r)
		return r;
	if (!asker->kind->worker && (!was_open || answer.number != asker->asked))
		return asker_end(asker); /* without a successor it has nothing else to say */
	if (answer.number != HELPER_HELLO && (!was_open || answer.number != asker->asked))
		return 1; /* too late */
	asker->open = false;
	if (answer.number == HELPER_HELLO) {
		asker->ready = !answer.result;
		return was_open ? -ETIMEDOUT : 1;
	}
	if (!answer.result)
		memcpy(out, answer.bytes, asker->kind->answer_bytes);
	return answer.result;
}

int asker_take(struct asker *asker, uint64_t now_ns, void *out)
{
	int r = 1;

	if (asker->ended)
		return -EPIPE;
	for (int i = 0; r == 1 && i < ASKER_MESSAGES_MAX; i++)
		r = message_take(asker, out);
	if (r == 1)
		r = -EAGAIN; /* the descriptor stays readable */
	if (r == -EAGAIN && asker->open && now_ns >= asker->due_ns)
		r = worker_replace(asker);
	return r;
}

/* Questions may be secrets: no copy of one is left. */
int asker_ask(struct asker *asker, const void *question, uint64_t due_ns)
{
	size_t bytes = HEAD_BYTES + asker->kind->question_bytes;
	struct helper_message message = { 0 };
	ssize_t sent;

	if (asker->ended)
		return -EPIPE;
	if (asker->open || !asker->ready)
		return -EBUSY;
	do {
		message.number = ++asker->asked;
	} while (message.number == HELPER_HELLO);
	memcpy(message.bytes, question, asker->kind->question_bytes);
	sent = send(asker->questions, &message, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	explicit_bzero(&message, bytes);
	if (sent != (ssize_t)bytes)
		return asker_end(asker);
	asker->open = true;
	asker->due_ns = due_ns;
	return 0;
}
