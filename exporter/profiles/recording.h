/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile in the making: the stacks that were seen since it began, each once, and then what their
 * frames are called. Nothing of it changes once it has ended but for names.
 *
 * One thread.
 */
#ifndef WORKLOAD_PROFILES_RECORDING_H
#define WORKLOAD_PROFILES_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/profiles.h"
#include "profiles/files.h"
#include "profiles/profile.h"

#define RECORDING_STACKS_MAX 16000U /* Pyroscope takes no more */
#define RECORDING_BYTES_MAX (8U << 20) /* of stacks and names; each */
#define RECORDINGS_BYTES_MAX (32U << 20) /* of all recordings, both */
#define RECORDING_WORKLOAD_BYTES 256

struct recording;

/*
 * NULL without memory. Only stacks of @workload are kept; "": of all. *@all is how many bytes all
 * recordings have that share it, 0 before the first; it outlives them.
 */
struct recording *recording_new(enum profile_kind kind, const char *workload, size_t *all);
void recording_free(struct recording *recording); /* NULL is nothing */

/* What it is to be told of: 1 << the state of each (struct stack_key). And whether @state is one of
 * these. */
uint64_t recording_states(const struct recording *recording);
bool recording_is_of(const struct recording *recording, uint32_t state);

/* Whether stacks of @workload are kept. */
bool recording_wants(const struct recording *recording, const char *workload);

/* One more stack, of @workload; what finds no room is counted. What is told of a wait after its
 * stack has been is added to that. */
void recording_add(struct recording *recording, const char *workload, const struct stack_key *key,
		   const struct stack *stack);

/* How much is lost with @stack: of a wait that lasts a piece, and else its samples. */
static inline uint64_t stack_lost(const struct stack *stack)
{
	return stack->samples ? stack->samples : 1;
}

/* Samples that found no room elsewhere, or whose workload is not known: they may be its own. */
void recording_lose(struct recording *recording, uint64_t samples);

/* Nothing is added any more: from here on frames are asked for. 0; -ENOMEM; -E2BIG: they are more
 * than PROFILE_FRAMES_MAX. */
int recording_end(struct recording *recording);

/*
 * The frames of one file that have not been named yet, by address: the number of the file, and
 * *@len of *@frames, which are the recording's; 0: there are none.
 */
uint32_t recording_next_file(struct recording *recording, const uint64_t **frames, size_t *len);

/* What @frame, one of these, is called: copied. A frame without a name is shown by its address. */
void recording_name(struct recording *recording, uint64_t frame, const char *name);

/*
 * Fills @profile, which points into the recording and @files and is good as long as neither
 * changes. Times, period and unit are the caller's. 0 or -ENOMEM.
 */
int recording_profile(struct recording *recording, const struct files *files,
		      struct profile *profile);

struct recording_counts {
	uint64_t samples; /* that are in it; or waits */
	uint64_t weight; /* these; of waits their nanoseconds */
	uint64_t lost; /* that found no room */
	uint64_t ends[STACK_ENDS]; /* of the weight, how its stacks end */
};

struct recording_counts recording_counts(const struct recording *recording);

#endif
