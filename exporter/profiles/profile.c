/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/profile.h"

#include <stdlib.h>

#include "abi/profiles.h"

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
