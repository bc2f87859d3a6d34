/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the BPF objects, one per feature, and attaches their hooks. A feature that this kernel or
 * these privileges refuse is off, with its reason, and costs no other feature.
 *
 * Everything lives as long as the loader: nothing is pinned, so the kernel removes it all when the
 * process ends, however it ends.
 */
#ifndef WORKLOAD_KERNEL_LOADER_H
#define WORKLOAD_KERNEL_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/plan.h"
#include "kernel/refusal.h"
#include "kernel/walk.h"
#include "model/snapshot.h"
#include "security/privileges.h"

#define LOADER_FEATURES_MAX 16U
#define BACKEND_AUTO (-1)

struct bpf_program;

/* What became of it. */
struct feature_status {
	const char *name;
	bool optional;
	bool supports;
	bool on; /* loaded and all its hooks attached, or ready to be attached to a process */
	const char *backend; /* the label of what was taken, whether on or off; NULL: none */
	unsigned int since_major, since_minor; /* the Linux that has all it needs */
	const uint32_t *bytes; /* as in the backend that was taken; NULL: none */
	char reason[REFUSAL_REASON_BYTES]; /* why not; empty if on */
	char remedy[REFUSAL_REMEDY_BYTES]; /* what to do about it; empty if on */
};

struct loader_options {
	const struct feature_plan *plans[LOADER_FEATURES_MAX]; /* borrowed as long as the loader */
	size_t plans_len;
	unsigned int wanted; /* a bit per plan: others are not touched, and off */
	/* Of each plan the index of its backend, or BACKEND_AUTO: the first whose hooks exist. */
	int backends[LOADER_FEATURES_MAX];
	const struct privileges *privileges; /* borrowed; they only explain what cannot be loaded */
	const char *proc_root; /* tells how services are arranged (identity/cgroup.h) */
};

/*
 * Loads and attaches what can be. Returns 0 with *@loader set even if no feature is on (ask
 * loader_feature()); -errno only where memory or the system's description (CPUs) fails.
 */
int loader_new(const struct loader_options *options, struct loader **loader);
void loader_free(struct loader *loader);

/* Of the plan with this index. */
const struct feature_status *loader_feature(const struct loader *loader, size_t feature);

/* Every program, also of a feature that is off, with its feature and whether it is attached; valid
 * as long as the loader. */
const struct probe_row *loader_probes(const struct loader *loader, size_t *len);

/*
 * Of the probe with index @probe of loader_probes(): its hook, as in "tp_btf/sched_switch", and why
 * it is not attached: "" if it is.
 */
const char *loader_probe_hook(const struct loader *loader, size_t probe);
const char *loader_probe_reason(const struct loader *loader, size_t probe);

/* Descriptor of a shared map, by its name in bpf/lib; -ENOENT if no feature has made it. */
int loader_map_fd(const struct loader *loader, const char *name);

/* What the maps are sized for; valid as long as the loader. */
const struct map_sizes *loader_sizes(const struct loader *loader);

/* Whether any program of @walk is attached. */
bool loader_can_walk(const struct loader *loader, enum walk walk);

/* Goes through all of them. 0; -EOPNOTSUPP if no feature has it; -errno. */
int loader_walk(struct loader *loader, enum walk walk);

/* The same, and calls @row with all that they write, row by row. */
int loader_walk_rows(struct loader *loader, enum walk walk, walk_row_fn row, void *arg);

/* The same, in parts (walks_run()): 1 at @until_ns, and then @cursor tells where to go on. */
int loader_walk_some(struct loader *loader, enum walk walk, struct walk_cursor *cursor,
		     uint64_t until_ns);

/* Lets the perf events that run @program do so, or stand still (kernel/perf_events.h). 0; -ENOENT;
 * -errno. */
int loader_run_perf(const struct loader *loader, const char *program, bool run);

/* A program by name, of a feature that is wanted; NULL if there is none. The loader's. */
struct bpf_program *loader_program(const struct loader *loader, const char *name);

/*
 * Events that were not seen, of all programs together, because the kernel skips a program that is
 * running on the same CPU already; spares_skipped() tells how they are counted.
 */
uint64_t loader_skipped(const struct loader *loader);

/*
 * Run time and runs of each program that is loaded, valid until the next call. Zero unless the
 * kernel keeps BPF statistics.
 */
const struct program_row *loader_programs(struct loader *loader, size_t *len);

#endif
