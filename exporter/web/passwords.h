/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which clients may come in: names and passwords against bcrypt hashes, without making a client
 * wait for another's wrong password longer than must be.
 *
 * What was found right or wrong is remembered, as an HMAC with a key of this process, so that only
 * the first request with a password costs a comparison. Right ones and wrong ones are kept apart:
 * no flood of wrong passwords pushes a right one out. Comparisons are made one after the other by a
 * process of their own (checker.h), first come, first served. One of each origin may be open and
 * PASSWORDS_QUEUE in all, so that a flood from one address costs others the time of one comparison.
 *
 * A name that no user has costs as much as a wrong password: a comparison with a hash of the same
 * cost as the users'.
 */
#ifndef WORKLOAD_WEB_PASSWORDS_H
#define WORKLOAD_WEB_PASSWORDS_H

#include <stddef.h>
#include <stdint.h>

#include "web/checker.h"
#include "web/config.h"
#include "web/origin.h"

#define PASSWORDS_QUEUE 64 /* the last waits 4 s at cost 10: a scrape may take 10 s */
#define PASSWORDS_RIGHT 64
#define PASSWORDS_WRONG 256
#define PASSWORD_KEY_BYTES 32
#define PASSWORD_NAME_BYTES 256

enum password_verdict {
	PASSWORD_RIGHT,
	PASSWORD_WRONG,
	PASSWORD_PENDING, /* ask again once passwords_run has had an answer */
	PASSWORD_BUSY, /* too many wait, or another one of this origin does */
	PASSWORD_BROKEN, /* the checker has ended */
};

/* What a client says it is. */
struct credentials {
	char name[PASSWORD_NAME_BYTES];
	char password[PASSWORD_NAME_BYTES];
};

struct password_key {
	uint8_t bytes[PASSWORD_KEY_BYTES];
};

struct password_question {
	struct password_key key;
	struct http_origin origin;
	char hash[61];
	char password[CHECKER_PASSWORD_BYTES + 1];
};

struct passwords {
	struct helper *checker; /* borrowed */
	struct password_key secret;
	struct password_key right[PASSWORDS_RIGHT], wrong[PASSWORDS_WRONG];
	size_t right_len, wrong_len; /* ever remembered: the next one goes to len % size */
	struct password_question queue[PASSWORDS_QUEUE]; /* the first one is with the checker */
	size_t queue_len;
	bool ended; /* the checker has */
};

/* 0 or -EIO: no random numbers. */
int passwords_init(struct passwords *passwords, struct helper *checker);

/*
 * Reads the value of an Authorization header. 0; -EINVAL, with @out cleared, for everything but
 * "Basic" with a name and a password that fit and hold no NUL.
 */
int credentials_parse(const char *header, struct credentials *out);

/* What is known of @given; asks the checker if nothing is. Never PASSWORD_RIGHT for other users. */
enum password_verdict passwords_check(struct passwords *passwords, const struct web_user *users,
				      size_t users_len, const struct credentials *given,
				      const struct http_origin *origin);

/* Takes the checker's answer, if there is one, and asks the next question. Whether there was. */
bool passwords_run(struct passwords *passwords);

#endif
