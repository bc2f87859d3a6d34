/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of a helper's socket (helper.h): messages, and the end that asks. One question is open
 * at a time, has a time within which it is to be answered, and what keeps it waiting is replaced.
 * The other end is taken for hostile: it can give wrong answers and no answer, and nothing else. A
 * descriptor that it sends where none is due makes an answer one that cannot be, and is closed.
 *
 * One thread. Times are CLOCK_MONOTONIC.
 */
#ifndef WORKLOAD_HELPERS_ASKER_H
#define WORKLOAD_HELPERS_ASKER_H

#include <stdbool.h>
#include <stdint.h>

#include "helpers/helper.h"

/* Messages that one call takes at most: one that floods is not heard without end. */
#define ASKER_MESSAGES_MAX 64

/* The number of an answer to no question: something is ready to answer. */
#define HELPER_HELLO 0U

/*
 * A question or an answer: as many bytes of the last member as the kind of helper says, and one
 * more by which one that is too long is found.
 */
struct helper_message {
	uint32_t number; /* of a question, repeated in its answer */
	int32_t result; /* of `answer`; of HELPER_HELLO: why nothing is ready */
	_Alignas(8) char bytes[HELPER_BYTES_MAX + 1]; /* of an answer: only where result is 0 */
};

struct asker {
	const struct helper_kind *kind; /* borrowed */
	int questions, control; /* sockets, owned; -1: none */
	uint32_t asked; /* number of the last question; never that of a hello */
	bool ready; /* something is there to answer */
	bool open; /* the last question has no answer yet */
	uint64_t due_ns; /* of that one */
	bool ended;
};

/* Takes the first hello, for which its socket is readable. 0 or -errno: nothing is ready. */
int asker_begin(struct asker *asker);

/* As helper_ask_with() and helper_take_with(). */
int asker_ask(struct asker *asker, const void *question, int fd, uint64_t due_ns);
int asker_take(struct asker *asker, uint64_t now_ns, void *out, int *fd);

/* Whether descriptors go with messages of @kind. If not, its ends only read(2) and write(2). */
bool helper_passes(const struct helper_kind *kind);

/*
 * The other end. Receiving waits: 0 with *@fd, which is the caller's (-1: @kind takes none); -EPIPE
 * for the end, or what is no question of @kind. Sending waits for room: 0 or -EPIPE; @fd, -1 for
 * none, stays the caller's.
 */
int helper_question_receive(const struct helper_kind *kind, int socket,
			    struct helper_message *question, int *fd);
int helper_answer_send(const struct helper_kind *kind, int socket,
		       const struct helper_message *answer, int fd);

#endif
