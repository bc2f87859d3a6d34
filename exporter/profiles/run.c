/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/perf_events.h"
#include "profiles/generated.h"

#define LATE_NS (100 * NS_PER_MS) /* for the last samples, where a set cannot be read at once */
#define PERIOD_NS (NS_PER_S / PERF_CLOCK_HZ)

/* --- the end of a profile ------------------------------------------------------------------- */

void profiler_give_up(struct profiler_run *run)
{
	struct profiler *profiler = run->profiler;

	if (profiler->naming == &run->wish) {
		survey_give_up(&profiler->survey);
		profiler->naming = NULL;
	}
	TAILQ_REMOVE(&profiler->runs, run, link);
	recording_free(run->recording);
	free(run);
	profiler_sample(profiler);
	if (TAILQ_EMPTY(&profiler->runs) && !profiler->lock_sites) {
		profiler->idle_ns = clock_monotonic_ns() + PROFILER_IDLE_NS;
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
	} else if (file && file->generated && file->path) {
		recording_name(run->recording, frame, generated_name(file));
	} else if (begin && file && file->path) {
		snprintf(label, sizeof(label), "%s+%#llx", text_base_name(file->path),
			 (unsigned long long)begin);
		recording_name(run->recording, frame, label);
	}
}

static void names_note(struct profiler_run *run)
{
	struct survey_wish *wish = &run->wish;
	size_t named = wish->result ? 0 : wish->names.len;

	run->profiler->naming = NULL;
	for (size_t i = 0; i < named; i++)
		frame_label(run, wish->frames[i], parsed_names_text(&wish->names, i),
			    wish->names.names[i].begin);
	for (size_t i = named; i < wish->len; i++)
		frame_label(run, wish->frames[i], NULL, 0);
	if (!wish->result)
		parsed_names_free(&wish->names);
}

/* Asks for the names of the next file, or answers. */
static void names_next(struct profiler_run *run)
{
	struct profiler *profiler = run->profiler;

	if (profiler->naming && profiler->naming != &run->wish)
		return; /* another one's turn */
	if (profiler->naming && !run->wish.done)
		return;
	if (profiler->naming)
		names_note(run);
	run->wish = (struct survey_wish){ 0 };
	run->wish.file = recording_next_file(run->recording, &run->wish.frames, &run->wish.len);
	if (!run->wish.file) {
		run_tell(run, 0);
		return;
	}
	profiler->naming = &run->wish;
	survey_ask(&profiler->survey, &run->wish);
}

/* --- a profile ------------------------------------------------------------------------------ */

/* Of what it is of, by all workloads, ever. */
static uint64_t run_lost(const struct profiler_run *run)
{
	return sampling_lost(&run->profiler->sampling,
			     recording_states(run->recording) & STATES_OF_FAULTS);
}

static void run_sample(struct profiler_run *run)
{
	struct profiler *profiler = run->profiler;
	struct timespec now;

	/* What others have is not its own, nor what nothing has: their clients have gone. */
	if (profiler_drain(profiler))
		return; /* once more, in the next turn of the loop */
	clock_gettime(CLOCK_REALTIME, &now);
	run->time_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	run->begun_ns = clock_monotonic_ns();
	run->until_ns = run->begun_ns + run->wanted_ns;
	run->lost = run_lost(run);
	run->state = RUN_SAMPLES;
	if (profiler_sample(profiler))
		run_tell(run, -EIO);
}

static void run_end(struct profiler_run *run, uint64_t now_ns)
{
	struct profiler *profiler = run->profiler;
	uint64_t end_ns = clock_monotonic_ns();
	int r;

	if (profiler_take(profiler) && now_ns < run->until_ns + LATE_NS)
		return; /* once more, in the next turn of the loop */
	recording_lose(run->recording, run_lost(run) - run->lost);
	run->until_ns = end_ns;
	run->state = RUN_NAMES;
	profiler_sample(profiler);
	r = recording_end(run->recording);
	if (r)
		run_tell(run, r);
}

void run_go_on(struct profiler_run *run, uint64_t now_ns)
{
	struct survey *survey = &run->profiler->survey;
	bool due = now_ns >= run->until_ns;

	if (run->state == RUN_SETTLES &&
	    (due || (survey_is_done(survey, now_ns) && !survey_lacks(survey))))
		run_sample(run);
	else if (run->state == RUN_SAMPLES && due)
		run_end(run, now_ns);
	else if (run->state == RUN_NAMES)
		names_next(run);
}

uint64_t run_due_ns(const struct profiler_run *run)
{
	const struct survey_wish *naming = run->profiler->naming;

	if (run->state != RUN_NAMES)
		return run->until_ns;
	return !naming || naming->done ? 0 : UINT64_MAX;
}
