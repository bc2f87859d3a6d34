/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers: processes of their own that do for the exporter what it may not do, or what may take
 * long. What one is, is data of its user (struct helper_kind); here is how it is started, confined,
 * asked within a time, replaced when it hangs, and ended.
 *
 * A question and its answer are one message each, of a fixed size. Both sides take the other for
 * hostile: a helper may be asked anything, and whatever it says is checked, so that it can give
 * wrong answers and no answer, and nothing else. No caller waits: one question is open at a time,
 * and has a time within which it is to be answered. What is too long for a message is in memory
 * that both share, and a descriptor may go with a message.
 *
 * All functions but start expect a helper that was started. One thread. Times are CLOCK_MONOTONIC.
 */
#ifndef WORKLOAD_HELPERS_HELPER_H
#define WORKLOAD_HELPERS_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "security/capabilities.h"
#include "security/sandbox.h"

#define HELPER_BYTES_MAX 2048U /* of a question, and of an answer */
#define HELPER_SHARED_MAX (80U << 20)

/*
 * Rows of struct needs, for what asks, and has its sandbox, a helper that descriptors go to or come
 * from.
 */
#define HELPER_PASSING_CALLS                                                                     \
	SANDBOX_CALL(SYS_recvmsg, INT_NONE_BUT(2, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | MSG_TRUNC)), \
		SANDBOX_CALL(SYS_sendmsg, INT_NONE_BUT(2, MSG_NOSIGNAL | MSG_DONTWAIT))

/* In the helper: what `answer` has besides the question. */
struct helper_work {
	const void *arg; /* of the options */
	void *scratch; /* scratch_bytes, zeros at first: the same with each question */
	void *shared; /* shared_bytes; hostile, and may change meanwhile */
	uint64_t held; /* of the options */
	int fd; /* that came with the question, and is closed after the call; -1: none */
	int answer_fd; /* -1; what is put here goes with the answer, if there is one, and is closed
			*/
};

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
	size_t shared_bytes; /* memory that both have, which is taken as it is used */
	bool takes_fd; /* a descriptor comes with each question; not under `strict` */
	bool gives_fd; /* one may go with an answer; not under `strict` */
	/*
	 * In the helper: answers @question, which holds any bytes and is cleared afterwards. 0 with
	 * @answer, which is all zeros; or -errno.
	 */
	int (*answer)(struct helper_work *work, void *question, void *answer);
	/* In the exporter: ends texts in @answer, which holds any bytes. Whether it can be one. */
	bool (*check)(void *answer);
};

struct helper_options {
	const struct helper_kind *kind; /* borrowed while the helper lives */
	const void *arg; /* of `answer` */
	const struct user *user; /* that it becomes; only while starting */
	uint64_t held; /* capabilities besides those of the kind, for capability_raise() */
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
 * Asks @question, to be answered until @due_ns (UINT64_MAX: whenever it may be). @fd goes along and
 * stays the caller's; -1: none. 0; -EBUSY while one is open or nothing is ready to answer; -EINVAL:
 * a descriptor where none is taken, or none where one is; -EPIPE: the helper has ended.
 */
int helper_ask_with(struct helper *helper, const void *question, int fd, uint64_t due_ns);

static inline int helper_ask(struct helper *helper, const void *question, uint64_t due_ns)
{
	return helper_ask_with(helper, question, -1, due_ns);
}

/*
 * The answer to the open question: what `answer` has returned, with @out; -EPROTO for what cannot
 * be one. -EAGAIN: there is none yet, or no question is open. -ETIMEDOUT: none came in time, or
 * what answers has ended over it; ask later. -EPIPE: the helper has ended. After -EAGAIN and -EPIPE
 * call it again once the descriptor is readable: it also learns that a question can be asked.
 *
 * @fd: what came with the answer, which is the caller's to close; -1: none, and always so where it
 * does not return 0. It may be of any kind of file. helper_take() closes it.
 */
int helper_take_with(struct helper *helper, uint64_t now_ns, void *out, int *fd);
int helper_take(struct helper *helper, uint64_t now_ns, void *out);

/*
 * The memory that is shared with the helper, shared_bytes of its kind; NULL: it has none. Zeros at
 * first. What is in it may change at any time while the helper lives, also after an answer, and
 * once a worker was replaced: what the kernel does for one that was killed may still write to it.
 * So copy what is there, then check the copy.
 */
void *helper_shared(const struct helper *helper);

/* Gives its pages back: it is zeros again. 0 or -errno. */
int helper_shared_clear(struct helper *helper);

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
