/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/pprof_read.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/cleanup.h"

#define GZIP_BYTES_MIN 18U /* of a header and what is behind the data (RFC 1952) */
#define GZIP_RATIO_MAX 1032U /* of what is compressed: 258 bytes in two bits */
#define GZIP_SIZE_BYTES 4U /* the size of the data, at the end: modulo 2^32 */

/* --- bytes ---------------------------------------------------------------------------------- */

static bool is_gzip(const uint8_t *bytes, size_t len)
{
	return len >= GZIP_BYTES_MIN && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/* How large it says to be: what is larger than it says is refused. */
static size_t gzip_size(const uint8_t *bytes, size_t len)
{
	const uint8_t *at = bytes + len - GZIP_SIZE_BYTES;

	return (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

static int gzip_unpack(const uint8_t *bytes, size_t len, struct buffer *out)
{
	struct libdeflate_decompressor *decompressor;
	size_t size = gzip_size(bytes, len), used;
	enum libdeflate_result result;
	char *at;

	if (size / GZIP_RATIO_MAX > len)
		return -EINVAL; /* it was cut, or is none */
	at = buffer_reserve(out, size + 1);
	if (!at)
		return out->error == -ENOBUFS ? -E2BIG : -ENOMEM;
	decompressor = libdeflate_alloc_decompressor();
	if (!decompressor)
		return -ENOMEM;
	result = libdeflate_gzip_decompress_ex(decompressor, bytes, len, at, size, &used,
					       &out->len);
	libdeflate_free_decompressor(decompressor);
	return result == LIBDEFLATE_SUCCESS && used == len ? 0 : -EINVAL;
}

/* --- messages ------------------------------------------------------------------------------- */

/* A message of two bytes takes some hundred of memory. */
struct memory {
	size_t left;
	int error; /* 0, -E2BIG or -ENOMEM */
};

static void *memory_take(void *arg, size_t size)
{
	struct memory *memory = arg;
	void *taken;

	if (size > memory->left) {
		memory->error = -E2BIG;
		return NULL;
	}
	memory->left -= size;
	taken = malloc(size);
	if (!taken)
		memory->error = -ENOMEM;
	return taken;
}

static void memory_free(void *arg, void *taken)
{
	(void)arg;
	free(taken);
}

static int message_read(const uint8_t *bytes, size_t len, Pprof__Profile **out)
{
	struct memory memory = { .left = PPROF_READ_MEMORY_MAX };
	ProtobufCAllocator allocator = { memory_take, memory_free, &memory };

	*out = pprof__profile__unpack(&allocator, len, bytes);
	if (!*out)
		return memory.error ? memory.error : -EINVAL;
	return 0;
}

void pprof_free(Pprof__Profile *profile)
{
	pprof__profile__free_unpacked(profile, NULL);
}

/* --- what has an id ------------------------------------------------------------------------- */

/* Of messages whose id is their first member. */
struct numbered {
	ProtobufCMessage base;
	uint64_t id;
};
_Static_assert(offsetof(Pprof__Location, id) == offsetof(struct numbered, id) &&
		       offsetof(Pprof__Function, id) == offsetof(struct numbered, id) &&
		       offsetof(Pprof__Mapping, id) == offsetof(struct numbered, id),
	       "ids are found where they are");

static int numbered_compare(const void *a, const void *b)
{
	const struct numbered *one = *(const struct numbered *const *)a;
	const struct numbered *other = *(const struct numbered *const *)b;

	return one->id < other->id ? -1 : one->id > other->id;
}

/* Puts them in order. Whether each has an id of its own. */
static bool numbered_sort(void *pointers, size_t len)
{
	const struct numbered *const *rows = pointers;

	if (!len)
		return true;
	qsort(pointers, len, sizeof(void *), numbered_compare);
	for (size_t i = 1; i < len; i++)
		if (rows[i - 1]->id == rows[i]->id)
			return false;
	return rows[0]->id != 0;
}

static const void *numbered_find(void *const *pointers, size_t len, uint64_t id)
{
	const struct numbered wanted = { .id = id }, *key = &wanted;
	void *const *found = len ? bsearch(&key, pointers, len, sizeof(void *), numbered_compare)
				 : NULL;

	return found ? *found : NULL;
}

const Pprof__Location *pprof_location(const Pprof__Profile *profile, uint64_t id)
{
	return numbered_find((void *const *)profile->location, profile->n_location, id);
}

const Pprof__Function *pprof_function(const Pprof__Profile *profile, uint64_t id)
{
	return numbered_find((void *const *)profile->function, profile->n_function, id);
}

const Pprof__Mapping *pprof_mapping(const Pprof__Profile *profile, uint64_t id)
{
	return numbered_find((void *const *)profile->mapping, profile->n_mapping, id);
}

/* --- whether all is there ------------------------------------------------------------------- */

static bool is_text(const Pprof__Profile *profile, int64_t index)
{
	return index >= 0 && (uint64_t)index < profile->n_string_table;
}

static bool types_are_good(const Pprof__Profile *profile)
{
	for (size_t i = 0; i < profile->n_sample_type; i++)
		if (!is_text(profile, profile->sample_type[i]->type) ||
		    !is_text(profile, profile->sample_type[i]->unit))
			return false;
	return profile->n_sample_type > 0 && is_text(profile, profile->default_sample_type);
}

static bool functions_are_good(const Pprof__Profile *profile)
{
	for (size_t i = 0; i < profile->n_function; i++)
		if (!is_text(profile, profile->function[i]->name))
			return false;
	return numbered_sort(profile->function, profile->n_function);
}

static bool mappings_are_good(const Pprof__Profile *profile)
{
	for (size_t i = 0; i < profile->n_mapping; i++)
		if (!is_text(profile, profile->mapping[i]->filename))
			return false;
	return numbered_sort(profile->mapping, profile->n_mapping);
}

static bool location_is_good(const Pprof__Profile *profile, const Pprof__Location *location)
{
	if (location->mapping_id && !pprof_mapping(profile, location->mapping_id))
		return false;
	for (size_t i = 0; i < location->n_line; i++)
		if (!pprof_function(profile, location->line[i]->function_id))
			return false;
	return true;
}

static bool locations_are_good(const Pprof__Profile *profile)
{
	for (size_t i = 0; i < profile->n_location; i++)
		if (!location_is_good(profile, profile->location[i]))
			return false;
	return numbered_sort(profile->location, profile->n_location);
}

static bool sample_is_good(const Pprof__Profile *profile, const Pprof__Sample *sample)
{
	if (sample->n_value != profile->n_sample_type)
		return false;
	for (size_t i = 0; i < sample->n_value; i++)
		if (sample->value[i] < 0)
			return false;
	for (size_t i = 0; i < sample->n_location_id; i++)
		if (!pprof_location(profile, sample->location_id[i]))
			return false;
	return true;
}

/* In this order: what is looked up is in order by then. */
static bool profile_is_good(const Pprof__Profile *profile)
{
	if (!types_are_good(profile) || !functions_are_good(profile) ||
	    !mappings_are_good(profile) || !locations_are_good(profile))
		return false;
	for (size_t i = 0; i < profile->n_sample; i++)
		if (!sample_is_good(profile, profile->sample[i]))
			return false;
	return true;
}

int pprof_read(const void *bytes, size_t len, Pprof__Profile **out)
{
	_cleanup_(buffer_free) struct buffer plain = BUFFER_INIT(PPROF_READ_BYTES_MAX + 1);
	bool packed = is_gzip(bytes, len);
	int r = 0;

	*out = NULL;
	if (len > PPROF_READ_BYTES_MAX)
		return -E2BIG;
	if (packed)
		r = gzip_unpack(bytes, len, &plain);
	if (!r)
		r = packed ? message_read((const uint8_t *)plain.data, plain.len, out)
			   : message_read(bytes, len, out);
	if (!r && !profile_is_good(*out))
		r = -EINVAL;
	if (r) {
		pprof_free(*out);
		*out = NULL;
	}
	return r;
}
