/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's names of TLS versions, cipher suites and curves, which the web configuration file uses, and
 * what GnuTLS calls them in its priority strings.
 */
#ifndef WORKLOAD_WEB_SUITES_H
#define WORKLOAD_WEB_SUITES_H

#include <stdbool.h>
#include <stddef.h>

#define WEB_SUITES_MAX 13
#define WEB_CURVES_MAX 4

enum web_tls_version {
	WEB_TLS_1_0,
	WEB_TLS_1_1,
	WEB_TLS_1_2,
	WEB_TLS_1_3,
	WEB_TLS_VERSIONS,
};

/* One of crypto/tls.CipherSuites(). As in Go those of TLS 1.3 are known and cannot be chosen. */
struct web_suite {
	const char *name;
	const char *key_exchange; /* NULL: of TLS 1.3 */
	const char *cipher;
	const char *mac;
};

struct web_curve {
	const char *name;
	const char *group;
};

/* NULL if there is none of that name. */
const struct web_suite *web_suite_find(const char *name);
const struct web_curve *web_curve_find(const char *name);

/* The one at @index, in the order of preference; NULL behind the last. */
const struct web_suite *web_suite_at(size_t index);

/* "TLS10" to "TLS13". 0, or -EINVAL with @version untouched. */
int web_tls_version_parse(const char *name, enum web_tls_version *version);

/* As GnuTLS writes it: "VERS-TLS1.2". */
const char *web_tls_version_priority(enum web_tls_version version);

#endif
