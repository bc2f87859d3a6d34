/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in a certificate (subject alternative names) against those that are allowed: exactly, as
 * the exporter-toolkit compares DNS names, mail addresses, URIs, and IP addresses as text.
 */
#ifndef WORKLOAD_WEB_SANS_H
#define WORKLOAD_WEB_SANS_H

#include <stdbool.h>
#include <stddef.h>

#include <gnutls/gnutls.h>

enum san_kind { SAN_TEXT, SAN_ADDRESS };

/*
 * Whether one name is in @allowed. @bytes are a text of @len bytes, which no NUL need end and which
 * may hold some, or the 4 or 16 bytes of an address.
 */
bool san_is_allowed(enum san_kind kind, const void *bytes, size_t len, char *const *allowed,
		    size_t allowed_len);

/* Whether the certificate @der, which may be hostile, has at least one of them. */
bool certificate_has_allowed_san(const gnutls_datum_t *der, char *const *allowed,
				 size_t allowed_len);

#endif
