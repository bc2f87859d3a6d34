/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of the kernel side: which ask for attention, and what is left of those that ended. The
 * doorbell only wakes; the truth is in the table, so a lost ring delays and loses nothing.
 */
#ifndef WORKLOAD_KERNEL_TREES_H
#define WORKLOAD_KERNEL_TREES_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/shares.h"
#include "kernel/kernel.h"

/* Copies tree @slot. 1 if it is in use, 0 if it is not, -errno. */
int trees_read(struct kernel *kernel, uint32_t slot, struct tree *tree);

/* Clears those requests for a walk or for identification; true if any was set. */
bool trees_take_flags(struct kernel *kernel, uint32_t slot, uint32_t flags);

/* Some of its threads are not where they may be: the next refresh walks the tasks. */
void trees_ask_walk(struct kernel *kernel, uint32_t slot);

/* Whether what waits in the tree are tasks, and not its threads (runtime.h). */
void trees_set_tasks(struct kernel *kernel, uint32_t slot, bool tasks);

/* Makes @heir, a process of the tree, its head. */
void trees_set_head(struct kernel *kernel, uint32_t slot, const struct tree_process *heir);

/* No process and no thread of it is left. */
bool tree_ended(const struct tree *tree);

/*
 * An entry that tree @slot had of table @kind (SHARE_) is free: its user has one less, and so has
 * the tree, unless it was the tree's @other.
 */
void trees_give_back(struct kernel *kernel, uint32_t slot, unsigned int kind, bool other);

/*
 * Returns the slot of an ended tree, of which no feature keeps anything, to the kernel side. Its
 * counts are not reset: what is late to go still counts itself out.
 */
int trees_free(struct kernel *kernel, uint32_t slot);

#endif
