/* SPDX-License-Identifier: Apache-2.0 */
#include "web/origin.h"

#include <netinet/in.h>

#define NETWORK_BYTES 8 /* of an IPv6 address: a client that has one has all of its /64 */

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
