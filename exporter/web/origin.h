/* SPDX-License-Identifier: Apache-2.0 */
/* Where a client comes from: what is scarce (places, comparisons of passwords) is shared by that.
 */
#ifndef WORKLOAD_WEB_ORIGIN_H
#define WORKLOAD_WEB_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* An IPv4 address, or the network /64 of an IPv6 address, or nothing. */
struct http_origin {
	uint8_t bytes[9]; /* the family's length, then the address */
};

/* An origin from an address of a socket; IPv4 inside IPv6 is IPv4. */
struct http_origin http_origin_of(const struct sockaddr_storage *address);

static inline bool http_origin_equal(const struct http_origin *one, const struct http_origin *other)
{
	return memcmp(one, other, sizeof(*one)) == 0;
}

#endif
