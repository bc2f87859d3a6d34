/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/profiler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/clocks.h"
#include "profiles/recording.h"
#include "profiles/sampling.h"
#include "profiles/survey.h"
#include "profiles/tables.h"

#define TICK_NS NS_PER_S /* between two looks for processes and samples */
#define SETTLE_NS (3 * NS_PER_S) /* for reading code before the first sample */
#define IDLE_NS (60 * NS_PER_S) /* what was read stays so long after the last profile */
#define LATE_NS (100 * NS_PER_MS) /* for the last samples, where a set cannot be read at once */
#define RUNNING (UINT64_C(1) << STATE_RUNNING)
#define PERIOD_NS (NS_PER_S / CLOCK_HZ)

enum run_state { RUN_SETTLES, RUN_SAMPLES, RUN_NAMES };

/* A profile that is being taken. */
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
	struct profiler_run *naming; /* whose wish the survey has */
	uint64_t tick_ns, idle_ns; /* when the next is due; UINT64_MAX: none */
	uint64_t ends[STACK_ENDS], lost; /* samples, ever; lost: without those of the sets */
	struct loop_job job;
	struct loop_watch opener, parser;
};

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
}

int profiler_take(struct profiler *profiler)
{
	if (!sampling_runs(&profiler->sampling))
		return 0;
	return sampling_take(&profiler->sampling, sample_take, profiler);
}

void profiler_count(struct profiler *profiler, struct profile_row rows[static PROFILER_ROWS])
{
	static const char *const labels[] = {
#define STACK_END(id, label) [STACK_##id] = label,
		STACK_END_LIST(STACK_END)
#undef STACK_END
	};

	for (size_t end = 0; end < STACK_ENDS; end++)
		rows[end] = (struct profile_row){ labels[end], profiler->ends[end] };
	rows[STACK_ENDS] =
		(struct profile_row){ "lost", profiler->lost + sampling_lost(&profiler->sampling) };
}

size_t profiler_maps(const struct profiler *profiler, struct map_row rows[static 2])
{
	struct unwind_store_use use = unwind_store_use(profiler->tables.store);

	rows[0] = (struct map_row){ "process_code", processes_slots(&profiler->survey.processes),
				    CODE_PROCESSES_MAX - 1 };
	rows[1] = (struct map_row){ "unwind_rows", use.rows, UNWIND_ROWS_MAX_ALL };
	return 2;
}

/* 1 << enum thread_state of those that profiles want, which are being taken; @workload NULL: of
 * any.
 */
static uint64_t states_wanted(const struct profiler *profiler, const char *workload)
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

/* The look is at the waits that profiles want, and at no others: sampling these costs time. */
static void look_set(struct profiler *profiler)
{
	struct waits *waits = &profiler->sampling.waits;
	bool look = states_wanted(profiler, NULL) & ~RUNNING, begins = false;

	if (look != waits->looks_now)
		waits_look(waits, look);
	for (uint32_t tree = 1; look && tree < TREES_MAX; tree++) {
		const char *name = tree_workload(profiler, tree);

		begins |= waits_want(waits, tree,
				     name ? states_wanted(profiler, name) & ~RUNNING : 0);
	}
	if (begins)
		waits_read(waits);
}

/* The kernel side samples what is wanted. 0 or -errno. */
static int sampling_set(struct profiler *profiler)
{
	look_set(profiler);
	return sampling_clock(&profiler->sampling, states_wanted(profiler, NULL) & RUNNING);
}

/* --- the end of a profile ------------------------------------------------------------------- */

void profiler_give_up(struct profiler_run *run)
{
	struct profiler *profiler = run->profiler;

	if (profiler->naming == run) {
		survey_give_up(&profiler->survey);
		profiler->naming = NULL;
	}
	TAILQ_REMOVE(&profiler->runs, run, link);
	recording_free(run->recording);
	free(run);
	sampling_set(profiler);
	if (TAILQ_EMPTY(&profiler->runs)) {
		profiler->idle_ns = clock_monotonic_ns() + IDLE_NS;
		profiler->tick_ns = UINT64_MAX;
	}
}

/* @error: there is no profile. */
static void run_tell(struct profiler_run *run, int error)
{
	struct profile profile = {
		.time_ns = run->time_ns,
		.duration_ns = run->until_ns - run->begun_ns,
		.period_ns = recording_is_of(run->recording, STATE_RUNNING) ? PERIOD_NS : 0,
	};

	if (!error)
		error = recording_profile(run->recording, &run->profiler->survey.files, &profile);
	run->taken(run->arg, error, error ? NULL : &profile);
	profiler_give_up(run);
}

/* --- names ---------------------------------------------------------------------------------- */

/* A function without a symbol is told by where it begins, alike for all its frames. */
static void frame_label(struct profiler_run *run, uint64_t frame, const char *text, uint64_t begin)
{
	const struct file *file = files_at(&run->profiler->survey.files, frame_file(frame));
	char label[NAME_BYTES_MAX];

	if (text) {
		recording_name(run->recording, frame, text);
	} else if (begin && file && file->path) {
		snprintf(label, sizeof(label), "%s+%#llx", text_base_name(file->path),
			 (unsigned long long)begin);
		recording_name(run->recording, frame, label);
	}
}

static void names_note(struct profiler_run *run)
{
	struct survey_wish *wish = &run->wish;

	run->profiler->naming = NULL;
	if (wish->result)
		return;
	for (size_t i = 0; i < wish->names.len; i++)
		frame_label(run, wish->frames[i], parsed_names_text(&wish->names, i),
			    wish->names.names[i].begin);
	parsed_names_free(&wish->names);
}

/* Asks for the names of the next file, or answers. */
static void names_next(struct profiler_run *run)
{
	struct profiler *profiler = run->profiler;

	if (profiler->naming && profiler->naming != run)
		return; /* another one's turn */
	if (profiler->naming == run && !run->wish.done)
		return;
	if (profiler->naming == run)
		names_note(run);
	run->wish = (struct survey_wish){ 0 };
	run->wish.file = recording_next_file(run->recording, &run->wish.frames, &run->wish.len);
	if (!run->wish.file) {
		run_tell(run, 0);
		return;
	}
	profiler->naming = run;
	survey_ask(&profiler->survey, &run->wish);
}

/* --- a profile ------------------------------------------------------------------------------ */

static void run_sample(struct profiler_run *run)
{
	struct profiler *profiler = run->profiler;
	struct timespec now;

	/* What others have is not its own, nor what nothing has: their clients have gone. */
	if (sampling_take(&profiler->sampling, sample_take, profiler))
		return; /* once more, in the next turn of the loop */
	clock_gettime(CLOCK_REALTIME, &now);
	run->time_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	run->begun_ns = clock_monotonic_ns();
	run->until_ns = run->begun_ns + run->wanted_ns;
	run->lost = sampling_lost(&profiler->sampling);
	run->state = RUN_SAMPLES;
	if (sampling_set(profiler))
		run_tell(run, -EIO);
}

static void run_end(struct profiler_run *run, uint64_t now_ns)
{
	struct profiler *profiler = run->profiler;
	uint64_t end_ns = clock_monotonic_ns();
	int r;

	if (profiler_take(profiler) && now_ns < run->until_ns + LATE_NS)
		return; /* once more, in the next turn of the loop */
	recording_lose(run->recording, sampling_lost(&profiler->sampling) - run->lost);
	run->until_ns = end_ns;
	run->state = RUN_NAMES;
	sampling_set(profiler);
	r = recording_end(run->recording);
	if (r)
		run_tell(run, r);
}

static void run_go_on(struct profiler_run *run, uint64_t now_ns)
{
	bool due = now_ns >= run->until_ns;

	if (run->state == RUN_SETTLES && (due || survey_is_done(&run->profiler->survey, now_ns)))
		run_sample(run);
	else if (run->state == RUN_SAMPLES && due)
		run_end(run, now_ns);
	else if (run->state == RUN_NAMES)
		names_next(run);
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

/* A machine may have more processes than are read in the time that a profile waits for. */
static void processes_defer(struct profiler *profiler)
{
	struct process *process, *next;

	HASH_ITER (hh, profiler->survey.processes.by_tgid, process, next) {
		process->deferred = !tree_is_wanted(profiler, process->identity.tree);
	}
}

static void profiler_tick(struct profiler *profiler, uint64_t now_ns)
{
	const struct profiler_run *oldest = TAILQ_FIRST(&profiler->runs);

	profiler->tick_ns = now_ns + TICK_NS;
	profiler_take(profiler);
	survey_walk(&profiler->survey, now_ns, oldest->begun_ns);
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

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t profiler_due_ns(const void *arg)
{
	const struct profiler *profiler = arg;
	uint64_t due_ns = earlier(profiler->tick_ns, profiler->idle_ns);
	const struct profiler_run *run;

	due_ns = earlier(due_ns, survey_due_ns(&profiler->survey));
	TAILQ_FOREACH(run, &profiler->runs, link)
	{
		if (run->state != RUN_NAMES)
			due_ns = earlier(due_ns, run->until_ns);
		else if (!profiler->naming || profiler->naming->wish.done)
			due_ns = 0;
	}
	return due_ns;
}

/* --- for others ----------------------------------------------------------------------------- */

bool profiler_knows(const struct profiler *profiler, const char *workload)
{
	return ledger_has(profiler->env.ledger, workload);
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
	run->until_ns = run->begun_ns + SETTLE_NS;
	run->recording = recording_new(order->kind, order->workload);
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
	free(profiler);
}
