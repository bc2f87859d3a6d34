/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locals that release themselves at the end of their scope, so that a function can be checked
 * without following every return. TAKE_PTR and TAKE_FD hand a value over and disarm the cleanup.
 */
#ifndef WORKLOAD_BASE_CLEANUP_H
#define WORKLOAD_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(function)))

/* Frees a void ** and its kin; for _cleanup_(cleanup_free). */
static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

/* Closes a descriptor; a negative one is none. */
static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define TAKE_PTR(pointer)                               \
	({                                              \
		__typeof__(pointer) _taken = (pointer); \
		(pointer) = NULL;                       \
		_taken;                                 \
	})

#define TAKE_FD(fd)                \
	({                         \
		int _taken = (fd); \
		(fd) = -1;         \
		_taken;            \
	})

#endif
