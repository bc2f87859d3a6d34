/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tls_server_config means to GnuTLS: certificates and policies, made once from files as they
 * are, used by many sessions, and replaced as a whole when something has changed.
 *
 * Unlike in Go cipher_suites chooses ciphers: those of TLS 1.3 as well, and for each kind of key.
 *
 * One thread. Reference counts, because sessions outlive a change of the configuration.
 */
#ifndef WORKLOAD_WEB_TLS_H
#define WORKLOAD_WEB_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include <gnutls/gnutls.h>

#include "web/config.h"

struct web_tls;

/*
 * Reads the files that @config names, of which nothing is kept. 0 with one reference in @tls;
 * -EINVAL with a sentence in @error; -ENOMEM.
 */
int web_tls_new(const struct web_tls_config *config, struct web_tls **tls, char *error,
		size_t error_bytes);

/*
 * Makes @session, which has not begun its handshake, serve with @tls; @tls must live as long as the
 * session. Uses the session's database pointer, which has no other use without resumption. 0 or
 * -EIO.
 */
int web_tls_use(struct web_tls *tls, gnutls_session_t session);

/*
 * Whether each client whose handshake has succeeded has shown a certificate of a CA, or with a
 * name, that the configuration has: not just of any CA of this machine.
 */
bool web_tls_authenticates(const struct web_tls *tls);

struct web_tls *web_tls_ref(struct web_tls *tls);
void web_tls_unref(struct web_tls *tls); /* NULL is nothing */

#endif
