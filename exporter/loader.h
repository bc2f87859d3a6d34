/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the BPF objects, one per feature, and attaches their hooks. A feature that this kernel or
 * these privileges refuse is off, with its reason, and costs no other feature.
 *
 * Everything lives as long as the loader: nothing is pinned, so the kernel removes it all when the
 * process ends, however it ends.
 */
#ifndef WORKLOAD_LOADER_H
#define WORKLOAD_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include "backend.h"
#include "privileges.h"
#include "read/sizes.h"
#include "read/walk.h"
#include "refusal.h"
#include "snapshot.h"

enum feature_id {
	FEATURE_DISCOVERY,
	FEATURE_REQUESTS,
	FEATURE_THREADS,
	FEATURE_MUTEX, /* probes on mutexes: only if asked for */
	FEATURES
};
#define FEATURES_ALL ((1U << FEATURES) - 1)

struct feature {
	const char *name;
	bool optional; /* not on by default */
	bool on; /* loaded and all its hooks attached, or ready to be attached to a process */
	unsigned int since_major, since_minor; /* the Linux that has all it needs */
	char reason[REFUSAL_REASON_BYTES]; /* why not; empty if on */
	char remedy[REFUSAL_REMEDY_BYTES]; /* what to do about it; empty if on */
};

struct loader;
struct bpf_program;

/*
 * Loads and attaches what can be; of requests the backend asked for, where BACKEND_AUTO is the
 * socket backend if this kernel has its hooks, else the syscall backend. @privileges, which must
 * outlive the call, only explain what cannot. Returns 0 with *@loader set even if no feature is on
 * (ask loader_feature()); -errno only where memory or the system's description (CPUs) fails.
 * @features is a mask of 1 << feature_id: others are not touched, and off.
 */
int loader_new(const struct privileges *privileges, unsigned int features, enum backend requests,
	       struct loader **loader);
void loader_free(struct loader *loader);

const struct feature *loader_feature(const struct loader *loader, enum feature_id feature);

/* Every program, also of a feature that is off, with its feature and whether it is attached; valid
 * as long as the loader. */
const struct probe_row *loader_probes(const struct loader *loader, size_t *len);

/*
 * Of the probe with index @probe of loader_probes(): its hook, as in "tp_btf/sched_switch", and why
 * it is not attached: "" if it is.
 */
const char *loader_probe_hook(const struct loader *loader, size_t probe);
const char *loader_probe_reason(const struct loader *loader, size_t probe);

/* Descriptor of a shared map, by its name in bpf/lib/maps.h; -ENOENT if there is none. */
int loader_map_fd(const struct loader *loader, const char *name);

/* What the maps are sized for; valid as long as the loader. */
const struct map_sizes *loader_sizes(const struct loader *loader);

/* The backend of the feature requests, whether that is on or off; never BACKEND_AUTO. */
enum backend loader_backend(const struct loader *loader);

/* Goes through all of them. 0; -EOPNOTSUPP if the feature is off; -errno. */
int loader_walk(struct loader *loader, enum walk walk);

/* The same, and calls @row with all that they write, row by row. */
int loader_walk_rows(struct loader *loader, enum walk walk, walk_row_fn row, void *arg);

/* A program by name, of a feature that is wanted; NULL if there is none. The loader's. */
struct bpf_program *loader_program(const struct loader *loader, const char *name);

/*
 * Events that were not seen, of all programs together, because the kernel skips a program that is
 * running on the same CPU already; spares_skipped() tells how they are counted.
 */
uint64_t loader_skipped(const struct loader *loader);

/*
 * Run time and runs of each program, into @rows of @cap; returns how many. Zero unless the kernel
 * keeps BPF statistics.
 */
size_t loader_programs(const struct loader *loader, struct program_row *rows, size_t cap);

#endif
