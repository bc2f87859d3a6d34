/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One profile that is being taken, from the order to the answer; and the profiler as its runs see
 * it (profiles/profiler.h).
 */
#ifndef WORKLOAD_PROFILES_RUN_H
#define WORKLOAD_PROFILES_RUN_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/units.h"
#include "profiles/lock_sites.h"
#include "profiles/profiler.h"
#include "profiles/recording.h"
#include "profiles/sampling.h"
#include "profiles/survey.h"
#include "profiles/tables.h"

enum run_state { RUN_SETTLES, RUN_SAMPLES, RUN_NAMES };

struct profiler_run {
	struct profiler *profiler;
	profiler_taken_fn taken;
	void *arg;
	struct recording *recording;
	enum run_state state;
	uint64_t wanted_ns; /* how long */
	uint64_t until_ns; /* the end of the state, at the latest */
	uint64_t begun_ns, time_ns; /* CLOCK_MONOTONIC; CLOCK_REALTIME */
	uint64_t lost; /* in the sets, when it began */
	struct survey_wish wish;
	TAILQ_ENTRY(profiler_run) link;
};

struct profiler {
	struct profiler_env env;
	struct tables tables;
	struct sampling sampling;
	struct survey survey;
	TAILQ_HEAD(, profiler_run) runs; /* the oldest first */
	size_t recorded; /* bytes of all their recordings */
	struct lock_sites *lock_sites; /* owned; NULL: they are not wanted */
	struct survey_wish sites_wish;
	struct survey_wish *naming; /* that the survey has; NULL: none */
	uint64_t tick_ns, idle_ns; /* when the next is due; UINT64_MAX: none */
	uint64_t sites_ns; /* when places may be asked for next */
	uint64_t ends[STACK_ENDS], lost; /* samples, ever; lost: without those of the sets */
	struct loop_job job;
	struct loop_watch opener, parser;
};

#define PROFILER_IDLE_NS (60 * NS_PER_S) /* what was read of code stays so long without use */

/* As profiler_take(), also what was sampled for what is no more. */
int profiler_drain(struct profiler *profiler);

/* The kernel side samples what is wanted. 0 or -errno. */
int profiler_sample(struct profiler *profiler);

/* Goes on with it, if it can. It may be gone then. */
void run_go_on(struct profiler_run *run, uint64_t now_ns);

/* When it is to go on although nothing has answered; UINT64_MAX: never. */
uint64_t run_due_ns(const struct profiler_run *run);

#endif
