/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler: takes profiles while one is waited for, and does nothing else. The clock of
 * the kernel side runs while at least one is being taken; all that are share its samples.
 *
 * One thread; all of it in the exporter's loop.
 */
#ifndef WORKLOAD_PROFILES_PROFILER_H
#define WORKLOAD_PROFILES_PROFILER_H

#include "abi/profiles.h"
#include "base/loop.h"
#include "helpers/helper.h"
#include "http/page.h"
#include "kernel/loader.h"
#include "model/ledger.h"
#include "model/snapshot.h"
#include "profiles/wanted.h"
#include "registry/registry.h"

#define PROFILES_MAX 4U /* that are taken at the same time */
#define PROFILER_ROWS (STACK_ENDS + 1) /* of samples */
#define PROFILE_LATE_MS ((PROFILE_SECONDS_MAX + 30) * 1000) /* to an answer, all in all */

/* All of it is borrowed. */
struct profiler_env {
	struct loader *loader; /* with the feature on */
	const struct registry *registry;
	const struct ledger *ledger;
	struct loop *loop;
	struct helper *opener, *parser;
};

struct profiler;

/* 0 with @out, which profiler_free() releases; -errno. */
int profiler_new(const struct profiler_env *env, struct profiler **out);
void profiler_free(struct profiler *profiler); /* NULL is nothing */

/* The page /debug/pprof/profile (http_page_fn): `seconds`, `workload`, `format`. */
int profiler_page(void *profiler, const struct http_request *request, struct http_page *page);

/* Takes what was sampled so far: before a tree goes whose name it needs. 0; -EAGAIN: not all of it,
 * call again; -errno. */
int profiler_take(struct profiler *profiler);

/* What has become of all samples, by how their stacks end. */
void profiler_count(struct profiler *profiler, struct profile_row rows[static PROFILER_ROWS]);

/* How full the tables are that limit what can be followed: of processes, and of files' rows. */
size_t profiler_maps(const struct profiler *profiler, struct map_row rows[static 2]);

#endif
