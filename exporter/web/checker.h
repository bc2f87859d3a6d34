/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares passwords with bcrypt hashes in a helper, because one comparison takes a tenth of a
 * second and more, in which no other client would be served.
 *
 * The process can only read from and write to its socket (seccomp), has no capability and a lower
 * priority, and is not dumped.
 *
 * One question at a time. One thread.
 */
#ifndef WORKLOAD_WEB_CHECKER_H
#define WORKLOAD_WEB_CHECKER_H

#include <stdbool.h>

#include "helpers/helper.h"
#include "web/comparison.h"

extern const struct helper_kind checker_kind;

/* Starts the process, which becomes @user: as helper_start(). */
int checker_start(const struct user *user, struct helper **checker);

/*
 * Asks whether @hash, for which web_hash_is_bcrypt() holds, is that of @password, which is cut to
 * what bcrypt sees. 0; -EBUSY while a question is open; -EPIPE if the process has ended.
 */
int checker_ask(struct helper *checker, const char *hash, const char *password);

/*
 * 1 with the answer to the open question in @right; 0 if there is none yet; -EPIPE if the process
 * has ended, or says what it should not.
 */
int checker_take(struct helper *checker, bool *right);

#endif
