/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "web/origin.h"

static struct http_origin origin_of(const char *text)
{
	struct sockaddr_storage address = { 0 };
	struct sockaddr_in *v4 = (void *)&address;
	struct sockaddr_in6 *v6 = (void *)&address;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		address.ss_family = AF_INET;
	} else {
		cr_assert_eq(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
		address.ss_family = AF_INET6;
	}
	return http_origin_of(&address);
}

Test(origin, an_origin_is_an_address_or_a_network_of_ipv6)
{
	static const struct {
		const char *one, *other;
		bool equal;
	} pairs[] = {
		{ "10.0.0.1", "10.0.0.1", true },
		{ "10.0.0.1", "10.0.0.2", false },
		{ "10.0.0.1", "::ffff:10.0.0.1", true },
		{ "2001:db8::1", "2001:db8::ffff:1", true },
		{ "2001:db8::1", "2001:db8:0:1::1", false },
		{ "::1", "127.0.0.1", false },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		struct http_origin first = origin_of(pairs[i].one);
		struct http_origin second = origin_of(pairs[i].other);

		cr_expect_eq(http_origin_equal(&first, &second), pairs[i].equal, "%s and %s",
			     pairs[i].one, pairs[i].other);
	}
}
