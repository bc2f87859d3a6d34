/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of the kernel side: who asks for attention, and what is left of those that ended. The
 * doorbell only wakes; the truth is in the table, so a lost ring delays and loses nothing.
 */
#ifndef WORKLOAD_READ_TREES_H
#define WORKLOAD_READ_TREES_H

#include <stdbool.h>
#include <stdint.h>

#include "read/kernel.h"

/* Copies tree @slot. 1 if it is in use, 0 if it is not, -errno. */
int trees_read(struct kernel *kernel, uint32_t slot, struct tree *tree);

/* Clears those requests for a walk or for identification; true if any was set. */
bool trees_take_flags(struct kernel *kernel, uint32_t slot, uint32_t flags);

/* No process and no thread of it is left. */
bool tree_ended(const struct tree *tree);

/* Takes away the keys of an ended tree, then frees its slot; its endpoints and pools come before.
 */
int trees_forget_endpoint(struct kernel *kernel, uint32_t tree, uint16_t port);
int trees_forget_pool(struct kernel *kernel, uint32_t tree, const char name[static COMM_LEN]);
int trees_free(struct kernel *kernel, uint32_t slot);

#endif
