/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler: takes profiles while one is waited for, and does nothing else unless call sites of
 * locks are wanted as metrics. The kernel side samples CPU time while at least one profile of it is
 * being taken, page faults likewise, and looks at waits while one of these is, or for the metrics;
 * all share what is told.
 *
 * One thread; all of it in the exporter's loop.
 */
#ifndef WORKLOAD_PROFILES_PROFILER_H
#define WORKLOAD_PROFILES_PROFILER_H

#include "abi/limits.h"
#include "abi/profiles.h"
#include "base/loop.h"
#include "helpers/helper.h"
#include "kernel/loader.h"
#include "model/ledger.h"
#include "model/snapshot.h"
#include "profiles/profile.h"
#include "registry/registry.h"

#define PROFILE_SECONDS_MAX 60U
#define PROFILER_ROWS (STACK_ENDS + 1) /* of samples */

/* All of it is borrowed. */
struct profiler_env {
	struct loader *loader; /* with the feature on */
	const struct registry *registry;
	const struct ledger *ledger;
	struct loop *loop;
	struct helper *opener, *parser;
	bool lock_sites; /* whether waits for locks are looked at all the time */
};

struct profiler;
struct profiler_run;

/* 0 with @out, which profiler_free() releases; -errno. */
int profiler_new(const struct profiler_env *env, struct profiler **out);
/* Gives up all that are being taken. NULL is nothing. */
void profiler_free(struct profiler *profiler);

/* Whether it is the name of a workload, that there are processes of or were not long ago. */
bool profiler_knows(const struct profiler *profiler, const char *workload);

/* The names of all that there are processes of, each once, by their bytes; good until the ledger
 * changes. Returns how many. */
size_t profiler_workloads(const struct profiler *profiler, const char *names[static TREES_MAX]);

/* @profile is good until this returns; NULL: there is none, for @error, as -E2BIG if too many
 * places in code were met. */
typedef void (*profiler_taken_fn)(void *arg, int error, const struct profile *profile);

/* A profile that is asked for. */
struct profiler_order {
	enum profile_kind kind;
	const char *workload; /* copied; "": all */
	uint64_t seconds; /* 1 to PROFILE_SECONDS_MAX */
	uint64_t settle_ns; /* at most, for reading code before the first sample */
	profiler_taken_fn taken; /* called once, by the loop, unless it is given up */
	void *arg;
};

/* 0 with @run, good until then; -ENOMEM. */
int profiler_begin(struct profiler *profiler, const struct profiler_order *order,
		   struct profiler_run **run);
void profiler_give_up(struct profiler_run *run);

/* Takes what was sampled so far: before a tree goes whose name it needs. 0; -EAGAIN: not all of it,
 * call again; -errno. */
int profiler_take(struct profiler *profiler);

/* Points @snapshot, whose pools are there, to what their waits for locks are by call site; if that
 * is looked at. */
void profiler_show_sites(struct profiler *profiler, struct snapshot *snapshot);

/* What has become of all samples, by how their stacks end. */
void profiler_count(struct profiler *profiler, struct profile_row rows[static PROFILER_ROWS]);

/* How full the tables are that limit what can be followed: of processes, and of files' rows. */
size_t profiler_maps(const struct profiler *profiler, struct map_row rows[static 2]);

#endif
