/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: which tree of the kernel side is which workload of the ledger, from the moment its
 * founder listens until its last thread is gone and its numbers are folded.
 *
 * It lies below what is measured: it tells which trees have left `other` and which have ended, and
 * its user hands those to the features (collect/collector.h).
 */
#ifndef WORKLOAD_REGISTRY_REGISTRY_H
#define WORKLOAD_REGISTRY_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/quotas.h"
#include "kernel/kernel.h"
#include "kernel/walk.h"
#include "model/ledger.h"
#include "registry/naming.h"

struct registry {
	struct kernel *kernel; /* borrowed */
	struct naming naming;
	struct walk_cursor cursor; /* of the walk over descriptors that is not done yet */
	enum walk walk; /* which one: for listeners, then for what was connected at the start */
	bool walking; /* it is to be carried on */
	bool adopted; /* what was connected at the start is known */
	bool listeners_owed; /* the walk over descriptors is to be made, or has failed */
	bool tasks_owed; /* the same for tasks; or it could not do all */
	bool freed; /* a tree has ended since what was refused was looked for */
	uint64_t refusals; /* by tables, then */
	uint64_t quota_refusals[QUOTAS]; /* and of threads and listeners beyond their quotas */
	uint64_t sought_ns; /* and when that was; 0: never */
	uint64_t listeners_walked_ns; /* when the descriptors were walked last; 0: not yet */
	uint64_t ended_ns[TREES_MAX]; /* when found without threads and processes; 0: it lives */
};

void registry_init(struct registry *registry, struct kernel *kernel, struct ledger *ledger,
		   struct namer *namer);

/* --- a refresh, in this order: cheap when there is nothing to do ------------------------------ */

/* Takes what the namer has answered, also when its descriptor is readable. */
void registry_answered(struct registry *registry);

/*
 * Of each tree, one after the other: takes note of what has changed. Whether it has ended, and then
 * *@handle is the workload that it was. Once nothing is kept of it any more it is to be given back,
 * before the next one is looked at, which may want its room; until then each look finds it again.
 */
bool registry_look(struct registry *registry, uint32_t tree, uint64_t now_ns,
		   ledger_handle *handle);
void registry_give_back(struct registry *registry, uint32_t tree);

/*
 * Asks for the names of new trees, walks tasks, and once a second at most descriptors, where asked
 * to. Waits for answers for @budget_ns at most, and walks descriptors for 10 ms; the rest is left
 * to the next refresh, which is due soon. 0, or -errno of a walk that failed (counted; numbers stay
 * right but may be incomplete until a later refresh, which does it once more).
 */
int registry_seek(struct registry *registry, uint64_t now_ns, uint64_t budget_ns);

/*
 * Whether @tree has left `other` since this was asked last: what it has counted stays there. To be
 * asked after each of the three before.
 */
bool registry_take_left_other(struct registry *registry, uint32_t tree);

/* --------------------------------------------------------------------------------------------- */

/*
 * Before the first refresh: looks for what listens already, and for its connections. What takes
 * more than @budget_ns is done by the refreshes that follow. 0 or -errno of a walk.
 */
int registry_adopt(struct registry *registry, uint64_t budget_ns);

/* When the next refresh is due although nothing rings (CLOCK_MONOTONIC); UINT64_MAX: none is. */
uint64_t registry_due_ns(const struct registry *registry);

/* Whether it is known which workload @tree is; if so, *@handle. */
bool registry_find(const struct registry *registry, uint32_t tree, ledger_handle *handle);

#endif
