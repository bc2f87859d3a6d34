/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the kernel refuses a feature, in words for an operator: the reason, and what to do.
 *
 * An error number alone misleads: -EPERM is a missing capability, a user namespace or a security
 * module; -EACCES is mostly the verifier; -ESRCH is a hook that this kernel does not have.
 */
#ifndef WORKLOAD_KERNEL_REFUSAL_H
#define WORKLOAD_KERNEL_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

#include "security/privileges.h"

/* What to do where the kernel does not describe its types. */
#define REFUSAL_REMEDY_BTF "use a kernel built with CONFIG_DEBUG_INFO_BTF, with /sys mounted"

#define REFUSAL_REASON_BYTES 768
#define REFUSAL_REMEDY_BYTES 256

/* What is known about a refusal. Texts are never NULL; "" is nothing. */
struct refusal {
	const char *step; /* what failed: "loading", "attaching threads_switch" */
	int error; /* -errno of it */
	const char *missing; /* hooks that this kernel does not have, in words */
	const char *program; /* the program that the verifier refused */
	const char *log; /* the verifier's log for it */
	const char *needs; /* "Linux 5.15 or later" */
	bool btf; /* whether the kernel describes its types */
	const struct privileges *privileges;
};

/* Fills @reason (REFUSAL_REASON_BYTES) and @remedy (REFUSAL_REMEDY_BYTES). */
void refusal_explain(const struct refusal *refusal, char *reason, char *remedy);

/*
 * The last three lines of a verifier's log, joined by " | ", in @out of @size bytes; of a line that
 * does not fit its end is kept. The statistics at the end, which give no reason, are left out.
 */
void refusal_log_tail(const char *log, char *out, size_t size);

/*
 * The oldest Linux 5 on which all features can work, by its minor number: 15 (bpf_task_pt_regs),
 * and on @machine "aarch64" (as uname(2) calls it) 18, whose compiler for BPF is the first there
 * that knows atomic operations which return what was before.
 */
unsigned int refusal_oldest_minor(const char *machine);

#endif
