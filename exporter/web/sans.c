/* SPDX-License-Identifier: Apache-2.0 */
#include "web/sans.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

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
	const char *address = bytes;

	if (len == sizeof(struct in6_addr) && IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)bytes))
		return inet_ntop(AF_INET, address + 12, text, (socklen_t)size);
	if (len == sizeof(struct in6_addr))
		return inet_ntop(AF_INET6, address, text, (socklen_t)size);
	return len == sizeof(struct in_addr) && inet_ntop(AF_INET, address, text, (socklen_t)size);
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
