/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are drawn: the same ones in every run. */
#ifndef TESTS_DRAWS_H
#define TESTS_DRAWS_H

#include <stdint.h>

/* xorshift64*. */
static inline uint64_t random_below(uint64_t *seed, uint64_t limit)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (*seed * 2685821657736338717ULL >> 32) % limit;
}

#endif
