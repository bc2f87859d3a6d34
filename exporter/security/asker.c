/* SPDX-License-Identifier: Apache-2.0 */
#include "security/asker.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/text.h"
#include "security/messages.h"

static int asker_end(struct asker *asker)
{
	asker->ended = true;
	asker->ready = false;
	asker->open = false;
	return -EPIPE;
}

/* 0, -EAGAIN if there is none, -EPIPE. */
static int answer_receive(struct asker *asker, struct namer_answer *answer)
{
	int r = namer_answer_receive(asker->questions, answer);

	return r == -EPIPE ? asker_end(asker) : r;
}

/* The reader may come back from where it hangs, and answer: the number tells. */
static int reader_replace(struct asker *asker)
{
	asker->open = false;
	asker->ready = false;
	if (send(asker->control, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return asker_end(asker);
	return -ETIMEDOUT;
}

int asker_begin(struct asker *asker)
{
	struct namer_answer hello;
	int r = answer_receive(asker, &hello);

	if (!r && hello.number != NAMER_HELLO)
		r = -EPROTO;
	if (!r)
		r = hello.result;
	asker->ready = !r;
	return r;
}

/* One message: what asker_take() returns, or 1: it is no answer, look for the next. */
static int message_take(struct asker *asker, struct identity *out)
{
	struct namer_answer answer;
	bool was_open = asker->open;
	int r = answer_receive(asker, &answer);

	if (r)
		return r;
	if (answer.number != NAMER_HELLO && (!was_open || answer.number != asker->asked))
		return 1; /* too late */
	asker->open = false;
	if (answer.number == NAMER_HELLO) {
		asker->ready = !answer.result;
		return was_open ? -ETIMEDOUT : 1;
	}
	if (!answer.result)
		*out = answer.identity;
	return answer.result;
}

int asker_take(struct asker *asker, uint64_t now_ns, struct identity *out)
{
	int r = 1;

	if (asker->ended)
		return -EPIPE;
	for (int i = 0; r == 1 && i < ASKER_MESSAGES_MAX; i++)
		r = message_take(asker, out);
	if (r == 1)
		r = -EAGAIN; /* the descriptor stays readable */
	if (r == -EAGAIN && asker->open && now_ns >= asker->due_ns)
		r = reader_replace(asker);
	return r;
}

int asker_ask(struct asker *asker, pid_t pid, uint64_t start_ns, const char *comm, uint64_t due_ns)
{
	struct namer_question question = { .pid = pid, .start_ns = start_ns };

	if (asker->ended)
		return -EPIPE;
	if (asker->open || !asker->ready)
		return -EBUSY;
	text_copy(question.comm, sizeof(question.comm), comm ? comm : "");
	do {
		question.number = ++asker->asked;
	} while (question.number == NAMER_HELLO);
	if (namer_question_send(asker->questions, &question))
		return asker_end(asker);
	asker->open = true;
	asker->due_ns = due_ns;
	return 0;
}
