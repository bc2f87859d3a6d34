/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers: processes of their own that do for the exporter what it may not do, or what may take
 * long. What one is, is data of its user (struct helper_kind); here is how it is started, confined,
 * asked within a time, replaced when it hangs, and ended.
 *
 * A question and its answer are one message each, of a fixed size. Both sides take the other for
 * hostile: a helper may be asked anything, and whatever it says is checked, so that it can give
 * wrong answers and no answer, and nothing else. No caller waits: one question is open at a time,
 * and has a time within which it is to be answered.
 *
 * All functions but start expect a helper that was started. One thread. Times are CLOCK_MONOTONIC.
 */
#ifndef WORKLOAD_HELPERS_HELPER_H
#define WORKLOAD_HELPERS_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "security/capabilities.h"
#include "security/sandbox.h"

#define HELPER_BYTES_MAX 2048U /* of a question, and of an answer */

struct helper_kind {
	const char *name; /* of its process, at most 15 bytes */
	/*
	 * The name of the child that answers: where one is, the process is its keeper (keeper.h),
	 * and one that does not answer in time is replaced. NULL: the process itself answers, and
	 * is not replaced.
	 */
	const char *worker;
	uint64_t capabilities; /* that are kept */
	enum sandbox_role role; /* of what answers */
	bool strict; /* instead, and without a worker: it can only read questions, write answers */
	int niceness;
	size_t question_bytes, answer_bytes;
	size_t scratch_bytes; /* memory that it has: under `strict` it gets no other */
	/*
	 * In the helper: answers @question, which holds any bytes and is cleared afterwards. 0 with
	 * @answer, which is all zeros; or -errno.
	 */
	int (*answer)(const void *arg, void *scratch, void *question, void *answer);
	/* In the exporter: ends texts in @answer, which holds any bytes. Whether it can be one. */
	bool (*check)(void *answer);
};

struct helper_options {
	const struct helper_kind *kind; /* borrowed while the helper lives */
	const void *arg; /* of `answer` */
	const struct user *user; /* that it becomes; only while starting */
	enum sandbox_mode sandbox;
};

struct helper;

/*
 * Starts the processes, which end with their parent's end of the socket: call it before there are
 * other threads, and best before there is anything that they should not inherit; descriptors they
 * close. 0 with @out (stop releases it); -EINVAL for a kind that cannot be; -errno; one that cannot
 * be confined does not start.
 */
int helper_start(const struct helper_options *options, struct helper **out);

/*
 * Asks @question, to be answered until @due_ns (UINT64_MAX: whenever it may be). 0; -EBUSY while
 * one is open or nothing is ready to answer; -EPIPE: the helper has ended.
 */
int helper_ask(struct helper *helper, const void *question, uint64_t due_ns);

/*
 * The answer to the open question: what `answer` has returned, with @out; -EPROTO for what cannot
 * be one. -EAGAIN: there is none yet, or no question is open. -ETIMEDOUT: none came in time, or
 * what answers has ended over it; ask later. -EPIPE: the helper has ended. After -EAGAIN and -EPIPE
 * call it again once the descriptor is readable: it also learns that a question can be asked.
 */
int helper_take(struct helper *helper, uint64_t now_ns, void *out);

/* Whether a question can be asked now. */
bool helper_is_ready(const struct helper *helper);

/* When the open question should be answered: UINT64_MAX if none is open. */
uint64_t helper_due_ns(const struct helper *helper);

/* A descriptor that becomes readable when there is something to take. */
int helper_fd(const struct helper *helper);

/* Whether it still lives, as far as helper_take() and helper_ask() have found out. */
bool helper_alive(const struct helper *helper);

/* Lets the processes end, without waiting for them; NULL is nothing. */
void helper_stop(struct helper *helper);

static inline void helper_stopp(struct helper **helper)
{
	helper_stop(*helper);
}

#endif
