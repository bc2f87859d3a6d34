/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "web/shares.h"

static const struct http_origin one = { { 4, 10, 0, 0, 1 } }, other = { { 4, 10, 0, 0, 2 } },
				nobody = { { 4, 10, 0, 0, 3 } };

Test(shares, the_origin_that_holds_most_gives_way)
{
	struct shares shares = { 0 };

	shares_take(&shares, &one);
	shares_take(&shares, &one);
	shares_take(&shares, &other);
	cr_expect(shares_gives_way(&shares, &one, &nobody));
	cr_expect_not(shares_gives_way(&shares, &other, &nobody));
	cr_expect(shares_gives_way(&shares, &one, &other));
	cr_expect_not(shares_gives_way(&shares, &other, &other));
}

Test(shares, who_holds_as_much_as_anybody_gives_way_itself)
{
	struct shares shares = { 0 };

	shares_take(&shares, &one);
	shares_take(&shares, &other);
	cr_expect(shares_gives_way(&shares, &one, &one));
	cr_expect_not(shares_gives_way(&shares, &other, &one));
	cr_expect(shares_gives_way(&shares, &one, &nobody) &&
		  shares_gives_way(&shares, &other, &nobody));
}

Test(shares, what_is_given_back_counts_no_more)
{
	struct shares shares = { 0 };

	shares_take(&shares, &one);
	shares_take(&shares, &one);
	shares_take(&shares, &other);
	shares_give_back(&shares, &one);
	shares_give_back(&shares, &one);
	cr_expect(shares_gives_way(&shares, &other, &one));
	cr_expect_eq(shares.len, 1);
	shares_give_back(&shares, &other);
	cr_expect_eq(shares.len, 0);
	shares_give_back(&shares, &other);
	cr_expect_eq(shares.len, 0, "nothing was held");
}

Test(shares, there_may_be_as_many_origins_as_things)
{
	struct shares shares = { 0 };
	struct http_origin origin = { 0 };

	for (uint16_t i = 0; i < SHARES_MAX; i++) {
		memcpy(origin.bytes + 1, &i, sizeof(i));
		shares_take(&shares, &origin);
	}
	cr_expect_eq(shares.len, SHARES_MAX);
	cr_expect(shares_gives_way(&shares, &origin, &one));
	shares_take(&shares, &one);
	cr_expect_eq(shares.len, SHARES_MAX, "one more is not counted");
}

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

Test(shares, an_origin_is_an_address_or_a_network_of_ipv6)
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
