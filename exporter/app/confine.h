/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the exporter gives up what it does not need any more, in the right order: users are found
 * first, the namer starts before anything is loaded, the rest when all is attached and no client is
 * served yet. These functions log what went wrong.
 */
#ifndef WORKLOAD_APP_CONFINE_H
#define WORKLOAD_APP_CONFINE_H

#include <stdbool.h>

#include "base/log.h"
#include "features/features.h"
#include "kernel/kernel.h"
#include "registry/namer.h"
#include "security/capabilities.h"
#include "security/sandbox.h"

struct confine_options {
	const char *user; /* to become; NULL: keep the present one */
	enum sandbox_mode sandbox;
	const char *proc_root; /* borrowed while the namer lives */
	void *const *settings; /* of each feature; borrowed while its helpers start */
};

struct confinement {
	struct user user; /* of the process that serves */
	struct user helper; /* of the namer and of the process that compares passwords */
	enum sandbox_mode sandbox;
	struct namer *namer; /* owned by the caller: namer_stop() */
};

/* Finds the users to become, before any process is started. 0 or -errno. */
int confine_find_users(struct confinement *confinement, const struct confine_options *options,
		       const struct log *log);

/*
 * Starts the namer and the helpers of the features in @wanted, which inherit only what there is
 * now. 0 or -errno.
 */
int confine_prepare(struct confinement *confinement, const struct confine_options *options,
		    struct features *features, unsigned int wanted, const struct log *log);

/*
 * Drops the capabilities but for those without which this kernel does not let @kernel be read,
 * becomes the user and enters the sandbox; what those of @features that are on need besides is
 * kept, and the system calls of @own, if it is not NULL. 0, or -errno: then the process must end.
 */
int confine_enter(struct confinement *confinement, struct kernel *kernel,
		  const struct features *features, const struct needs *own, const struct log *log);

/*
 * Whether the namer still lives; call it when its descriptor is readable, and no more once it is
 * false. Without the namer the exporter goes on: every user may know units and containers.
 */
bool confine_check(struct confinement *confinement, const struct log *log);

#endif
