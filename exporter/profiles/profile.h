/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as it is told to others: stacks, how often each was seen, and what their frames are
 * called. Made of memory that its maker owns; what writes it only reads.
 */
#ifndef WORKLOAD_PROFILES_PROFILE_H
#define WORKLOAD_PROFILES_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROFILE_FRAMES_MAX 131072U /* that are not the same: some 200 bytes each when written */
#define PROFILE_BUILD_ID_LEN 41 /* 20 bytes in hexadecimal */

/* A file that frames are in. */
struct profile_file {
	uint32_t number; /* as in a frame; never 0 */
	const char *path;
	char build_id[PROFILE_BUILD_ID_LEN]; /* "" if it has none */
	uint64_t begin, end; /* addresses of its code, as linked */
	bool executable; /* a process was started from it */
};

/* What a frame is called. Frames: abi/profiles.h. */
struct profile_name {
	uint64_t frame;
	const char *text;
};

struct profile_stack {
	const uint64_t *frames; /* innermost first */
	size_t len;
	const char *workload, *pool, *state;
	uint64_t count;
	uint64_t ns; /* of faults 0 */
};

/* What it is of: CPU time; waits, of which all, or all but for a CPU, or for locks, and none for
 * work; or page faults. */
enum profile_kind {
	PROFILE_CPU,
	PROFILE_OFFCPU,
	PROFILE_BLOCK,
	PROFILE_LOCK,
	PROFILE_FAULT,
	PROFILE_KINDS
};

struct profile_kind_row {
	const char *count,
		*time; /* what pprof calls the values of a sample; NULL: it has no time */
	bool waits; /* what weighs is their time; else how many */
};
extern const struct profile_kind_row profile_kinds[PROFILE_KINDS];

struct profile {
	enum profile_kind kind;
	uint64_t time_ns; /* CLOCK_REALTIME at its beginning */
	uint64_t duration_ns;
	uint64_t period_ns; /* of CPU time, between two samples; else 0 */
	uint64_t samples; /* of CPU time; or waits, or faults */
	uint64_t weight, complete; /* these, of waits nanoseconds; and those of complete stacks */
	uint64_t lost; /* of all workloads meanwhile: it may lack them */
	const struct profile_file *files; /* by number */
	size_t files_len;
	const struct profile_name *names; /* by frame; of those that have none there is no row */
	size_t names_len;
	const struct profile_stack *stacks;
	size_t stacks_len;
};

/* What @stack weighs in @profile: nanoseconds of waits; else its count. */
static inline uint64_t profile_weight(const struct profile *profile,
				      const struct profile_stack *stack)
{
	return profile_kinds[profile->kind].waits ? stack->ns : stack->count;
}

/* Puts frames in order, and leaves each once. Returns how many those are. */
size_t profile_frames_sort(uint64_t *frames, size_t len);

/* The place of @frame among such frames; NULL: it is none of them. */
const uint64_t *profile_frames_find(const uint64_t *frames, size_t len, uint64_t frame);

/* NULL: there is none. */
const struct profile_file *profile_file(const struct profile *profile, uint64_t frame);
const char *profile_name(const struct profile *profile, uint64_t frame);

/* Whether the name @text of a function tells by itself that it is in @file, a base name, or there
 * is none: one that is told by its place in a file has the file in its name. */
bool profile_name_has_file(const char *text, const char *file);

#endif
