/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: array maps of the kernel side, mapped into memory as far as they are in use. Reading them
 * costs no system call, and what no caller uses costs no resident memory.
 */
#ifndef WORKLOAD_KERNEL_VIEW_H
#define WORKLOAD_KERNEL_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/loader.h"

struct view {
	int fd; /* borrowed from the loader */
	unsigned char *base; /* NULL: nothing mapped yet */
	size_t mapped; /* elements */
	size_t entries; /* of the map */
	size_t element_bytes;
};

/*
 * Opens map @name, whose values must be @element_bytes long (a multiple of eight). 0; -ENOENT;
 * -EPROTO if the kernel side has another layout; -errno.
 */
int view_open(struct view *view, const struct loader *loader, const char *name,
	      size_t element_bytes);
void view_close(struct view *view);

/*
 * Element @index, mapping more of the map if need be. NULL beyond the map or without memory. The
 * pointer is good until the next call for a higher index: that may move the mapping.
 */
void *view_at(struct view *view, size_t index);

/* All elements, at a place that stays. NULL without memory. */
void *view_all(struct view *view);

#endif
