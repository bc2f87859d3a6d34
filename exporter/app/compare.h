/* SPDX-License-Identifier: Apache-2.0 */
/* The command `workload_exporter profile --diff BEFORE AFTER`. */
#ifndef WORKLOAD_APP_COMPARE_H
#define WORKLOAD_APP_COMPARE_H

#include "base/buffer.h"
#include "profiles/difference.h"
#include "security/sandbox.h"

struct comparing {
	const char *paths[DIFFERENCE_SIDES];
	const char *proc_root; /* where privileges are told */
	enum sandbox_mode sandbox;
};

/*
 * Reads both files, gives up all privileges for good, and appends what has changed to @out, which
 * may be written then to what is open. 0, or -errno, which has been said on standard error.
 */
int compare(const struct comparing *comparing, struct buffer *out);

#endif
