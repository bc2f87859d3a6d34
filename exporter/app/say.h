/* SPDX-License-Identifier: Apache-2.0 */
/* What the log tells at the start: what is attached, what is missing, and what is watched. */
#ifndef WORKLOAD_APP_SAY_H
#define WORKLOAD_APP_SAY_H

#include "base/log.h"
#include "base/memory.h"
#include "kernel/loader.h"
#include "kernel/quotas.h"
#include "model/snapshot.h"
#include "security/privileges.h"

/* Of the features in the mask @wanted. 0; -EOPNOTSUPP if nothing can be measured. */
int say_features(const struct log *log, const struct loader *loader, unsigned int wanted);

/* What works, but tells less than it could: in the words of the check. */
void say_limits(const struct log *log, const struct privileges *privileges, const char *proc_root);

/* How many sockets and threads fit the memory limit. */
void say_memory(const struct log *log, const struct memory_limit *limit,
		const struct quotas_fit *fit);

/* The first services with their ports, in one line: enough to see that the right ones are found. */
void say_workloads(const struct log *log, const struct snapshot *snapshot);

#endif
