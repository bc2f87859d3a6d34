/* SPDX-License-Identifier: Apache-2.0 */
/* Thread pools of the kernel side as rows of the snapshot. */
#ifndef WORKLOAD_READ_THREADS_H
#define WORKLOAD_READ_THREADS_H

#include <stdint.h>

#include "read/kernel.h"
#include "snapshot.h"

#define THREADS_NAME_LEN 48 /* valid UTF-8: each of the 15 bytes may need three, and a NUL */

/*
 * Reads pool @slot into @row (names are left NULL), open intervals included up to @now_ns, a
 * CLOCK_MONOTONIC time taken before the call. Returns 1 if the slot is in use, 0 if it is not,
 * -EAGAIN if a shard kept changing (counted as torn), -errno. @tree and @name say whose it is;
 * SLOT_OTHER is always in use, and nobody's (0, "other").
 */
int threads_read(struct kernel *kernel, uint32_t slot, uint64_t now_ns, uint32_t *tree,
		 char name[static THREADS_NAME_LEN], struct pool_row *row);

/* Returns @slot to the kernel side, zeroed. No thread may be counted in it any more. */
int threads_free(struct kernel *kernel, uint32_t slot);

#endif
