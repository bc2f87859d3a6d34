/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pre-flight: what this kernel and these privileges allow, one row per question, as a table for
 * people or as JSON for machines.
 *
 * It asks nothing of BPF itself: the caller adds what the loader found, so that the check and the
 * start of the exporter have one truth and use the same words. All text is valid as long as
 * the struct and the loader are.
 */
#ifndef WORKLOAD_COMMANDS_PREFLIGHT_H
#define WORKLOAD_COMMANDS_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "identity/cgroup.h"
#include "kernel/loader.h"
#include "security/privileges.h"

#define PREFLIGHT_NAME_BYTES 96
#define PREFLIGHT_RELEASE_BYTES 65 /* as in utsname(2) */

enum preflight_section {
	PREFLIGHT_FEATURES,
	PREFLIGHT_HOOKS,
	PREFLIGHT_PRIVILEGES,
	PREFLIGHT_KERNEL,
	PREFLIGHT_PROCESSES,
	PREFLIGHT_SECTIONS
};

/* The answers to all, and the exit codes of the check. */
enum preflight_result { PREFLIGHT_ALL = 0, PREFLIGHT_SOME = 1, PREFLIGHT_NONE = 2 };

struct preflight_row {
	enum preflight_section section;
	const char *feature; /* of a hook: the feature that needs it; else NULL */
	const char *program; /* of a hook: the program that it runs; else NULL */
	char name[PREFLIGHT_NAME_BYTES];
	bool ok;
	char reason[REFUSAL_REASON_BYTES]; /* why not, and what is lost by it; a detail if ok */
	char remedy[REFUSAL_REMEDY_BYTES]; /* what to do; "" if ok or if the feature says it */
};

/* Zeroed: empty. */
struct preflight {
	const char *version; /* of the exporter */
	char release[PREFLIGHT_RELEASE_BYTES]; /* of the kernel */
	struct preflight_row *rows; /* owned */
	size_t rows_len, rows_size;
	struct preflight_row lost; /* in place of one that there is no memory for */
	int error; /* -ENOMEM: rows are missing */
	const struct feature_status *features[LOADER_FEATURES_MAX]; /* borrowed from the loader */
	size_t features_len;
};

/* What the machine offers. */
struct preflight_machine {
	char release[PREFLIGHT_RELEASE_BYTES];
	bool btf; /* the kernel describes its types */
	bool proc_mounted;
	bool proc_initial; /* /proc/self is in the initial PID namespace, whose ids BPF sees */
	struct cgroup_hierarchies cgroups;
	unsigned long multipath; /* sockets of Multipath TCP in this network namespace */
	bool proc_all; /* processes of other users are visible: no hidepid, or it is overridden */
};

/* Asks uname(2), /sys, and @proc_root; what cannot be read is false or "". */
void preflight_machine_read(const char *proc_root, struct preflight_machine *out);

/* Each adds the rows of its section. */
void preflight_add_feature(struct preflight *preflight, const struct feature_status *feature);
void preflight_add_hook(struct preflight *preflight, const struct probe_row *probe,
			const char *hook, const char *reason);
void preflight_add_privileges(struct preflight *preflight, const struct privileges *privileges);
/* After the features: the kernel's version is compared with what they need. */
void preflight_add_machine(struct preflight *preflight, const struct preflight_machine *machine);

/* All: every default feature is on. None: nothing can be measured. */
enum preflight_result preflight_result(const struct preflight *preflight);

/* Both append to @out. 0, or an error: rows are missing, or the buffer's. */
int preflight_render_table(const struct preflight *preflight, struct buffer *out);
int preflight_render_json(const struct preflight *preflight, struct buffer *out);

void preflight_free(struct preflight *preflight);

#endif
