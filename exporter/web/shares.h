/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares: who holds how much of what there is only so much of (connections, pages that are sent),
 * by where clients come from.
 *
 * There is one rule for all of it: as long as there is some left any origin may have it, and when
 * there is none the origin that holds the most gives way, which may be the one that asks. So an
 * origin that takes a lot gets what others leave, and one that wants little always gets it.
 */
#ifndef WORKLOAD_WEB_SHARES_H
#define WORKLOAD_WEB_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Where a client comes from: an IPv4 address, or the network /64 of an IPv6 address, or nothing. */
struct http_origin {
	uint8_t bytes[9]; /* the family's length, then the address */
};

/* An origin from an address of a socket; IPv4 inside IPv6 is IPv4. */
struct http_origin http_origin_of(const struct sockaddr_storage *address);
bool http_origin_equal(const struct http_origin *one, const struct http_origin *other);

#define SHARES_MAX 256 /* things held at the same time, and so origins */

struct share {
	struct http_origin origin;
	size_t held; /* not 0 */
};

struct shares {
	struct share of[SHARES_MAX];
	size_t len;
};

/* @origin has one more, one less. It gives back only what it has taken. */
void shares_take(struct shares *shares, const struct http_origin *origin);
void shares_give_back(struct shares *shares, const struct http_origin *origin);

size_t shares_held(const struct shares *shares, const struct http_origin *origin);

/* Where none is left and @asking wants one: whether @holder, which has one, may have to go. */
bool shares_gives_way(const struct shares *shares, const struct http_origin *holder,
		      const struct http_origin *asking);

#endif
