/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many sockets and threads may have state on the kernel side: as many as fit a share of what
 * the memory limit of the exporter's own cgroup leaves. How many bytes each takes, of all that the
 * cgroup is charged, the features tell (struct feature_backend).
 */
#ifndef WORKLOAD_KERNEL_QUOTAS_H
#define WORKLOAD_KERNEL_QUOTAS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/limits.h"
#include "abi/quotas.h"
#include "base/memory.h"
#include "base/units.h"
#include "kernel/kernel.h"

#define QUOTAS_RECOUNT_NS (10 * NS_PER_S) /* at least between two counts */

#define SOCKETS_MOST (SOCKETS_MAX - 1) /* for which the table of sockets has places */

struct quotas_fit {
	uint64_t max[QUOTAS];
};

/*
 * What fits @limit, as it is after the maps are made. Of what is left 16 MiB, or half where that is
 * less, are kept for connections beyond the quota: the kernel makes their marks before they can be
 * refused, and frees them after a grace period of RCU only, which takes long where no CPU is free.
 * Half of the rest is for sockets, SOCKETS_MOST at most, a quarter for threads, a quarter for user
 * space. @bytes: of each kind.
 */
void quotas_fit(const struct memory_limit *limit, const uint32_t bytes[static QUOTAS],
		struct quotas_fit *fit);

void quotas_set(struct kernel *kernel, const struct quotas_fit *fit);

/* How many of @kind (QUOTA_) have state now, and how many may; capacity 0: there is no bound. */
struct map_row quotas_row(struct kernel *kernel, unsigned int kind, const char *name);

/* Whether one more of @kind finds room. */
bool quotas_have_room(struct kernel *kernel, unsigned int kind);

/*
 * Counts the threads that have state by a walk over all of them, and puts right what is told by
 * events: one that the kernel did not tell of would take its room for ever. Such sockets each sweep
 * finds (bpf/requests/sweeps.h). 0, or a failure of loader_walk().
 */
int quotas_recount_threads(struct kernel *kernel);

#endif
