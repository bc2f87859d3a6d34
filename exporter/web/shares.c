/* SPDX-License-Identifier: Apache-2.0 */
#include "web/shares.h"

#include <netinet/in.h>
#include <string.h>

#define NETWORK_BYTES 8 /* of an IPv6 address: a client with one address has all of its /64 */

struct http_origin http_origin_of(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;
	struct http_origin origin = { 0 };

	if (address->ss_family == AF_INET) {
		origin.bytes[0] = sizeof(v4->sin_addr);
		memcpy(origin.bytes + 1, &v4->sin_addr, sizeof(v4->sin_addr));
	} else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		origin.bytes[0] = sizeof(v4->sin_addr);
		memcpy(origin.bytes + 1, v6->sin6_addr.s6_addr + 12, sizeof(v4->sin_addr));
	} else if (address->ss_family == AF_INET6) {
		origin.bytes[0] = NETWORK_BYTES;
		memcpy(origin.bytes + 1, v6->sin6_addr.s6_addr, NETWORK_BYTES);
	}
	return origin;
}

bool http_origin_equal(const struct http_origin *one, const struct http_origin *other)
{
	return memcmp(one, other, sizeof(*one)) == 0;
}

/* Its index; shares->len if it has nothing. */
static size_t shares_find(const struct shares *shares, const struct http_origin *origin)
{
	size_t i = 0;

	while (i < shares->len && !http_origin_equal(&shares->of[i].origin, origin))
		i++;
	return i;
}

size_t shares_held(const struct shares *shares, const struct http_origin *origin)
{
	size_t i = shares_find(shares, origin);

	return i < shares->len ? shares->of[i].held : 0;
}

static size_t shares_most(const struct shares *shares)
{
	size_t most = 0;

	for (size_t i = 0; i < shares->len; i++)
		most = shares->of[i].held > most ? shares->of[i].held : most;
	return most;
}

void shares_take(struct shares *shares, const struct http_origin *origin)
{
	size_t i = shares_find(shares, origin);

	if (i == SHARES_MAX)
		return; /* the limits of its callers are lower */
	if (i == shares->len)
		shares->of[shares->len++] = (struct share){ .origin = *origin };
	shares->of[i].held++;
}

void shares_give_back(struct shares *shares, const struct http_origin *origin)
{
	size_t i = shares_find(shares, origin);

	if (i < shares->len && !--shares->of[i].held)
		shares->of[i] = shares->of[--shares->len];
}

bool shares_gives_way(const struct shares *shares, const struct http_origin *holder,
		      const struct http_origin *asking)
{
	size_t most = shares_most(shares);

	if (shares_held(shares, asking) >= most)
		return http_origin_equal(holder, asking);
	return shares_held(shares, holder) == most;
}
