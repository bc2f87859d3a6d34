/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints of the kernel side as rows of the snapshot. */
#ifndef WORKLOAD_READ_REQUESTS_H
#define WORKLOAD_READ_REQUESTS_H

#include <stdint.h>

#include "read/kernel.h"
#include "snapshot.h"

/*
 * Takes stock of all tracked sockets: fills the gauges, settles answered requests. 0 or -errno;
 * costs about a hundred nanoseconds per open connection.
 */
int requests_sweep(struct kernel *kernel);

/*
 * Reads endpoint @slot into @row (names are left NULL), which must not be used on failure.
 * @swept_ns: when the last sweep began, CLOCK_MONOTONIC: what it found waiting may have been read
 * since, so ages are of that moment. Returns 1 if the slot is in use, 0 if it is not, -errno. @tree
 * and @port say whose it is; SLOT_OTHER is always in use, and nobody's (0, 0).
 */
int requests_read(struct kernel *kernel, uint32_t slot, uint64_t swept_ns, uint32_t *tree,
		  uint16_t *port, struct endpoint_row *row);

/* From now on nothing is added to @slot: sockets that still remember it are stale. */
int requests_close(struct kernel *kernel, uint32_t slot);

/* Returns a closed @slot to the kernel side, zeroed. */
int requests_free(struct kernel *kernel, uint32_t slot);

/* Adds every cell of @from to @to. */
void hist_merge(struct hist *to, const struct hist *from);

#endif
