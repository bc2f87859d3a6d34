/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all features share of the kernel side: the trees, the bounds that its tables have, and what
 * was lost, by both sides.
 */
#ifndef WORKLOAD_KERNEL_KERNEL_H
#define WORKLOAD_KERNEL_KERNEL_H

#include <stdint.h>

#include "abi/drops.h"
#include "abi/limits.h"
#include "kernel/sizes.h"
#include "kernel/view.h"
#include "model/snapshot.h"

struct kernel {
	struct loader *loader; /* borrowed */
	struct map_sizes sizes;
	int64_t ahead_ns; /* the exporter's CLOCK_MONOTONIC, of the kernel side's (timens.h) */
	int free_trees; /* descriptor of their free list */
	struct view trees;
	struct view shares; /* struct user_share */
	struct view quotas; /* struct quota */
	struct view drops;
	uint64_t lost[DROP_REASONS]; /* by user space, and by trees that have ended */
};

/* Opens the views. 0 or -errno; on failure nothing is left open. */
int kernel_open(struct kernel *kernel, struct loader *loader, const char *proc_root);
void kernel_close(struct kernel *kernel);

/* The exporter's @now_ns as the kernel side stamps it: compare its stamps with nothing else. */
static inline uint64_t kernel_time_ns(const struct kernel *kernel, uint64_t now_ns)
{
	return now_ns - (uint64_t)kernel->ahead_ns;
}

/*
 * Whether what is done after the start, looking maps up and walking, works with the capabilities
 * that are effective now. Looks for listeners as a side effect, which does no harm.
 */
bool kernel_is_usable(struct kernel *kernel);

/* Losses of both sides into @rows, one per reason, in the order of abi/drops.h. */
void kernel_drops(struct kernel *kernel, struct drop_row rows[static DROP_REASONS]);

/* Losses of both sides for one reason. */
uint64_t kernel_lost(struct kernel *kernel, enum drop_reason reason);

/* Counts a loss of @tree, or of no tree (SLOT_OTHER). */
void kernel_drop(struct kernel *kernel, uint32_t tree, enum drop_reason reason);

/* Adds what @tree has lost to @sums. */
void kernel_drops_of(struct kernel *kernel, uint32_t tree, uint64_t sums[static DROP_REASONS]);

/* The same, of a tree that is to begin anew: it has lost nothing after that, all have as before. */
void kernel_drops_take(struct kernel *kernel, uint32_t tree, uint64_t sums[static DROP_REASONS]);

#endif
