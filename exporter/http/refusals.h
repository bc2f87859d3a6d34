/* SPDX-License-Identifier: Apache-2.0 */
/* Every way in which the HTTP server turns a client away. */
#ifndef WORKLOAD_HTTP_REFUSALS_H
#define WORKLOAD_HTTP_REFUSALS_H

/* REFUSAL(id, value of the label `reason`) */
#define HTTP_REFUSAL_LIST(REFUSAL)                                                           \
	REFUSAL(EVICTED, "evicted") /* a connection gave way to another */                   \
	REFUSAL(EXPIRED, "expired") /* a connection met its deadline */                      \
	REFUSAL(NOT_ACCEPTED, "not_accepted") /* no descriptor, no memory */                 \
	REFUSAL(TLS_BROKEN, "tls_broken") /* certificates, or what names them */             \
	REFUSAL(CONFIG_BROKEN, "config_broken") /* 500 */                                    \
	REFUSAL(RATE_LIMIT, "rate_limit") /* 429 */                                          \
	REFUSAL(PASSWORDS_BUSY, "passwords_busy") /* 429: too many, or two of one address */ \
	REFUSAL(UNAUTHORIZED, "unauthorized") /* 401 */                                      \
	REFUSAL(PRIVATE, "private") /* 403 */                                                \
	REFUSAL(MAX_REQUESTS, "max_requests") /* 503 */

enum http_refusal {
#define REFUSAL(id, name) HTTP_REFUSED_##id,
	HTTP_REFUSAL_LIST(REFUSAL)
#undef REFUSAL
		HTTP_REFUSALS,
};

#endif
