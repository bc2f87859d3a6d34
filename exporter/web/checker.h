/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares passwords with bcrypt hashes in a process of its own, because one comparison takes a
 * tenth of a second and more, in which no other client would be served.
 *
 * The process can only read from and write to its socket (seccomp's strict mode), has no capability
 * and a lower priority, and is not dumped. It ends with the other end of its socket.
 *
 * One question at a time. One thread.
 */
#ifndef WORKLOAD_WEB_CHECKER_H
#define WORKLOAD_WEB_CHECKER_H

#include <stdbool.h>

#include "security/capabilities.h"
#include "web/comparison.h"

struct checker;

/*
 * Starts the process, which becomes @user: call it before there are other threads and before
 * anything that it should not inherit is mapped; descriptors it closes. 0 with @checker (stop
 * releases it) or -errno, and then
 * @checker is NULL or untouched.
 */
int checker_start(const struct user *user, struct checker **checker);

/* Lets the process end; NULL is nothing. */
void checker_stop(struct checker *checker);

/* Readable when there is an answer, or the process has ended. */
int checker_fd(const struct checker *checker);

/*
 * Asks whether @hash, for which web_hash_is_bcrypt() holds, is that of @password, which is cut to
 * what bcrypt sees. 0; -EBUSY while a question is open; -EPIPE if the process has ended.
 */
int checker_ask(struct checker *checker, const char *hash, const char *password);

/*
 * 1 with the answer to the open question in @right; 0 if there is none yet; -EPIPE if the process
 * has ended, or says what it should not.
 */
int checker_take(struct checker *checker, bool *right);

static inline void checker_stopp(struct checker **checker)
{
	checker_stop(*checker);
}

#endif
