/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of certificates: the input is a kind, the length of a name, the name, and behind it the
 * names that are allowed, each with a NUL.
 */
#include <arpa/inet.h>

#include "web/sans.h"
#include "fuzz.h"

#define ALLOWED_MAX 8

/* The bytes of an address as IPv6; whether there are any. */
static bool address_of(const char *text, struct in6_addr *address)
{
	struct in_addr old;

	if (inet_pton(AF_INET6, text, address) == 1)
		return true;
	if (inet_pton(AF_INET, text, &old) != 1)
		return false;
	*address = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	memcpy(&address->s6_addr[12], &old, sizeof(old));
	return true;
}

static bool address_is(const char *text, const uint8_t *bytes, size_t len)
{
	struct in6_addr address;

	if ((len != 4 && len != 16) || !address_of(text, &address))
		return false;
	if (len == 16)
		return memcmp(&address, bytes, len) == 0;
	return IN6_IS_ADDR_V4MAPPED(&address) && memcmp(&address.s6_addr[12], bytes, len) == 0;
}

static bool text_is(const char *text, const uint8_t *bytes, size_t len)
{
	return strlen(text) == len && memcmp(text, bytes, len) == 0;
}

/* The name lies as it may in a certificate: at any address. */
static void check_name(enum san_kind kind, const uint8_t *bytes, size_t len, char *const *allowed,
		       size_t allowed_len)
{
	uint8_t *block = malloc(len + 1);
	bool expected = false, is;

	MUST(block);
	memcpy(block + 1, bytes, len);
	is = san_is_allowed(kind, block + 1, len, allowed, allowed_len);
	for (size_t i = 0; i < allowed_len; i++)
		expected |= kind == SAN_TEXT ? text_is(allowed[i], bytes, len)
					     : address_is(allowed[i], bytes, len);
	/* An address is one text, and may be written in others, which are not it. */
	MUST(kind == SAN_TEXT ? is == expected : !is || expected);
	MUST(!san_is_allowed(kind, block + 1, len, allowed, 0));
	free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *allowed[ALLOWED_MAX];
	size_t allowed_len = 0, name_len, at;

	if (len < 2)
		return 0;
	name_len = data[1] < len - 2 ? data[1] : len - 2;
	for (at = 2 + name_len; at < len && allowed_len < ALLOWED_MAX; allowed_len++) {
		allowed[allowed_len] = fuzz_text(data + at, len - at);
		at += strlen(allowed[allowed_len]) + 1;
	}
	check_name(data[0] % 2 ? SAN_ADDRESS : SAN_TEXT, data + 2, name_len, allowed, allowed_len);
	while (allowed_len)
		free(allowed[--allowed_len]);
	return 0;
}
