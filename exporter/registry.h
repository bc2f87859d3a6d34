/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: which tree of the kernel side is which workload of the ledger, from the moment its
 * founder listens until its last thread is gone and its numbers are folded.
 */
#ifndef WORKLOAD_REGISTRY_H
#define WORKLOAD_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger.h"
#include "read/kernel.h"
#include "security/namer.h"

/* What the registry knows of a tree. */
struct member {
	bool known;
	uint32_t tgid; /* with start_ns: the founder that was identified */
	uint64_t start_ns;
	uint64_t ended_ns; /* when it was found without threads and processes; 0: it lives */
	ledger_handle handle;
};

struct registry {
	struct kernel *kernel; /* borrowed, as all of these */
	struct ledger *ledger;
	struct namer *namer;
	bool listeners_owed; /* the walk over descriptors has failed */
	bool tasks_owed; /* the walk over tasks has failed, or could not do all */
	uint64_t listeners_walked_ns; /* when the descriptors were walked last; 0: not yet */
	struct member members[TREES_MAX];
};

void registry_init(struct registry *registry, struct kernel *kernel, struct ledger *ledger,
		   struct namer *namer);

/*
 * Brings the registry up to date: identifies new trees, folds and frees those that ended, walks
 * tasks, and once a second at most descriptors, where asked to. Cheap when there is nothing to do;
 * call it on the doorbell and at each scrape. 0, or -errno of a walk that failed (counted; numbers
 * stay right but may be incomplete until a later call, which does it once more).
 */
int registry_refresh(struct registry *registry, uint64_t now_ns);

/* Whether @tree is known, and then its workload. Unknown: founded since the last refresh. */
bool registry_find(const struct registry *registry, uint32_t tree, ledger_handle *handle);

/* Number of trees that are known. */
size_t registry_len(const struct registry *registry);

#endif
