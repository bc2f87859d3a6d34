/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/extents.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static int extents_insert(struct extents *extents, size_t place, struct extent extent)
{
	struct extent *free = array_grow(extents->free, extents->len, &extents->size, SIZE_MAX,
					 sizeof(*free));

	if (!free)
		return -errno;
	extents->free = free;
	memmove(extents->free + place + 1, extents->free + place,
		(extents->len - place) * sizeof(*extents->free));
	extents->free[place] = extent;
	extents->len++;
	return 0;
}

static void extents_remove(struct extents *extents, size_t place)
{
	extents->len--;
	memmove(extents->free + place, extents->free + place + 1,
		(extents->len - place) * sizeof(*extents->free));
}

int extents_init(struct extents *extents, uint32_t reserved, uint32_t len)
{
	*extents = (struct extents){ 0 };
	return extents_insert(extents, 0, (struct extent){ reserved, len - reserved });
}

int extents_take(struct extents *extents, uint32_t len, uint32_t *at)
{
	for (size_t i = 0; i < extents->len; i++) {
		struct extent *free = &extents->free[i];

		if (free->len < len)
			continue;
		*at = free->at;
		free->at += len;
		free->len -= len;
		if (!free->len)
			extents_remove(extents, i);
		return 0;
	}
	*at = 0;
	return len ? -ENOSPC : 0;
}

int extents_give(struct extents *extents, uint32_t at, uint32_t len)
{
	size_t i = 0;
	bool follows, precedes;

	if (!len)
		return 0;
	while (i < extents->len && extents->free[i].at < at)
		i++;
	follows = i && extents->free[i - 1].at + extents->free[i - 1].len == at;
	precedes = i < extents->len && at + len == extents->free[i].at;
	if (!follows && !precedes)
		return extents_insert(extents, i, (struct extent){ at, len });
	if (!follows) {
		extents->free[i].at = at;
		extents->free[i].len += len;
		return 0;
	}
	extents->free[i - 1].len += len;
	if (precedes) {
		extents->free[i - 1].len += extents->free[i].len;
		extents_remove(extents, i);
	}
	return 0;
}

void extents_free(struct extents *extents)
{
	free(extents->free);
	*extents = (struct extents){ 0 };
}
