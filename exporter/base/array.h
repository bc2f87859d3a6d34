/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow by doubling, up to a limit; and places in those that ascend. */
#ifndef WORKLOAD_BASE_ARRAY_H
#define WORKLOAD_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define ARRAY_FIRST 64U

/*
 * Room for one more at the end of @array, which has @len of *@size elements of @bytes in use: the
 * array, which may have moved. NULL with errno, and it is as it was: E2BIG: it has @max; ENOMEM.
 */
static inline void *array_grow(void *array, size_t len, size_t *size, size_t max, size_t bytes)
{
	size_t wanted = *size ? 2 * *size : ARRAY_FIRST;

	if (len >= max) {
		errno = E2BIG;
		return NULL;
	}
	if (len < *size)
		return array;
	array = reallocarray(array, wanted, bytes);
	if (array)
		*size = wanted;
	return array;
}

/*
 * The index of the first of @len items of @bytes, each of which begins with a number and ascend by
 * it, that is above @number; @len: none is.
 */
static inline size_t array_above(const void *items, size_t len, size_t bytes, uint64_t number)
{
	size_t from = 0, to = len;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (*(const uint64_t *)((const char *)items + middle * bytes) > number)
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}

/* The index of the first of @len numbers that ascend which is not below @number; @len: none is. */
static inline size_t array_first_at(const uint64_t *numbers, size_t len, uint64_t number)
{
	return number ? array_above(numbers, len, sizeof(*numbers), number - 1) : 0;
}

#endif
