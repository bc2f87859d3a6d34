/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/threads.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/utf8.h"
#include "security/seccomp.h"

#define STATE_BIT(state) (UINT64_C(1) << STATE_##state)
#define POOL_NAME_BYTES 48 /* valid UTF-8: each of 15 bytes may need three, and a NUL */

struct workload_name {
	uint32_t number; /* stands for its trees in a key */
	UT_hash_handle hh;
	char text[];
};

struct recorded {
	struct stack_key key; /* its tree: a workload_name's number */
	uint64_t count, ns; /* ns: of waits; else 0 */
	uint64_t woken, queued_ns;
	char pool[POOL_NAME_BYTES];
	const struct workload_name *workload;
	uint32_t end;
	uint32_t len;
	UT_hash_handle hh;
	uint64_t frames[]; /* innermost first */
};

struct recording {
	enum profile_kind kind;
	char only[RECORDING_WORKLOAD_BYTES]; /* workload; "": all */
	struct recorded *stacks;
	struct workload_name *workloads;
	size_t bytes; /* of both */
	size_t *all; /* bytes of this one and of others */
	struct recording_counts counts;

	/* Since its end: */
	uint64_t *frames; /* each once, in order */
	char **names; /* of these; NULL: none */
	size_t frames_len, next, names_bytes;
	struct profile_file *files;
	struct profile_name *shown;
	struct profile_stack *rows;
};

static const char *const state_names[STACK_STATES] = {
#define STATE(id, label) [STATE_##id] = label,
	STATE_LIST(STATE)
#undef STATE
		[FAULT_MINOR] = "minor",
	[FAULT_MAJOR] = "major",
};

/* What stands in the place of the frames that are missing. */
static const char *const end_names[] = {
#define STACK_END(id, label) [STACK_##id] = "[" label "]",
	STACK_END_LIST(STACK_END)
#undef STACK_END
};

/* --- while it lasts ------------------------------------------------------------------------- */

struct recording *recording_new(enum profile_kind kind, const char *workload, size_t *all)
{
	struct recording *recording = calloc(1, sizeof(*recording));

	if (!recording)
		return NULL;
	recording->kind = kind;
	recording->all = all;
	text_copy(recording->only, sizeof(recording->only), workload);
	return recording;
}

/* Whether there is room for @bytes more, of which *@own are this one's: they are taken then. */
static bool bytes_take(const struct recording *recording, size_t *own, size_t bytes)
{
	if (*own + bytes > RECORDING_BYTES_MAX || *recording->all + bytes > RECORDINGS_BYTES_MAX)
		return false;
	*own += bytes;
	*recording->all += bytes;
	return true;
}

/* Room for @bytes more; NULL: there is none. */
static void *recording_take(struct recording *recording, size_t bytes)
{
	return bytes_take(recording, &recording->bytes, bytes) ? calloc(1, bytes) : NULL;
}

/* NULL: there is no room for one more. */
static const struct workload_name *workload_intern(struct recording *recording, const char *text)
{
	struct workload_name *name;
	size_t len = strlen(text);

	HASH_FIND(hh, recording->workloads, text, len, name);
	if (name)
		return name;
	name = recording_take(recording, sizeof(*name) + len + 1);
	if (!name)
		return NULL;
	memcpy(name->text, text, len);
	name->number = HASH_COUNT(recording->workloads);
	HASH_ADD(hh, recording->workloads, text, len, name);
	if (name->hh.tbl)
		return name;
	free(name);
	return NULL;
}

static void pool_copy(const struct stack *stack, char *out, size_t size)
{
	char raw[sizeof(stack->pool) + 1] = "";

	memcpy(raw, stack->pool, sizeof(stack->pool));
	utf8_copy(out, size, *raw ? raw : "other");
}

/* The frames of a stack that is not complete end with one that says why. */
static void frames_copy(struct recorded *recorded, const struct stack *stack, uint32_t len)
{
	memcpy(recorded->frames, stack->frames, len * sizeof(*recorded->frames));
	recorded->len = len;
	if (recorded->end != STACK_COMPLETE)
		recorded->frames[recorded->len++] = frame_make(0, recorded->end);
}

/* NULL: there is no room for it. */
static struct recorded *stack_add(struct recording *recording, const struct stack_key *key,
				  const struct workload_name *workload, const struct stack *stack)
{
	uint32_t len = stack->len < FRAMES_MAX ? stack->len : FRAMES_MAX;
	struct recorded *recorded;

	if (HASH_COUNT(recording->stacks) >= RECORDING_STACKS_MAX)
		return NULL;
	recorded = recording_take(recording, sizeof(*recorded) + (len + 1) * sizeof(uint64_t));
	if (!recorded)
		return NULL;
	recorded->key = *key;
	recorded->workload = workload;
	recorded->end = stack->end < STACK_ENDS ? stack->end : STACK_NO_CODE;
	pool_copy(stack, recorded->pool, sizeof(recorded->pool));
	frames_copy(recorded, stack, len);
	HASH_ADD(hh, recording->stacks, key, sizeof(recorded->key), recorded);
	if (recorded->hh.tbl)
		return recorded;
	free(recorded);
	return NULL;
}

void recording_lose(struct recording *recording, uint64_t samples)
{
	recording->counts.lost += samples;
}

bool recording_wants(const struct recording *recording, const char *workload)
{
	return !*recording->only || !strcmp(recording->only, workload);
}

uint64_t recording_states(const struct recording *recording)
{
	switch (recording->kind) {
	case PROFILE_OFFCPU:
		return STATES_OF_WAITS;
	case PROFILE_BLOCK:
		return STATES_OF_WAITS & ~STATE_BIT(IDLE) & ~STATE_BIT(RUNNABLE);
	case PROFILE_LOCK:
		return STATE_BIT(LOCK);
	case PROFILE_FAULT:
		return STATES_OF_FAULTS;
	default:
		return STATE_BIT(RUNNING);
	}
}

bool recording_is_of(const struct recording *recording, uint32_t state)
{
	return state < STACK_STATES && recording_states(recording) >> state & 1;
}

/* Of waits for work only those for a CPU are shown, which follow them. */
static bool state_is_shown(uint32_t state)
{
	return state != STATE_IDLE;
}

/* The time of waits whose stack this recording was not told: by pool. */
static struct stack_key key_unseen(const struct stack_key *key, const struct stack *stack)
{
	struct stack_key unseen = *key;

	unseen.hash = stack->pool[0] * 31 + stack->pool[1];
	return unseen;
}

/* NULL: there is no room for it. */
static struct recorded *stack_find(struct recording *recording, const char *workload,
				   const struct stack_key *key, const struct stack *stack)
{
	const struct workload_name *name = workload_intern(recording, workload);
	struct stack_key own = *key;
	struct recorded *recorded;

	if (!name)
		return NULL;
	own.tree = name->number;
	if (stack->end == STACK_BEGAN_BEFORE)
		own.hash &= ~HASH_LATER;
	HASH_FIND(hh, recording->stacks, &own, sizeof(own), recorded);
	if (!recorded && stack->end == STACK_BEGAN_BEFORE) {
		own = key_unseen(&own, stack);
		HASH_FIND(hh, recording->stacks, &own, sizeof(own), recorded);
	}
	return recorded ? recorded : stack_add(recording, &own, name, stack);
}

static void stack_count(struct recording *recording, struct recorded *recorded,
			const struct stack *stack)
{
	struct recording_counts *counts = &recording->counts;
	uint64_t weight = 0;

	recorded->count += stack->samples;
	recorded->ns += stack->ns;
	recorded->woken += stack->woken;
	recorded->queued_ns += stack->queued_ns;
	if (state_is_shown(recorded->key.state)) {
		counts->samples += stack->samples;
		weight = profile_kinds[recording->kind].waits ? stack->ns : stack->samples;
	}
	if (recording->kind == PROFILE_OFFCPU)
		weight += stack->queued_ns;
	counts->weight += weight;
	counts->ends[recorded->end] += weight;
}

void recording_add(struct recording *recording, const char *workload, const struct stack_key *key,
		   const struct stack *stack)
{
	struct recorded *recorded;

	if (!recording_wants(recording, workload) || !recording_is_of(recording, key->state))
		return;
	recorded = stack_find(recording, workload, key, stack);
	if (recorded)
		stack_count(recording, recorded, stack);
	else
		recording_lose(recording, stack_lost(stack));
}

struct recording_counts recording_counts(const struct recording *recording)
{
	return recording->counts;
}

/* --- names ---------------------------------------------------------------------------------- */

static size_t frames_of_all(const struct recording *recording)
{
	const struct recorded *recorded, *next;
	size_t len = 0;

	HASH_ITER (hh, recording->stacks, recorded, next) {
		len += recorded->len;
	}
	return len;
}

/* All frames, each once, in order. */
static void frames_collect(struct recording *recording)
{
	const struct recorded *recorded, *next;
	size_t len = 0;

	HASH_ITER (hh, recording->stacks, recorded, next) {
		memcpy(recording->frames + len, recorded->frames,
		       recorded->len * sizeof(*recording->frames));
		len += recorded->len;
	}
	recording->frames_len = profile_frames_sort(recording->frames, len);
}

/* As the kernel calls its functions; numbers that the library does not know have none. */
static void syscalls_name(struct recording *recording)
{
	for (size_t i = 0; i < recording->frames_len; i++) {
		int number = frame_syscall(recording->frames[i]);
		_cleanup_(cleanup_free) char *call = NULL;
		char name[64];

		if (number >= 0)
			call = seccomp_call_name(number);
		if (!call)
			continue;
		snprintf(name, sizeof(name), "sys_%s", call);
		recording_name(recording, recording->frames[i], name);
	}
}

int recording_end(struct recording *recording)
{
	size_t len = frames_of_all(recording) + 1;

	recording->frames = calloc(len, sizeof(*recording->frames));
	recording->names = calloc(len, sizeof(*recording->names));
	if (!recording->frames || !recording->names)
		return -ENOMEM;
	frames_collect(recording);
	if (recording->frames_len > PROFILE_FRAMES_MAX)
		return -E2BIG;
	for (uint32_t end = 0; end < STACK_ENDS; end++)
		recording_name(recording, frame_make(0, end), end_names[end]);
	syscalls_name(recording);
	return 0;
}

uint32_t recording_next_file(struct recording *recording, const uint64_t **frames, size_t *len)
{
	size_t first = recording->next, end;
	uint32_t number;

	while (first < recording->frames_len && !frame_file(recording->frames[first]))
		first++;
	if (first == recording->frames_len)
		return 0;
	number = frame_file(recording->frames[first]);
	for (end = first; end < recording->frames_len; end++)
		if (frame_file(recording->frames[end]) != number)
			break;
	*frames = recording->frames + first;
	*len = end - first;
	recording->next = end;
	return number;
}

void recording_name(struct recording *recording, uint64_t frame, const char *name)
{
	const uint64_t *found = profile_frames_find(recording->frames, recording->frames_len,
						    frame);
	size_t bytes = strlen(name) + 1;
	char **place;

	if (!found)
		return;
	place = &recording->names[found - recording->frames];
	if (!*place && bytes_take(recording, &recording->names_bytes, bytes))
		*place = strdup(name);
}

/* --- as a profile --------------------------------------------------------------------------- */

static size_t names_show(struct recording *recording)
{
	size_t len = 0;

	for (size_t i = 0; i < recording->frames_len; i++)
		if (recording->names[i]) {
			struct profile_name *name = &recording->shown[len++];

			*name = (struct profile_name){ recording->frames[i], recording->names[i] };
		}
	return len;
}

static void build_id_show(const struct program *program, char out[static PROFILE_BUILD_ID_LEN])
{
	for (uint32_t i = 0; i < program->build_id_len; i++)
		snprintf(out + (size_t)2 * i, 3, "%02x", program->build_id[i]);
}
_Static_assert(PROFILE_BUILD_ID_LEN == 2 * PROGRAM_BUILD_ID_MAX + 1, "build ids are cut");

static size_t files_show(struct recording *recording, const struct files *files)
{
	size_t len = 0;

	for (size_t i = 0; i < recording->frames_len; i++) {
		uint32_t number = frame_file(recording->frames[i]);
		const struct file *file = files_at(files, number);
		struct profile_file *shown = &recording->files[len];

		if (!file || !file->path || (len && shown[-1].number == number))
			continue;
		*shown = (struct profile_file){ .number = number, .path = file->path };
		build_id_show(&file->program, shown->build_id);
		shown->begin = file->program.begin;
		shown->end = file->program.end;
		shown->executable = file->executable;
		len++;
	}
	return len;
}

static void stack_show(const struct recorded *recorded, uint32_t state, uint64_t count, uint64_t ns,
		       struct profile_stack *row)
{
	*row = (struct profile_stack){
		.frames = recorded->frames,
		.len = recorded->len,
		.workload = recorded->workload->text,
		.pool = recorded->pool,
		.state = state_names[state],
		.count = count,
		.ns = ns,
	};
}

/* One that is waited on, and then for a CPU, is two. */
static size_t stacks_show(struct recording *recording, uint64_t period_ns)
{
	const struct recorded *recorded, *next;
	struct profile_stack *row = recording->rows;

	HASH_ITER (hh, recording->stacks, recorded, next) {
		uint32_t state = recorded->key.state;
		uint64_t ns = recorded->ns + recorded->count * period_ns;

		if (state_is_shown(state) && (recorded->count || ns))
			stack_show(recorded, state, recorded->count, ns, row++);
		if (recording->kind == PROFILE_OFFCPU && recorded->queued_ns)
			stack_show(recorded, STATE_RUNNABLE, recorded->woken, recorded->queued_ns,
				   row++);
	}
	return (size_t)(row - recording->rows);
}

static void shown_free(struct recording *recording)
{
	free(recording->shown);
	free(recording->files);
	free(recording->rows);
	recording->shown = NULL;
	recording->files = NULL;
	recording->rows = NULL;
}

int recording_profile(struct recording *recording, const struct files *files,
		      struct profile *profile)
{
	size_t stacks = 2 * HASH_COUNT(recording->stacks) + 1, frames = recording->frames_len + 1;

	shown_free(recording);
	recording->shown = calloc(frames, sizeof(*recording->shown));
	recording->files = calloc(UNWIND_FILES_MAX, sizeof(*recording->files));
	recording->rows = calloc(stacks, sizeof(*recording->rows));
	if (!recording->shown || !recording->files || !recording->rows)
		return -ENOMEM;
	profile->names_len = names_show(recording);
	profile->files_len = files_show(recording, files);
	profile->stacks_len = stacks_show(recording, profile->period_ns);
	profile->kind = recording->kind;
	profile->samples = recording->counts.samples;
	profile->weight = recording->counts.weight;
	profile->complete = recording->counts.ends[STACK_COMPLETE];
	profile->lost = recording->counts.lost;
	profile->names = recording->shown;
	profile->files = recording->files;
	profile->stacks = recording->rows;
	return 0;
}

void recording_free(struct recording *recording)
{
	struct workload_name *name, *next_name;
	struct recorded *recorded, *next;

	if (!recording)
		return;
	HASH_ITER (hh, recording->stacks, recorded, next) {
		HASH_DEL(recording->stacks, recorded);
		free(recorded);
	}
	HASH_ITER (hh, recording->workloads, name, next_name) {
		HASH_DEL(recording->workloads, name);
		free(name);
	}
	for (size_t i = 0; recording->names && i < recording->frames_len; i++)
		free(recording->names[i]);
	*recording->all -= recording->bytes + recording->names_bytes;
	free(recording->names);
	free(recording->frames);
	shown_free(recording);
	free(recording);
}
