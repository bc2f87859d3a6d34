/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the namer that asks (namer.h): one question is open at a time, has a time within which
 * it is to be answered, and a reader that keeps it waiting is replaced. The reader is taken for
 * hostile: it can give wrong names and no answer, and nothing else.
 *
 * One thread. Times are CLOCK_MONOTONIC.
 */
#ifndef WORKLOAD_SECURITY_ASKER_H
#define WORKLOAD_SECURITY_ASKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "identity/identity.h"

/* Messages that one call takes at most: a reader that floods is not heard without end. */
#define ASKER_MESSAGES_MAX 64

struct asker {
	int questions, control; /* sockets, owned; -1: none */
	uint32_t asked; /* number of the last question; never that of a hello */
	bool ready; /* there is a reader */
	bool open; /* the last question has no answer yet */
	uint64_t due_ns; /* of that one */
	bool ended;
};

/* Takes the first hello, for which its socket is readable. 0 or -errno: there is no reader. */
int asker_begin(struct asker *asker);

/* As namer_ask() and namer_take(). */
int asker_ask(struct asker *asker, pid_t pid, uint64_t start_ns, const char *comm, uint64_t due_ns);
int asker_take(struct asker *asker, uint64_t now_ns, struct identity *out);

#endif
