/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/profile.h"

#include <stdlib.h>
#include <string.h>

#include "abi/profiles.h"
#include "base/text.h"

const struct profile_kind_row profile_kinds[PROFILE_KINDS] = {
	[PROFILE_CPU] = { "samples", "cpu", false },
	[PROFILE_OFFCPU] = { "waits", "offcpu", true },
	/* Names that Go has given them, and that others know (runtime/pprof). */
	[PROFILE_BLOCK] = { "contentions", "delay", true },
	[PROFILE_LOCK] = { "contentions", "delay", true },
	[PROFILE_FAULT] = { "faults", NULL, false },
};

static int frame_compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

size_t profile_frames_sort(uint64_t *frames, size_t len)
{
	size_t kept = 0;

	qsort(frames, len, sizeof(*frames), frame_compare);
	for (size_t i = 0; i < len; i++)
		if (!kept || frames[kept - 1] != frames[i])
			frames[kept++] = frames[i];
	return kept;
}

const uint64_t *profile_frames_find(const uint64_t *frames, size_t len, uint64_t frame)
{
	return len ? bsearch(&frame, frames, len, sizeof(frame), frame_compare) : NULL;
}

static int name_compare(const void *key, const void *row)
{
	uint64_t frame = *(const uint64_t *)key;
	const struct profile_name *name = row;

	return frame < name->frame ? -1 : frame > name->frame;
}

static int file_compare(const void *key, const void *row)
{
	uint32_t number = *(const uint32_t *)key;
	const struct profile_file *file = row;

	return number < file->number ? -1 : number > file->number;
}

const struct profile_file *profile_file(const struct profile *profile, uint64_t frame)
{
	uint32_t number = frame_file(frame);

	return profile->files_len ? bsearch(&number, profile->files, profile->files_len,
					    sizeof(*profile->files), file_compare)
				  : NULL;
}

const char *profile_name(const struct profile *profile, uint64_t frame)
{
	const struct profile_name *name = profile->names_len
						  ? bsearch(&frame, profile->names,
							    profile->names_len,
							    sizeof(*profile->names), name_compare)
						  : NULL;

	return name ? name->text : NULL;
}

bool profile_name_has_file(const char *text, const char *file)
{
	return !*file || !strcmp(text, file) ||
	       (text_has_prefix(text, file) && text[strlen(file)] == '+');
}
