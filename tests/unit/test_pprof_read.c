/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that files have, and what is none. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "abi/profiles.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "profiles/pprof.h"
#include "profiles/pprof_read.h"

static const uint64_t frames[] = { (uint64_t)1 << 48 | 0x1010, (uint64_t)1 << 48 | 0x1100 };
static const struct profile_file file = {
	.number = 1, .path = "/bin/web", .begin = 0x1000, .end = 0x9000
};
static const struct profile_name names[] = { { (uint64_t)1 << 48 | 0x1100, "main" } };
static const struct profile_stack stack = { frames, 2, "web", "web", "running", 7, 70 };
static const struct profile made = {
	.time_ns = 1000,
	.duration_ns = 2000,
	.period_ns = 10,
	.files = &file,
	.files_len = 1,
	.names = names,
	.names_len = 1,
	.stacks = &stack,
	.stacks_len = 1,
};

static int read_from(const struct buffer *bytes)
{
	Pprof__Profile *profile;
	int r = pprof_read(bytes->data, bytes->len, &profile);

	cr_expect_eq(profile == NULL, r != 0);
	pprof_free(profile);
	return r;
}

Test(pprof_read, reads_what_was_written_compressed_or_not)
{
	for (int packed = 0; packed < 2; packed++) {
		_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(PPROF_BYTES_MAX);
		const Pprof__Location *location;
		Pprof__Profile *profile;

		cr_assert_eq(packed ? pprof_write_gzip(&made, &out) : pprof_write(&made, &out), 0);
		cr_assert_eq(pprof_read(out.data, out.len, &profile), 0);
		cr_assert_eq(profile->n_sample, 1);
		cr_expect_eq(profile->duration_nanos, 2000);
		cr_expect_eq(profile->sample[0]->value[0], 7);
		location = pprof_location(profile, profile->sample[0]->location_id[1]);
		cr_assert_not_null(location);
		cr_expect_str_eq(profile->string_table[pprof_mapping(profile, location->mapping_id)
							       ->filename],
				 "/bin/web");
		cr_expect_str_eq(
			profile->string_table
				[pprof_function(profile, location->line[0]->function_id)->name],
			"main");
		cr_expect_null(pprof_location(profile, 0));
		cr_expect_null(pprof_location(profile, 99));
		pprof_free(profile);
	}
}

Test(pprof_read, refuses_what_is_cut_or_has_more_behind_it)
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(PPROF_BYTES_MAX);
	size_t whole;

	cr_assert_eq(pprof_write_gzip(&made, &out), 0);
	whole = out.len; /* some 200 bytes: a size of as many is no size of theirs */
	for (out.len = 0; out.len < whole; out.len++)
		cr_expect_eq(read_from(&out), -EINVAL, "%zu bytes", out.len);
	buffer_char(&out, 'x');
	cr_expect_eq(read_from(&out), -EINVAL);
}

/* What the last bytes say of the size is what is believed, and no more. */
Test(pprof_read, refuses_what_is_larger_than_it_says_or_than_may_be)
{
	static const struct {
		unsigned char size[4];
		size_t bytes; /* of the file, zeros before the size */
		int error;
	} rows[] = { { { 1, 0, 0, 0 }, 0, -EINVAL },
		     { { 0, 0, 1, 0 }, 0, -EINVAL },
		     { { 255, 255, 255, 255 }, 0, -EINVAL }, /* so little has not so much */
		     { { 1, 0, 0, 4 }, 70000, -E2BIG },
		     { { 0, 0, 0, 4 }, 70000, -EINVAL } };

	for (size_t i = 0; i < COUNT(rows); i++) {
		_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(PPROF_BYTES_MAX);

		cr_assert_eq(pprof_write_gzip(&made, &out), 0);
		while (out.len < rows[i].bytes)
			buffer_char(&out, '\0');
		memcpy(out.data + out.len - 4, rows[i].size, 4);
		cr_expect_eq(read_from(&out), rows[i].error, "row %zu", i);
	}
}

/* --- what refers to what is not there ------------------------------------------------------- */

static void no_types(Pprof__Profile *profile)
{
	profile->n_sample_type = 0;
	profile->sample[0]->n_value = 0;
}

static void no_texts(Pprof__Profile *profile)
{
	profile->n_string_table = 0;
}

static void type_far(Pprof__Profile *profile)
{
	profile->sample_type[0]->type = (int64_t)profile->n_string_table;
}

static void unit_below(Pprof__Profile *profile)
{
	profile->sample_type[0]->unit = -1;
}

static void default_far(Pprof__Profile *profile)
{
	profile->default_sample_type = INT64_MAX;
}

static void name_far(Pprof__Profile *profile)
{
	profile->function[0]->name = INT64_MAX;
}

static void path_far(Pprof__Profile *profile)
{
	profile->mapping[0]->filename = INT64_MIN;
}

static void file_without_id(Pprof__Profile *profile)
{
	profile->mapping[0]->id = 0;
}

static void file_gone(Pprof__Profile *profile)
{
	profile->location[0]->mapping_id = 99;
}

static void function_gone(Pprof__Profile *profile)
{
	profile->function[0]->id = 99;
}

static void location_twice(Pprof__Profile *profile)
{
	profile->location[1]->id = profile->location[0]->id;
}

static void location_gone(Pprof__Profile *profile)
{
	profile->sample[0]->location_id[0] = 99;
}

static void value_below_zero(Pprof__Profile *profile)
{
	profile->sample[0]->value[1] = -1;
}

static void value_missing(Pprof__Profile *profile)
{
	profile->sample[0]->n_value = 1;
}

static int read_changed(void (*change)(Pprof__Profile *))
{
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(PPROF_BYTES_MAX);
	Pprof__Profile *profile;
	size_t values, texts, types;
	char *room;

	cr_assert_eq(pprof_write(&made, &out), 0);
	profile = pprof__profile__unpack(NULL, out.len, (const uint8_t *)out.data);
	cr_assert_not_null(profile);
	values = profile->sample[0]->n_value;
	texts = profile->n_string_table;
	types = profile->n_sample_type;
	change(profile);
	out.len = 0;
	room = buffer_reserve(&out, pprof__profile__get_packed_size(profile));
	out.len = pprof__profile__pack(profile, (uint8_t *)room);
	profile->sample[0]->n_value = values;
	profile->n_string_table = texts;
	profile->n_sample_type = types;
	pprof_free(profile);
	return read_from(&out);
}

Test(pprof_read, refuses_what_refers_to_what_is_not_there)
{
	static void (*const changes[])(Pprof__Profile *) = {
		no_types,      type_far,      unit_below,       default_far,   name_far,
		path_far,      file_gone,     file_without_id,  function_gone, location_twice,
		location_gone, value_missing, value_below_zero, no_texts,
	};

	for (size_t i = 0; i < COUNT(changes); i++)
		cr_expect_eq(read_changed(changes[i]), -EINVAL, "change %zu", i);
}
