/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: which tree of the kernel side is which workload of the ledger, from the moment its
 * founder listens until its last thread is gone and its numbers are folded.
 */
#ifndef WORKLOAD_COLLECT_REGISTRY_H
#define WORKLOAD_COLLECT_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/quotas.h"
#include "collect/naming.h"
#include "features/features.h"
#include "kernel/kernel.h"
#include "kernel/walk.h"
#include "model/ledger.h"
#include "security/namer.h"

struct registry {
	struct kernel *kernel; /* borrowed, as all of these */
	const struct features *features;
	struct ledger *ledger;
	struct naming naming;
	struct walk_cursor cursor; /* of the walk over descriptors that is not done yet */
	enum walk walk; /* which one: for listeners, then for what was connected at the start */
	bool walking; /* it is to be carried on */
	bool adopted; /* what was connected at the start is known */
	bool listeners_owed; /* the walk over descriptors is to be made, or has failed */
	bool tasks_owed; /* the same for tasks; or it could not do all */
	bool freed; /* a tree has ended since who was refused was looked for */
	uint64_t refusals; /* by tables, then */
	uint64_t quota_refusals[QUOTAS]; /* and of threads and listeners beyond their quotas */
	uint64_t sought_ns; /* and when that was; 0: never */
	uint64_t listeners_walked_ns; /* when the descriptors were walked last; 0: not yet */
	uint64_t ended_ns[TREES_MAX]; /* when found without threads and processes; 0: it lives */
};

void registry_init(struct registry *registry, struct kernel *kernel,
		   const struct features *features, struct ledger *ledger, struct namer *namer);

/*
 * Brings the registry up to date: asks who new trees are, folds and frees those that ended, walks
 * tasks, and once a second at most descriptors, where asked to. Cheap when there is nothing to do;
 * call it on the doorbell and at each scrape. Waits for who they are for @budget_ns at most, and
 * walks descriptors for as long as delays nobody; the rest is left to the next call, which is due
 * soon. 0, or -errno of a walk that failed (counted; numbers stay right but may be incomplete until
 * a later call, which does it once more).
 */
int registry_refresh(struct registry *registry, uint64_t now_ns, uint64_t budget_ns);

/* Takes what the namer has answered: call it when its descriptor is readable. */
void registry_answered(struct registry *registry);

/*
 * The first refresh: looks for who listens already, and for their connections. What takes more than
 * @budget_ns is done by the refreshes that follow. 0 or -errno of a walk.
 */
int registry_adopt(struct registry *registry, uint64_t now_ns, uint64_t budget_ns);

/* When the next refresh is due although nothing rings (CLOCK_MONOTONIC); UINT64_MAX: none is. */
uint64_t registry_due_ns(const struct registry *registry);

/* Whether it is known which workload @tree is; if so, *@handle. */
bool registry_find(const struct registry *registry, uint32_t tree, ledger_handle *handle);

#endif
