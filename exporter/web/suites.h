/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's names of TLS versions, cipher suites and curves, which the web configuration file uses, and
 * what GnuTLS calls them in its priority strings.
 */
#ifndef WORKLOAD_WEB_SUITES_H
#define WORKLOAD_WEB_SUITES_H

#define WEB_SUITES_MAX 13

struct web_choice {
	const char *name;
	const char *priority; /* what a priority string adds for it */
};

enum web_tls_version {
	WEB_TLS_1_0,
	WEB_TLS_1_1,
	WEB_TLS_1_2,
	WEB_TLS_1_3,
};

/* Each ends with one that is all NULL. */
extern const struct web_choice web_tls_versions[]; /* by enum web_tls_version */
extern const struct web_choice web_suites[]; /* Go's crypto/tls.CipherSuites(), as preferred */
extern const struct web_choice web_curves[];

/* The one of @choices that is called @name; NULL: none is. */
const struct web_choice *web_choice_find(const struct web_choice *choices, const char *name);

#endif
