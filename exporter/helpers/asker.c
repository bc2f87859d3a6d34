/* SPDX-License-Identifier: Apache-2.0 */
#include "helpers/asker.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "helpers/passing.h"

#define HEAD_BYTES offsetof(struct helper_message, bytes)
#define ERRNO_MAX 4095 /* include/linux/err.h */

bool helper_passes(const struct helper_kind *kind)
{
	return kind->takes_fd || kind->gives_fd;
}

/* --- the end that answers ------------------------------------------------------------------- */

/* One byte more is asked for: read(2) cuts a message, and does not say so. */
static ssize_t question_read(const struct helper_kind *kind, int socket,
			     struct helper_message *question, struct passed *passed)
{
	size_t bytes = HEAD_BYTES + kind->question_bytes + 1;
	ssize_t got;

	*passed = (struct passed){ .fd = -1 };
	do {
		got = helper_passes(kind) ? passing_receive(socket, question, bytes, 0, passed)
					  : read(socket, question, bytes);
	} while (got < 0 && errno == EINTR);
	return got;
}

int helper_question_receive(const struct helper_kind *kind, int socket,
			    struct helper_message *question, int *fd)
{
	struct passed passed;
	ssize_t got = question_read(kind, socket, question, &passed);

	*fd = passed.fd;
	if (got == (ssize_t)(HEAD_BYTES + kind->question_bytes) && !passed.wrong &&
	    (passed.fd >= 0) == kind->takes_fd)
		return 0;
	cleanup_close(fd);
	*fd = -1;
	return -EPIPE;
}

int helper_answer_send(const struct helper_kind *kind, int socket,
		       const struct helper_message *answer, int fd)
{
	size_t bytes = HEAD_BYTES + kind->answer_bytes;
	ssize_t sent;

	if (helper_passes(kind))
		sent = passing_send(socket, answer, bytes, MSG_NOSIGNAL, kind->gives_fd ? fd : -1);
	else
		sent = write(socket, answer, bytes);
	return sent == (ssize_t)bytes ? 0 : -EPIPE;
}

/* --- the end that asks ---------------------------------------------------------------------- */

static int asker_end(struct asker *asker)
{
	asker->ended = true;
	asker->ready = false;
	asker->open = false;
	return -EPIPE;
}

/* Descriptors that @passed may be: one, with an answer that is given. */
static bool passed_is_due(const struct asker *asker, const struct helper_message *answer,
			  const struct passed *passed)
{
	if (passed->fd < 0)
		return !passed->wrong;
	return asker->kind->gives_fd && !answer->result && answer->number != HELPER_HELLO;
}

/* A result is 0, or an error by which asker_take() does not say something else. */
static int32_t answer_result(const struct asker *asker, struct helper_message *answer,
			     const struct passed *passed)
{
	if (answer->result > 0 || answer->result < -ERRNO_MAX || answer->result == -EAGAIN ||
	    answer->result == -EPIPE || answer->result == -ETIMEDOUT)
		return -EPROTO;
	if (!passed_is_due(asker, answer, passed))
		return -EPROTO;
	if (!answer->result && answer->number != HELPER_HELLO && !asker->kind->check(answer->bytes))
		return -EPROTO;
	return answer->result;
}

/* Without a place for them the kernel closes what descriptors a message brings. */
static ssize_t answer_read(const struct asker *asker, struct helper_message *answer, size_t bytes,
			   struct passed *passed)
{
	int flags = MSG_DONTWAIT | MSG_TRUNC;

	*passed = (struct passed){ .fd = -1 };
	return helper_passes(asker->kind)
		       ? passing_receive(asker->questions, answer, bytes, flags, passed)
		       : recv(asker->questions, answer, bytes, flags);
}

/*
 * Does not wait. 0 with an answer that has been checked, and what came with it in *@fd, which is -1
 * or to be closed, also after errors; -EAGAIN if there is none; -EPIPE.
 */
static int answer_receive(struct asker *asker, struct helper_message *answer, int *fd)
{
	size_t bytes = HEAD_BYTES + asker->kind->answer_bytes;
	struct passed passed;
	ssize_t got = answer_read(asker, answer, bytes, &passed);

	*fd = passed.fd;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (got != (ssize_t)bytes)
		return asker_end(asker);
	answer->result = answer_result(asker, answer, &passed);
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
	_cleanup_(cleanup_close) int fd = -1;
	struct helper_message hello;
	int r = answer_receive(asker, &hello, &fd);

	if (!r && hello.number != HELPER_HELLO)
		r = -EPROTO;
	if (!r)
		r = hello.result;
	asker->ready = !r;
	return r;
}

/* One message: what asker_take() returns, or 1: it is no answer, look for the next. */
static int message_take(struct asker *asker, void *out, int *out_fd)
{
	_cleanup_(cleanup_close) int fd = -1;
	struct helper_message answer;
	bool was_open = asker->open;
	int r = answer_receive(asker, &answer, &fd);

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
	if (answer.result)
		return answer.result;
	memcpy(out, answer.bytes, asker->kind->answer_bytes);
	*out_fd = TAKE_FD(fd);
	return 0;
}

int asker_take(struct asker *asker, uint64_t now_ns, void *out, int *fd)
{
	int r = 1;

	*fd = -1;
	if (asker->ended)
		return -EPIPE;
	for (int i = 0; r == 1 && i < ASKER_MESSAGES_MAX; i++)
		r = message_take(asker, out, fd);
	if (r == 1)
		r = -EAGAIN; /* the descriptor stays readable */
	if (r == -EAGAIN && asker->open && now_ns >= asker->due_ns)
		r = worker_replace(asker);
	return r;
}

/* Questions may be secrets: no copy of one is left. */
int asker_ask(struct asker *asker, const void *question, int fd, uint64_t due_ns)
{
	size_t bytes = HEAD_BYTES + asker->kind->question_bytes;
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	struct helper_message message = { 0 };
	ssize_t sent;

	if (asker->ended)
		return -EPIPE;
	if ((fd >= 0) != asker->kind->takes_fd)
		return -EINVAL;
	if (asker->open || !asker->ready)
		return -EBUSY;
	do {
		message.number = ++asker->asked;
	} while (message.number == HELPER_HELLO);
	memcpy(message.bytes, question, asker->kind->question_bytes);
	sent = fd < 0 ? send(asker->questions, &message, bytes, flags)
		      : passing_send(asker->questions, &message, bytes, flags, fd);
	explicit_bzero(&message, bytes);
	if (sent != (ssize_t)bytes)
		return asker_end(asker);
	asker->open = true;
	asker->due_ns = due_ns;
	return 0;
}
