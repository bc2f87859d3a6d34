/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of an array are free: parts are taken and given back as a whole, the lowest first. */
#ifndef WORKLOAD_UNWIND_EXTENTS_H
#define WORKLOAD_UNWIND_EXTENTS_H

#include <stddef.h>
#include <stdint.h>

struct extent {
	uint32_t at, len;
};

struct extents {
	struct extent *free; /* owned; by place, none next to another */
	size_t len, size;
};

/* All of @len elements but the first @reserved are free. 0 or -ENOMEM; extents_free() releases. */
int extents_init(struct extents *extents, uint32_t reserved, uint32_t len);

/* Takes @len elements next to each other, at *@at. 0; -ENOSPC; @len 0 takes nothing. */
int extents_take(struct extents *extents, uint32_t len, uint32_t *at);

/* Gives back what was taken. 0; -ENOMEM: it stays taken. */
int extents_give(struct extents *extents, uint32_t at, uint32_t len);

void extents_free(struct extents *extents);

#endif
