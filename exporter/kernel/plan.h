/* SPDX-License-Identifier: Apache-2.0 */
/* What the loader is told of a feature: its objects, walks, perf events and maps. */
#ifndef WORKLOAD_KERNEL_PLAN_H
#define WORKLOAD_KERNEL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/quotas.h"
#include "kernel/perf_events.h"
#include "kernel/sizes.h"
#include "kernel/walk.h"

#define FEATURE_BACKENDS_MAX 2U
#define FEATURE_WALKS_MAX 5U
#define FEATURE_PERF_MAX 3U
#define FEATURE_MAPS_SIZED_MAX 2U

struct loader;

/* One way to observe what a feature is about. */
struct feature_backend {
	const char *label; /* for flags and messages; NULL where there is one way only */
	const char *object; /* bpf/OBJECT.bpf.c */
	unsigned int since_major, since_minor; /* the Linux that has its hooks; 0: the oldest */
	uint32_t bytes[QUOTAS]; /* of kernel memory that it takes for each socket and thread */
};

struct feature_plan {
	const char *name;
	const char *requires; /* a feature before it, without which it is off; NULL: none */
	bool optional; /* not on by default */
	bool supports; /* measures nothing by itself: so is one without an object that needs none */
	struct feature_backend backends[FEATURE_BACKENDS_MAX]; /* ends with object NULL, or full */
	struct walk_program walks[FEATURE_WALKS_MAX]; /* ends with program NULL, or full */
	struct perf_program perf[FEATURE_PERF_MAX]; /* the same */
	/* How many slots its tables have on this machine; or NULL. And maps that depend on it. */
	void (*size)(struct map_sizes *sizes);
	struct map_plan maps[FEATURE_MAPS_SIZED_MAX]; /* ends with name NULL, or full */
	int (*fill)(const struct loader *loader); /* its tables, once they are made; or NULL */
};

/* How many backends it has; 0: it has no object. */
size_t plan_backends(const struct feature_plan *plan);

/*
 * How many entries map @name has, if one of the plans has that depend on the machine; 0: as many as
 * are declared. One, of a feature that is not among the bits of @wanted: then nothing fills it.
 */
unsigned int plans_map_entries(const struct feature_plan *const *plans, size_t len,
			       unsigned int wanted, const struct map_sizes *sizes,
			       const char *name);

#endif
