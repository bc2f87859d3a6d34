/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel side's tables as user space sees them: views of all maps, the bounds they have, and
 * the losses user space itself has to count.
 */
#ifndef WORKLOAD_READ_KERNEL_H
#define WORKLOAD_READ_KERNEL_H

#include <stdint.h>

#include "abi/drops.h"
#include "abi/limits.h"
#include "read/sizes.h"
#include "read/view.h"
#include "snapshot.h"

struct kernel {
	struct loader *loader; /* borrowed */
	struct map_sizes sizes;
	int pool_slots; /* descriptors of hash tables and free lists */
	int endpoint_slots;
	int free_trees;
	int free_pools;
	int free_endpoints;
	struct view trees;
	struct view endpoint_info;
	struct view endpoints;
	struct view endpoint_gauges;
	struct view pool_info;
	struct view pool_states;
	struct view pool_waits;
	struct view drops;
	uint64_t lost[DROP_REASONS]; /* counted by user space */
};

/* Opens the views. 0 or -errno; on failure nothing is left open. */
int kernel_open(struct kernel *kernel, struct loader *loader);
void kernel_close(struct kernel *kernel);

/*
 * Whether what is done after the start, looking maps up and walking, works with the capabilities
 * that are effective now. Looks for listeners as a side effect, which does no harm.
 */
bool kernel_is_usable(struct kernel *kernel);

/* Losses of both sides into @rows, one per reason, in the order of abi/drops.h. */
void kernel_drops(struct kernel *kernel, struct drop_row rows[static DROP_REASONS]);

#define KERNEL_MAPS 5
/*
 * How full the tables are: trees, endpoints, pools; threads and sockets, which the kernel stores
 * with their owners, without a capacity (0). Sockets as of the last sweep.
 */
void kernel_maps(struct kernel *kernel, struct map_row rows[static KERNEL_MAPS]);

#endif
