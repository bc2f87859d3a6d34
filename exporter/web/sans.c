/* SPDX-License-Identifier: Apache-2.0 */
#include "web/sans.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <gnutls/x509.h>

#define SAN_BYTES 1024 /* longer than any name that could be allowed sensibly */

static bool san_text_is_allowed(const char *text, size_t len, char *const *allowed,
				size_t allowed_len)
{
	for (size_t i = 0; i < allowed_len; i++)
		if (strlen(allowed[i]) == len && memcmp(allowed[i], text, len) == 0)
			return true;
	return false;
}

/* As Go writes them: an IPv4 address inside an IPv6 address is an IPv4 address. */
static bool san_address_text(const void *bytes, size_t len, char *text, size_t size)
{
	struct in6_addr address;

	if (len == sizeof(struct in_addr))
		return inet_ntop(AF_INET, bytes, text, (socklen_t)size);
	if (len != sizeof(address))
		return false;
	memcpy(&address, bytes, sizeof(address)); /* they may lie anywhere in a certificate */
	if (IN6_IS_ADDR_V4MAPPED(&address))
		return inet_ntop(AF_INET, &address.s6_addr[12], text, (socklen_t)size);
	return inet_ntop(AF_INET6, &address, text, (socklen_t)size);
}

bool san_is_allowed(enum san_kind kind, const void *bytes, size_t len, char *const *allowed,
		    size_t allowed_len)
{
	char text[INET6_ADDRSTRLEN];

	if (kind == SAN_TEXT)
		return san_text_is_allowed(bytes, len, allowed, allowed_len);
	return san_address_text(bytes, len, text, sizeof(text)) &&
	       san_text_is_allowed(text, strlen(text), allowed, allowed_len);
}

/* 0 if it is not allowed, 1 if it is; negative: there is none at @index. */
static int certificate_san(gnutls_x509_crt_t certificate, unsigned int index, char *const *allowed,
			   size_t allowed_len)
{
	char name[SAN_BYTES];
	size_t len = sizeof(name);
	unsigned int type;
	int r = gnutls_x509_crt_get_subject_alt_name2(certificate, index, name, &len, &type, NULL);

	if (r == GNUTLS_E_SHORT_MEMORY_BUFFER)
		return 0;
	if (r < 0)
		return -1;
	if (type == GNUTLS_SAN_IPADDRESS)
		return san_is_allowed(SAN_ADDRESS, name, len, allowed, allowed_len);
	return (type == GNUTLS_SAN_DNSNAME || type == GNUTLS_SAN_RFC822NAME ||
		type == GNUTLS_SAN_URI) &&
	       san_is_allowed(SAN_TEXT, name, len, allowed, allowed_len);
}

bool certificate_has_allowed_san(const gnutls_datum_t *der, char *const *allowed,
				 size_t allowed_len)
{
	gnutls_x509_crt_t certificate;
	int found = 0;

	if (gnutls_x509_crt_init(&certificate) < 0)
		return false;
	if (gnutls_x509_crt_import(certificate, der, GNUTLS_X509_FMT_DER) < 0)
		found = -1;
	for (unsigned int i = 0; !found; i++)
		found = certificate_san(certificate, i, allowed, allowed_len);
	gnutls_x509_crt_deinit(certificate);
	return found > 0;
}
