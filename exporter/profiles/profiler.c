/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/profiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "profiles/run.h"

#define TICK_NS NS_PER_S /* between two looks for processes and samples */
#define LOOKED_AT (WAITS_LOOKED_AT | STATES_OF_FAULTS)
#define TAKE_TRIES 3 /* of a scrape, where a set cannot be read at once */
#define SITES_SHARE 10U /* names of call sites keep the parser busy for one part of so many, */
#define SITES_REST_NS NS_PER_S /* which is not made to wait longer than that */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* --- samples -------------------------------------------------------------------------------- */

/* NULL: @tree is of no workload. */
static const char *tree_workload(const struct profiler *profiler, uint32_t tree)
{
	ledger_handle handle;

	if (!registry_find(profiler->env.registry, tree, &handle))
		return NULL;
	return ledger_name(profiler->env.ledger, handle);
}

static void sample_take(void *arg, const void *key, const void *value)
{
	struct profiler *profiler = arg;
	const struct stack_key *stack_key = key;
	const struct stack *stack = value;
	const char *name = tree_workload(profiler, stack_key->tree);
	struct profiler_run *run;

	if (name)
		profiler->ends[stack->end < STACK_ENDS ? stack->end : STACK_NO_CODE] +=
			stack->samples;
	else
		profiler->lost += stack_lost(stack);
	TAILQ_FOREACH(run, &profiler->runs, link)
	{
		if (run->state != RUN_SAMPLES || !recording_is_of(run->recording, stack_key->state))
			continue;
		if (name)
			recording_add(run->recording, name, stack_key, stack);
		else
			recording_lose(run->recording, stack_lost(stack));
	}
	if (name && profiler->lock_sites && stack_key->state == STATE_LOCK)
		lock_sites_add(profiler->lock_sites, &profiler->survey.files, name, stack_key,
			       stack);
}

/* 1 << the state of what profiles want that are being taken; @workload NULL: of any. */
static uint64_t states_recorded(const struct profiler *profiler, const char *workload)
{
	const struct profiler_run *run;
	uint64_t states = 0;

	TAILQ_FOREACH(run, &profiler->runs, link)
	{
		if (run->state == RUN_SAMPLES &&
		    (!workload || recording_wants(run->recording, workload)))
			states |= recording_states(run->recording);
	}
	return states;
}

int profiler_drain(struct profiler *profiler)
{
	return sampling_take(&profiler->sampling, true, sample_take, profiler);
}

/* Waits that last are only for profiles: to metrics a wait is told when it ends. */
int profiler_take(struct profiler *profiler)
{
	bool lasting = states_recorded(profiler, NULL) & WAITS_LOOKED_AT;

	if (!sampling_runs(&profiler->sampling))
		return 0;
	return sampling_take(&profiler->sampling, lasting, sample_take, profiler);
}

void profiler_count(struct profiler *profiler, struct profile_row rows[static PROFILER_ROWS])
{
	static const char *const labels[] = {
#define STACK_END(id, label) [STACK_##id] = label,
		STACK_END_LIST(STACK_END)
#undef STACK_END
	};
	struct sampling *sampling = &profiler->sampling;

	for (size_t end = 0; end < STACK_ENDS; end++)
		rows[end] = (struct profile_row){ labels[end], profiler->ends[end] };
	rows[STACK_ENDS] = (struct profile_row){ "lost", profiler->lost +
								 sampling_lost(sampling, false) +
								 sampling_lost(sampling, true) };
}

size_t profiler_maps(const struct profiler *profiler, struct map_row rows[static 2])
{
	struct unwind_store_use use = unwind_store_use(profiler->tables.store);

	rows[0] = (struct map_row){ "process_code", processes_slots(&profiler->survey.processes),
				    CODE_PROCESSES_MAX - 1 };
	rows[1] = (struct map_row){ "unwind_rows", use.rows, UNWIND_ROWS_MAX_ALL };
	return 2;
}

/* And those of the metrics. */
static uint64_t states_wanted(const struct profiler *profiler, const char *workload)
{
	uint64_t own = profiler->lock_sites ? UINT64_C(1) << STATE_LOCK | LOOK_QUEUED : 0;

	return states_recorded(profiler, workload) | own;
}

/* The look is at the waits and faults that are wanted, and at no others: sampling these costs time.
 */
static void look_set(struct profiler *profiler)
{
	struct waits *waits = &profiler->sampling.waits;
	uint64_t all = states_wanted(profiler, NULL);
	bool look = all & WAITS_LOOKED_AT, begins = false;

	if (look != waits->looks_now)
		waits_look(waits, look);
	for (uint32_t tree = 1; all & LOOKED_AT && tree < TREES_MAX; tree++) {
		const char *name = tree_workload(profiler, tree);

		begins |= waits_want(waits, tree,
				     name ? states_wanted(profiler, name) & LOOKED_AT : 0);
	}
	if (begins)
		waits_read(waits);
}

int profiler_sample(struct profiler *profiler)
{
	look_set(profiler);
	return sampling_run(&profiler->sampling, states_wanted(profiler, NULL));
}

/* --- call sites of locks -------------------------------------------------------------------- */

/* Whether no profile waits for the parser: for names, or for the code that it will be of. */
static bool sites_may_ask(const struct profiler *profiler)
{
	const struct profiler_run *run;

	if (!profiler->lock_sites || profiler->naming || !lock_sites_lack(profiler->lock_sites))
		return false;
	TAILQ_FOREACH(run, &profiler->runs, link)
	{
		if (run->state == RUN_SETTLES)
			return false;
	}
	return true;
}

/* Asks for the names of places, or takes them. */
static void sites_name(struct profiler *profiler, uint64_t now_ns)
{
	struct survey_wish *wish = &profiler->sites_wish;

	if (profiler->naming == wish && wish->done) {
		profiler->naming = NULL;
		lock_sites_named(profiler->lock_sites, wish);
		profiler->sites_ns = now_ns +
				     earlier((SITES_SHARE - 1) * (now_ns - profiler->sites_ns),
					     SITES_REST_NS);
	}
	if (!sites_may_ask(profiler) || now_ns < profiler->sites_ns ||
	    !lock_sites_ask(profiler->lock_sites, &profiler->survey.files, wish))
		return;
	profiler->naming = wish;
	profiler->sites_ns = now_ns;
	survey_ask(&profiler->survey, wish);
}

void profiler_show_sites(struct profiler *profiler, struct snapshot *snapshot)
{
	struct lock_sites *sites = profiler->lock_sites;

	if (!sites)
		return;
	for (int i = 0; i < TAKE_TRIES && profiler_take(profiler) == -EAGAIN; i++)
		;
	lock_sites_share(sites, profiler->env.ledger, snapshot->pools, snapshot->pools_len,
			 clock_monotonic_ns());
	snapshot->lock_sites = lock_sites_rows(sites, &snapshot->lock_sites_len);
}

/* --- the loop ------------------------------------------------------------------------------- */

static bool tree_is_wanted(const struct profiler *profiler, uint32_t tree)
{
	const char *name = tree_workload(profiler, tree);
	const struct profiler_run *run;

	TAILQ_FOREACH(run, &profiler->runs, link)
	{
		if (name && recording_wants(run->recording, name))
			return true;
	}
	return false;
}

/* A machine may have more processes than are read in the time that a profile waits for, and files
 * that take seconds. */
static void processes_defer(struct profiler *profiler)
{
	struct process *process, *next;

	HASH_ITER (hh, profiler->survey.processes.by_tgid, process, next) {
		process->deferred = !tree_is_wanted(profiler, process->identity.tree);
		process->left_out = process->deferred && !profiler->lock_sites;
	}
}

static void profiler_tick(struct profiler *profiler, uint64_t now_ns)
{
	const struct profiler_run *oldest = TAILQ_FIRST(&profiler->runs);
	uint64_t begun_ns = now_ns > PROFILER_IDLE_NS ? now_ns - PROFILER_IDLE_NS : 0;

	if (oldest)
		begun_ns = earlier(begun_ns, oldest->begun_ns);
	profiler->tick_ns = now_ns + TICK_NS;
	profiler_take(profiler);
	survey_walk(&profiler->survey, now_ns, begun_ns);
	processes_defer(profiler);
	look_set(profiler);
}

static void runs_go_on(struct profiler *profiler, uint64_t now_ns)
{
	struct profiler_run *run, *next;

	for (run = TAILQ_FIRST(&profiler->runs); run; run = next) {
		next = TAILQ_NEXT(run, link);
		run_go_on(run, now_ns);
	}
}

static int profiler_go_on(void *arg)
{
	struct profiler *profiler = arg;
	uint64_t now_ns = clock_monotonic_ns();

	if (now_ns >= profiler->tick_ns)
		profiler_tick(profiler, now_ns);
	if (now_ns >= profiler->idle_ns) {
		profiler->idle_ns = UINT64_MAX;
		survey_forget(&profiler->survey, now_ns);
	}
	do {
		if (profiler->lock_sites)
			sites_name(profiler, clock_monotonic_ns());
		runs_go_on(profiler, now_ns);
	} while (survey_go_on(&profiler->survey, now_ns));
	return 0;
}

/* A helper that has ended stays readable. */
static void profiler_ready(void *arg)
{
	struct profiler *profiler = arg;

	profiler_go_on(profiler);
	if (!helper_alive(profiler->env.opener))
		loop_forget(profiler->env.loop, &profiler->opener);
	if (!helper_alive(profiler->env.parser))
		loop_forget(profiler->env.loop, &profiler->parser);
}

static uint64_t profiler_due_ns(const void *arg)
{
	const struct profiler *profiler = arg;
	uint64_t due_ns = earlier(profiler->tick_ns, profiler->idle_ns);
	const struct profiler_run *run;

	due_ns = earlier(due_ns, survey_due_ns(&profiler->survey));
	if (sites_may_ask(profiler))
		due_ns = earlier(due_ns, profiler->sites_ns);
	TAILQ_FOREACH(run, &profiler->runs, link)
	{
		due_ns = earlier(due_ns, run_due_ns(run));
	}
	return due_ns;
}

/* --- for others ----------------------------------------------------------------------------- */

bool profiler_knows(const struct profiler *profiler, const char *workload)
{
	return ledger_has(profiler->env.ledger, workload);
}

static int name_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t profiler_workloads(const struct profiler *profiler, const char *names[static TREES_MAX])
{
	size_t len = 0, kept = 0;

	for (uint32_t tree = 1; tree < TREES_MAX; tree++) {
		names[len] = tree_workload(profiler, tree);
		len += names[len] != NULL;
	}
	qsort(names, len, sizeof(*names), name_compare);
	for (size_t i = 0; i < len; i++)
		if (!kept || strcmp(names[kept - 1], names[i]) != 0)
			names[kept++] = names[i];
	return kept;
}

int profiler_begin(struct profiler *profiler, const struct profiler_order *order,
		   struct profiler_run **out)
{
	struct profiler_run *run = calloc(1, sizeof(*run));

	if (!run)
		return -ENOMEM;
	run->profiler = profiler;
	run->taken = order->taken;
	run->arg = order->arg;
	run->wanted_ns = order->seconds * NS_PER_S;
	run->begun_ns = clock_monotonic_ns();
	run->until_ns = run->begun_ns + order->settle_ns;
	run->recording = recording_new(order->kind, order->workload, &profiler->recorded);
	if (!run->recording) {
		free(run);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&profiler->runs, run, link);
	profiler->idle_ns = UINT64_MAX;
	profiler->tick_ns = run->begun_ns; /* by the loop, at once */
	*out = run;
	return 0;
}

/* --- start and end -------------------------------------------------------------------------- */

static int watches_add(struct profiler *profiler)
{
	int r;

	profiler->opener = (struct loop_watch){ helper_fd(profiler->env.opener), profiler_ready,
						profiler };
	profiler->parser = (struct loop_watch){ helper_fd(profiler->env.parser), profiler_ready,
						profiler };
	r = loop_watch(profiler->env.loop, &profiler->opener, LOOP_READABLE);
	if (!r)
		r = loop_watch(profiler->env.loop, &profiler->parser, LOOP_READABLE);
	if (r)
		return r;
	profiler->job = (struct loop_job){ .due_ns = profiler_due_ns,
					   .run = profiler_go_on,
					   .arg = profiler };
	loop_add(profiler->env.loop, &profiler->job);
	return 0;
}

int profiler_new(const struct profiler_env *env, struct profiler **out)
{
	struct profiler *profiler = calloc(1, sizeof(*profiler));
	int r;

	if (!profiler)
		return -ENOMEM;
	profiler->env = *env;
	profiler->tick_ns = profiler->idle_ns = UINT64_MAX;
	profiler->survey.pidfd = -1;
	TAILQ_INIT(&profiler->runs);
	if (env->lock_sites) {
		profiler->lock_sites = lock_sites_new();
		profiler->tick_ns = 0;
	}
	r = env->lock_sites && !profiler->lock_sites ? -ENOMEM : 0;
	if (!r)
		r = tables_open(&profiler->tables, env->loader);
	if (!r)
		r = sampling_open(&profiler->sampling, env->loader);
	if (!r)
		r = survey_open(&profiler->survey, env->loader, profiler->tables.store, env->opener,
				env->parser);
	if (!r)
		r = watches_add(profiler);
	if (r)
		profiler_free(profiler);
	else
		*out = profiler;
	return r;
}

void profiler_free(struct profiler *profiler)
{
	if (!profiler)
		return;
	while (!TAILQ_EMPTY(&profiler->runs))
		profiler_give_up(TAILQ_FIRST(&profiler->runs));
	survey_close(&profiler->survey);
	sampling_close(&profiler->sampling);
	tables_close(&profiler->tables);
	lock_sites_free(profiler->lock_sites);
	free(profiler);
}
