/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks SECONDS SAMPLES PID...: samples the stacks of these processes and of their descendants
 * while they run, for so long, and longer until there are so many, and compares how the exporter
 * follows each (ours.h) with how libdwfl does (theirs.h), frame by frame, from the same registers
 * and the same copy of the stack.
 *
 * Prints the first differences, and of each process and of those together what there was, as `key
 * value`, and shares in percent. Exit 1: fewer than SAMPLES of those together, or fewer than 99.9 %
 * of these are equal.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "abi/unwind.h"
#include "base/cleanup.h"
#include "followed.h"
#include "identity/proc.h"
#include "ours.h"
#include "sampling.h"
#include "theirs.h"

#define EQUAL_MIN 0.999
#define SHOWN_MAX 10 /* differences */
#define PIDS_MAX 64
#define LONGER 10 /* times SECONDS, until there are SAMPLES */
#define PAUSE_US 20000
#define NICENESS (-15)
#define NAME_LEN 17

struct counts {
	size_t samples, in_kernel; /* that were compared, and of these in the kernel */
	size_t equal, different;
	size_t guessed; /* of those that are equal: up to where libdwfl begins to guess */
	size_t ends[FOLLOWED_ENDS]; /* of ours */
	size_t theirs_complete;
	size_t frames; /* of ours */
	size_t ended; /* not compared: the process had ended */
};

struct process {
	pid_t pid;
	char name[NAME_LEN];
	bool read;
	uint32_t slot; /* 0: none */
	struct theirs *theirs; /* owned; NULL: it could not be read */
	struct counts counts;
	UT_hash_handle hh;
};

static struct process *processes;
static size_t compared, shown;
static uint32_t slots = 1; /* 0 is none */

/* --- processes ------------------------------------------------------------------------------- */

static void name_read(pid_t pid, char name[static NAME_LEN])
{
	_cleanup_(cleanup_close) int dir_fd = proc_open("/proc", pid);

	if (dir_fd < 0 || proc_comm_read(dir_fd, name, NAME_LEN))
		snprintf(name, NAME_LEN, "?");
}

static struct process *process_of(pid_t pid)
{
	struct process *process;

	HASH_FIND_INT(processes, &pid, process);
	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		abort();
	process->pid = pid;
	name_read(pid, process->name);
	if (slots < CODE_PROCESSES_MAX)
		process->slot = slots++;
	HASH_ADD_INT(processes, pid, process);
	return process;
}

static bool process_read(struct process *process)
{
	if (!process->read && process->slot && !ours_read(process->pid, process->slot))
		theirs_open(process->pid, &process->theirs);
	process->read = true;
	return process->theirs;
}

/* It is read anew. */
static void process_forget(pid_t pid, void *unused)
{
	struct process *process;

	(void)unused;
	HASH_FIND_INT(processes, &pid, process);
	if (!process)
		return;
	theirs_close(process->theirs);
	process->theirs = NULL;
	process->read = false;
}

/* --- comparing ------------------------------------------------------------------------------- */

static const char *const ends[FOLLOWED_ENDS] = {
	[FOLLOWED_COMPLETE] = "complete",
	[FOLLOWED_CUT] = "cut",
	[FOLLOWED_TRUNCATED] = "truncated",
	[FOLLOWED_UNKNOWN] = "unknown",
};

static bool frame_is(const struct followed_frame *a, const struct followed_frame *b)
{
	return a->address == b->address && !strcmp(a->path, b->path);
}

static size_t equal_frames(const struct followed *a, const struct followed *b)
{
	size_t i = 0;

	while (i < a->len && i < b->len && frame_is(&a->frames[i], &b->frames[i]))
		i++;
	return i;
}

static void frame_show(const char *what, const struct followed *followed, size_t i)
{
	if (i < followed->len)
		printf(" %s %s+%#lx", what, followed->frames[i].path, followed->frames[i].address);
	else
		printf(" %s ends, %s", what, ends[followed->end]);
}

static void difference_show(const struct process *process, const struct sample *sample,
			    const struct followed *ours, const struct followed *theirs, size_t at)
{
	if (shown++ >= SHOWN_MAX)
		return;
	printf("%s %d: frame %zu%s:", process->name, sample->tid, at,
	       sample->in_kernel ? " (in the kernel)" : "");
	if (at)
		frame_show("behind", ours, at - 1);
	frame_show("ours is", ours, at);
	frame_show("theirs is", theirs, at);
	printf("\n");
}

static void compare(struct process *process, const struct sample *sample)
{
	static struct followed ours, theirs;
	struct counts *counts = &process->counts;
	size_t equal;

	ours_follow(sample, process->slot, &ours);
	theirs_follow(process->theirs, sample, &theirs);
	equal = equal_frames(&ours, &theirs);
	counts->samples++;
	counts->in_kernel += sample->in_kernel;
	counts->frames += ours.len;
	counts->ends[ours.end]++;
	counts->theirs_complete += theirs.end == FOLLOWED_COMPLETE;
	if (equal == ours.len && equal == theirs.len && ours.end == theirs.end) {
		counts->equal++;
	} else if (equal && !theirs_knows(process->theirs, equal - 1)) {
		counts->equal++;
		counts->guessed++;
	} else {
		counts->different++;
		difference_show(process, sample, &ours, &theirs, equal);
	}
}

static void sample_take(const struct sample *sample, void *unused)
{
	struct process *process = process_of(sample->pid);

	(void)unused;
	if (process_read(process)) {
		compare(process, sample);
		compared++;
	} else {
		process->counts.ended++;
	}
}

/* --- as a whole ------------------------------------------------------------------------------ */

static double share(size_t part, size_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void counts_show(const char *name, pid_t pid, const struct counts *counts)
{
	printf("%s %d: stacks %zu in_kernel %zu frames %zu equal %.3f different %zu guessed %zu"
	       " complete %.3f theirs_complete %.3f cut %zu truncated %zu unknown %zu ended %zu\n",
	       name, pid, counts->samples, counts->in_kernel, counts->frames,
	       share(counts->equal, counts->samples), counts->different, counts->guessed,
	       share(counts->ends[FOLLOWED_COMPLETE], counts->samples),
	       share(counts->theirs_complete, counts->samples), counts->ends[FOLLOWED_CUT],
	       counts->ends[FOLLOWED_TRUNCATED], counts->ends[FOLLOWED_UNKNOWN], counts->ended);
}

static void counts_add(struct counts *all, const struct counts *counts)
{
	all->samples += counts->samples;
	all->in_kernel += counts->in_kernel;
	all->equal += counts->equal;
	all->different += counts->different;
	all->guessed += counts->guessed;
	for (size_t i = 0; i < FOLLOWED_ENDS; i++)
		all->ends[i] += counts->ends[i];
	all->theirs_complete += counts->theirs_complete;
	all->frames += counts->frames;
	all->ended += counts->ended;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int sample_for(double seconds, size_t samples, const pid_t *pids, size_t len)
{
	const struct sampling_calls calls = { .take = sample_take, .mapped = process_forget };
	double begin = seconds_now(), until = 0;
	struct sampling *sampling;
	int r = sampling_open(pids, len, &sampling);

	while (!r && until < LONGER * seconds && (until < seconds || compared < samples)) {
		usleep(PAUSE_US);
		sampling_read(sampling, &calls);
		until = seconds_now() - begin;
	}
	if (r)
		return r;
	if (sampling_lost(sampling))
		printf("lost: %lu\n", sampling_lost(sampling));
	sampling_close(sampling);
	return 0;
}

/* Whether it is as it should be. */
static bool result(size_t samples_min)
{
	struct process *process, *next;
	struct counts all = { 0 };

	HASH_ITER (hh, processes, process, next) {
		if (process->counts.samples + process->counts.ended) {
			counts_show(process->name, process->pid, &process->counts);
			counts_add(&all, &process->counts);
		}
		theirs_close(process->theirs);
		HASH_DEL(processes, process);
		free(process);
	}
	counts_show("all", 0, &all);
	return all.samples >= samples_min && (double)all.equal >= EQUAL_MIN * (double)all.samples;
}

int main(int argc, char **argv)
{
	pid_t pids[PIDS_MAX];
	size_t samples, len = 0;
	bool good;
	int r;

	if (argc < 4 || argc > 3 + PIDS_MAX) {
		fprintf(stderr, "stacks SECONDS SAMPLES PID...\n");
		return 2;
	}
	samples = strtoul(argv[2], NULL, 10);
	for (int i = 3; i < argc; i++)
		pids[len++] = (pid_t)strtol(argv[i], NULL, 10);
	setpriority(PRIO_PROCESS, 0, NICENESS); /* what is sampled may take all CPUs */
	r = ours_open();
	if (!r)
		r = sample_for(strtod(argv[1], NULL), samples, pids, len);
	if (r) {
		fprintf(stderr, "stacks: %s\n", strerror(-r));
		return 2;
	}
	good = result(samples);
	ours_close();
	return !good;
}
