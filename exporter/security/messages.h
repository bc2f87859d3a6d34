/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the namer is asked and what it answers: one datagram each, of a fixed size. Each side takes
 * the other for hostile: what comes in has been checked here before any caller looks at it.
 */
#ifndef WORKLOAD_SECURITY_MESSAGES_H
#define WORKLOAD_SECURITY_MESSAGES_H

#include <stdint.h>

#include "identity/identity.h"

#define NAMER_COMM_BYTES 64

/* The number of an answer to no question: a reader is ready. */
#define NAMER_HELLO 0U

struct namer_question {
	uint32_t number; /* repeated in the answer */
	int32_t pid;
	uint64_t start_ns;
	char comm[NAMER_COMM_BYTES];
};

struct namer_answer {
	uint32_t number;
	int32_t result; /* of identity_read(); of NAMER_HELLO: why there is no reader */
	struct identity identity; /* only where result is 0, and it is no NAMER_HELLO */
};

/* Neither waits. 0; -EPIPE, be it that the other end does not read what it was sent. */
int namer_question_send(int fd, const struct namer_question *question);

/* Waits. 0 with a text that has its end; -EPIPE for the end, or what is no question. */
int namer_question_receive(int fd, struct namer_question *question);

/* Waits for room. 0 or -EPIPE. */
int namer_answer_send(int fd, const struct namer_answer *answer);

/*
 * Does not wait. 0 with an answer whose texts have their ends, and whose identity is as identity.h
 * says; -EAGAIN if there is none; -EPIPE for the end, or what is no answer. A result is 0 or an
 * error that identity_read() may return: -EPROTO in place of all others, and of those by which
 * namer_take() says something else.
 */
int namer_answer_receive(int fd, struct namer_answer *answer);

#endif
