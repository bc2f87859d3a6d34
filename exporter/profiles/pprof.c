/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/pprof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/profiles.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "exposition/gzip.h"
#include "profile.pb-c.h"

#define HASH_NONFATAL_OOM 1 /* an element that could not be added has hh.tbl == NULL */
#include <uthash.h>

#define VALUES 2 /* of a sample, at most: how often, and how long */
#define LABELS 3
#define FILE_BYTES (UINT64_C(1) << 48) /* between the places of two files */

struct text {
	int64_t index;
	UT_hash_handle hh; /* by what it says: borrowed from the profile */
};

/* The texts, each once; the first is "". */
struct texts {
	const char **text; /* by index */
	size_t len, size;
	struct text *known;
	int error;
};

/* Arrays of @len messages and of pointers to them: protobuf-c takes the latter. Owned as one. */
struct array {
	void *messages;
	void **pointers;
	size_t len;
};

struct writing {
	const struct profile *profile;
	size_t values_len; /* of a sample */
	struct texts texts;
	uint64_t *frames; /* each once, in order: the id of a location is its place + 1 */
	size_t frames_len;
	struct array files, locations, lines, functions, samples, labels;
	uint64_t *ids; /* of the locations of all samples */
	int64_t *values;
	char complete[64], lost[64]; /* comments */
};

/* --- texts ---------------------------------------------------------------------------------- */

/* NULL without memory. */
static struct text *text_add(struct texts *texts, const char *text)
{
	const char **place = array_grow(texts->text, texts->len, &texts->size, SIZE_MAX,
					sizeof(*place));
	struct text *added = calloc(1, sizeof(*added));

	if (place)
		texts->text = place;
	if (place && added) {
		added->index = (int64_t)texts->len;
		HASH_ADD_KEYPTR(hh, texts->known, text, strlen(text), added);
	}
	if (!place || !added || !added->hh.tbl) {
		free(added);
		return NULL;
	}
	texts->text[texts->len++] = text;
	return added;
}

/* The index of @text; 0, which is "", without memory, and then texts->error says so. */
static int64_t text_index(struct texts *texts, const char *text)
{
	struct text *known;

	HASH_FIND_STR(texts->known, text, known);
	if (!known)
		known = text_add(texts, text);
	if (!known)
		texts->error = -ENOMEM;
	return known ? known->index : 0;
}

static void texts_free(struct texts *texts)
{
	struct text *known, *next;

	HASH_ITER (hh, texts->known, known, next) {
		HASH_DEL(texts->known, known);
		free(known);
	}
	free(texts->text);
}

/* --- arrays --------------------------------------------------------------------------------- */

static int array_make(struct array *array, size_t len, size_t bytes)
{
	array->len = len;
	array->messages = calloc(len ? len : 1, bytes);
	array->pointers = calloc(len ? len : 1, sizeof(void *));
	if (!array->messages || !array->pointers)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		array->pointers[i] = (char *)array->messages + i * bytes;
	return 0;
}

static void array_free(struct array *array)
{
	free(array->messages);
	free(array->pointers);
}

static size_t frames_of_all(const struct profile *profile)
{
	size_t len = 0;

	for (size_t i = 0; i < profile->stacks_len; i++)
		len += profile->stacks[i].len;
	return len;
}

/* All frames, each once, in order. */
static int frames_collect(struct writing *writing)
{
	const struct profile *profile = writing->profile;
	size_t len = frames_of_all(profile), at = 0;
	uint64_t *frames = calloc(len ? len : 1, sizeof(*frames));

	writing->frames = frames;
	if (!frames)
		return -ENOMEM;
	for (size_t i = 0; i < profile->stacks_len; i++) {
		memcpy(frames + at, profile->stacks[i].frames,
		       profile->stacks[i].len * sizeof(*frames));
		at += profile->stacks[i].len;
	}
	writing->frames_len = profile_frames_sort(frames, len);
	return writing->frames_len <= PROFILE_FRAMES_MAX ? 0 : -E2BIG;
}

static uint64_t location_id(const struct writing *writing, uint64_t frame)
{
	const uint64_t *found = profile_frames_find(writing->frames, writing->frames_len, frame);

	return (uint64_t)(found - writing->frames) + 1;
}

/* --- messages ------------------------------------------------------------------------------- */

/* Where pprof is told that a file was mapped: its addresses as linked, at a place of its own. */
static uint64_t file_place(const struct profile_file *file)
{
	return file->number * FILE_BYTES;
}

/*
 * Readers take the first mapping for that of the program, and Parca refuses a profile whose ids are
 * not 1, 2, ... in this order (its pkg/normalizer/validate.go).
 */
static void files_order(struct writing *writing)
{
	const struct profile *profile = writing->profile;
	Pprof__Mapping *mappings = writing->files.messages;
	size_t place = 0;

	for (int others = 0; others < 2; others++)
		for (size_t i = 0; i < profile->files_len; i++) {
			if (profile->files[i].executable == others)
				continue;
			writing->files.pointers[place] = &mappings[i];
			mappings[i].id = ++place;
		}
}

/* 0: of no file. */
static uint64_t file_id(const struct writing *writing, const struct profile_file *file)
{
	const Pprof__Mapping *mappings = writing->files.messages;

	return file ? mappings[file - writing->profile->files].id : 0;
}

static int files_write(struct writing *writing)
{
	const struct profile *profile = writing->profile;
	Pprof__Mapping *mappings;

	if (array_make(&writing->files, profile->files_len, sizeof(*mappings)))
		return -ENOMEM;
	mappings = writing->files.messages;
	for (size_t i = 0; i < profile->files_len; i++) {
		const struct profile_file *file = &profile->files[i];

		pprof__mapping__init(&mappings[i]);
		mappings[i].memory_start = file_place(file) + file->begin;
		mappings[i].memory_limit = file_place(file) + file->end;
		mappings[i].file_offset = file->begin;
		mappings[i].filename = text_index(&writing->texts, file->path);
		mappings[i].build_id = text_index(&writing->texts, file->build_id);
		mappings[i].has_functions = true;
	}
	files_order(writing);
	return 0;
}

/* A location that has a name refers to a function by a line of its own. */
static void location_name(struct writing *writing, size_t i, const char *name)
{
	Pprof__Location *location = writing->locations.pointers[i];
	Pprof__Line *line = writing->lines.pointers[i];
	Pprof__Function *function;

	pprof__line__init(line);
	if (!name)
		return;
	function = writing->functions.pointers[writing->functions.len++];
	pprof__function__init(function);
	function->id = writing->functions.len;
	function->name = function->system_name = text_index(&writing->texts, name);
	line->function_id = function->id;
	location->n_line = 1;
	location->line = (Pprof__Line **)&writing->lines.pointers[i];
}

static int locations_write(struct writing *writing)
{
	const struct profile *profile = writing->profile;

	if (array_make(&writing->locations, writing->frames_len, sizeof(Pprof__Location)) ||
	    array_make(&writing->lines, writing->frames_len, sizeof(Pprof__Line)) ||
	    array_make(&writing->functions, writing->frames_len, sizeof(Pprof__Function)))
		return -ENOMEM;
	writing->functions.len = 0; /* so far */
	for (size_t i = 0; i < writing->frames_len; i++) {
		const struct profile_file *file = profile_file(profile, writing->frames[i]);
		Pprof__Location *location = writing->locations.pointers[i];

		pprof__location__init(location);
		location->id = i + 1;
		location->mapping_id = file_id(writing, file);
		location->address = frame_address(writing->frames[i]) +
				    (file ? file_place(file) : 0);
		location_name(writing, i, profile_name(profile, writing->frames[i]));
	}
	return 0;
}

static void label_write(struct writing *writing, size_t i, const char *key, const char *text)
{
	Pprof__Label *label = writing->labels.pointers[i];

	pprof__label__init(label);
	label->key = text_index(&writing->texts, key);
	label->str = text_index(&writing->texts, text);
}

static void sample_write(struct writing *writing, size_t i, uint64_t *ids)
{
	const struct profile_stack *stack = &writing->profile->stacks[i];
	Pprof__Sample *sample = writing->samples.pointers[i];

	pprof__sample__init(sample);
	sample->n_location_id = stack->len;
	sample->location_id = ids;
	for (size_t f = 0; f < stack->len; f++)
		ids[f] = location_id(writing, stack->frames[f]);
	sample->n_value = writing->values_len;
	sample->value = writing->values + VALUES * i;
	sample->value[0] = (int64_t)stack->count;
	sample->value[1] = (int64_t)stack->ns;
	sample->n_label = LABELS;
	sample->label = (Pprof__Label **)&writing->labels.pointers[LABELS * i];
	label_write(writing, LABELS * i, "workload", stack->workload);
	label_write(writing, LABELS * i + 1, "pool", stack->pool);
	label_write(writing, LABELS * i + 2, "state", stack->state);
}

static int samples_write(struct writing *writing)
{
	const struct profile *profile = writing->profile;
	size_t frames = frames_of_all(profile), at = 0;

	writing->ids = calloc(frames ? frames : 1, sizeof(*writing->ids));
	writing->values = calloc(VALUES * profile->stacks_len + 1, sizeof(*writing->values));
	if (!writing->ids || !writing->values ||
	    array_make(&writing->samples, profile->stacks_len, sizeof(Pprof__Sample)) ||
	    array_make(&writing->labels, LABELS * profile->stacks_len, sizeof(Pprof__Label)))
		return -ENOMEM;
	for (size_t i = 0; i < profile->stacks_len; i++) {
		sample_write(writing, i, writing->ids + at);
		at += profile->stacks[i].len;
	}
	return 0;
}

static int message_append(struct writing *writing, struct buffer *out)
{
	const struct profile *profile = writing->profile;
	const struct profile_kind_row *kind = &profile_kinds[profile->kind];
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__ValueType types[VALUES] = { PPROF__VALUE_TYPE__INIT, PPROF__VALUE_TYPE__INIT };
	Pprof__ValueType *type_pointers[VALUES] = { &types[0], &types[1] };
	int64_t comments[] = { text_index(&writing->texts, writing->complete),
			       text_index(&writing->texts, writing->lost) };
	char *room;

	types[0].type = text_index(&writing->texts, kind->count);
	types[0].unit = text_index(&writing->texts, "count");
	if (kind->time) {
		types[1].type = text_index(&writing->texts, kind->time);
		types[1].unit = text_index(&writing->texts, "nanoseconds");
	}
	if (writing->texts.error)
		return writing->texts.error;
	message.n_sample_type = writing->values_len;
	message.sample_type = type_pointers;
	message.period_type = &types[profile->period_ns ? 1 : 0];
	message.period = profile->period_ns ? (int64_t)profile->period_ns : 1;
	message.time_nanos = (int64_t)profile->time_ns;
	message.duration_nanos = (int64_t)profile->duration_ns;
	message.default_sample_type = types[writing->values_len - 1].type;
	message.n_sample = writing->samples.len;
	message.sample = (Pprof__Sample **)writing->samples.pointers;
	message.n_mapping = writing->files.len;
	message.mapping = (Pprof__Mapping **)writing->files.pointers;
	message.n_location = writing->locations.len;
	message.location = (Pprof__Location **)writing->locations.pointers;
	message.n_function = writing->functions.len;
	message.function = (Pprof__Function **)writing->functions.pointers;
	message.n_comment = COUNT(comments);
	message.comment = comments;
	message.n_string_table = writing->texts.len;
	message.string_table = (char **)writing->texts.text;
	room = buffer_reserve(out, pprof__profile__get_packed_size(&message));
	if (room)
		out->len += pprof__profile__pack(&message, (uint8_t *)room);
	return out->error;
}

static void writing_free(struct writing *writing)
{
	array_free(&writing->files);
	array_free(&writing->locations);
	array_free(&writing->lines);
	array_free(&writing->functions);
	array_free(&writing->samples);
	array_free(&writing->labels);
	free(writing->frames);
	free(writing->ids);
	free(writing->values);
	texts_free(&writing->texts);
}

int pprof_write(const struct profile *profile, struct buffer *out)
{
	const struct profile_kind_row *kind = &profile_kinds[profile->kind];
	_cleanup_(writing_free) struct writing writing = { .profile = profile,
							   .values_len = kind->time ? 2 : 1 };
	int r;

	snprintf(writing.complete, sizeof(writing.complete),
		 "complete stacks: %" PRIu64 " of %" PRIu64 "%s", profile->complete,
		 profile->weight, kind->waits ? " ns" : "");
	snprintf(writing.lost, sizeof(writing.lost), "lost samples: %" PRIu64, profile->lost);
	text_index(&writing.texts, "");
	r = frames_collect(&writing);
	if (!r)
		r = files_write(&writing);
	if (!r)
		r = locations_write(&writing);
	if (!r)
		r = samples_write(&writing);
	return r ? r : message_append(&writing, out);
}

int pprof_write_gzip(const struct profile *profile, struct buffer *out)
{
	_cleanup_(buffer_free) struct buffer plain = BUFFER_INIT(PPROF_BYTES_MAX);
	int r = pprof_write(profile, &plain);

	return r ? r : exposition_gzip(&plain, out);
}
