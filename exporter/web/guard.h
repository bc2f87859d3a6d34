/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The web configuration file at work: which clients may connect and ask, by the file as it is now.
 *
 * Like the exporter-toolkit it goes by the file as it is at every request and handshake, and so it
 * does by the certificates; a look at size, inode and times tells whether all of them must be read
 * again. While one is broken, requests and handshakes fail, and it is said once why.
 *
 * One thread.
 */
#ifndef WORKLOAD_WEB_GUARD_H
#define WORKLOAD_WEB_GUARD_H

#include "web/passwords.h"
#include "web/tls.h"

struct guard_options {
	const char *path; /* of the file, borrowed while the guard lives; NULL: every client may */
	struct helper *checker; /* borrowed while the guard lives; NULL if path is */
	/* Told what changes: a file that is broken (@broken), or whole again. May be NULL. */
	void (*say)(void *arg, bool broken, const char *text);
	void *arg;
};

enum guard_verdict {
	GUARD_ADMIT,
	GUARD_WAIT, /* the password is being compared: ask again */
	GUARD_UNAUTHORIZED,
	GUARD_LIMITED, /* more requests than rate_limit allows */
	GUARD_BUSY, /* as PASSWORD_BUSY */
	GUARD_BROKEN,
};

struct guard;

/* 0 with @guard (free releases it); -EINVAL with what is wrong in @error; -ENOMEM, -EIO. */
int guard_new(const struct guard_options *options, struct guard **guard, char *error,
	      size_t error_bytes);
void guard_free(struct guard *guard); /* NULL is nothing */

/* Whether connections begin with a TLS handshake; does not change while the guard lives. */
bool guard_has_tls(const struct guard *guard);

/* Whether each client that guard_check() admits has given a password. */
bool guard_has_users(const struct guard *guard);

/* For a session that begins: a reference, or NULL if no handshake can succeed now. */
struct web_tls *guard_tls(struct guard *guard);

/* Once per request, before all else. Never GUARD_WAIT. @authorization is the header's value or "".
 */
enum guard_verdict guard_enter(struct guard *guard, const char *authorization);

/* Then, until it is not GUARD_WAIT; cheap. */
enum guard_verdict guard_check(struct guard *guard, const char *authorization,
			       const struct http_origin *origin);

/* To be called when helper_fd() is readable; whether guard_check has news. */
bool guard_run(struct guard *guard);

/* Whether the checker has ended, so that there will be no more news. */
bool guard_is_deaf(const struct guard *guard);

/* The value of a header that all answers shall have, valid until the next call; or NULL. */
const char *guard_header(const struct guard *guard, enum web_header header);

static inline void guard_freep(struct guard **guard)
{
	guard_free(*guard);
}

#endif
