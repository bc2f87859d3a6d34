/* SPDX-License-Identifier: Apache-2.0 */
#include "security/messages.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define ERRNO_MAX 4095 /* include/linux/err.h */

int namer_question_send(int fd, const struct namer_question *question)
{
	return send(fd, question, sizeof(*question), MSG_NOSIGNAL | MSG_DONTWAIT) ==
			       sizeof(*question)
		       ? 0
		       : -EPIPE;
}

int namer_question_receive(int fd, struct namer_question *question)
{
	ssize_t got;

	do {
		got = recv(fd, question, sizeof(*question), MSG_TRUNC);
	} while (got < 0 && errno == EINTR);
	if (got != sizeof(*question))
		return -EPIPE;
	question->comm[sizeof(question->comm) - 1] = '\0';
	return 0;
}

int namer_answer_send(int fd, const struct namer_answer *answer)
{
	return send(fd, answer, sizeof(*answer), MSG_NOSIGNAL) == sizeof(*answer) ? 0 : -EPIPE;
}

/* --- what is checked of an answer ----------------------------------------------------------- */

static void identity_terminate(struct identity *identity)
{
	identity->name[sizeof(identity->name) - 1] = '\0';
	identity->exe[sizeof(identity->exe) - 1] = '\0';
	identity->runtime[sizeof(identity->runtime) - 1] = '\0';
	identity->unit[sizeof(identity->unit) - 1] = '\0';
	identity->container[sizeof(identity->container) - 1] = '\0';
	identity->user[sizeof(identity->user) - 1] = '\0';
}

static bool identity_is_whole(const struct identity *identity)
{
	return *identity->name && *identity->runtime && *identity->user &&
	       identity->user[strspn(identity->user, "0123456789")] == '\0';
}

static int32_t answer_result(const struct namer_answer *answer)
{
	if (answer->result > 0 || answer->result < -ERRNO_MAX || answer->result == -EAGAIN ||
	    answer->result == -EPIPE || answer->result == -ETIMEDOUT)
		return -EPROTO;
	if (!answer->result && answer->number != NAMER_HELLO &&
	    !identity_is_whole(&answer->identity))
		return -EPROTO;
	return answer->result;
}

int namer_answer_receive(int fd, struct namer_answer *answer)
{
	ssize_t got = recv(fd, answer, sizeof(*answer), MSG_DONTWAIT | MSG_TRUNC);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (got != sizeof(*answer))
		return -EPIPE;
	identity_terminate(&answer->identity);
	answer->result = answer_result(answer);
	return 0;
}
