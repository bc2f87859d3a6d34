/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as others read it. */
#include <criterion/criterion.h>

#include <string.h>

#include "abi/profiles.h"
#include "profile.pb-c.h"
#include "profiles/folded.h"
#include "profiles/pprof.h"

#define LEN(array) (sizeof(array) / sizeof((array)[0]))
#define FRAME(file, address) ((uint64_t)(file) << 48 | (address))

static const uint64_t work[] = { FRAME(2, 0x1f20), FRAME(1, 0x1010), FRAME(1, 0x1100) };
static const uint64_t other[] = { FRAME(0, 0x7f0000001234), FRAME(1, 0x1010), FRAME(1, 0x1100) };
static const struct profile_file files[] = {
	{ .number = 1,
	  .path = "/usr/sbin/server",
	  .build_id = "abcd",
	  .begin = 0x1000,
	  .end = 0x9000 },
	{ .number = 2, .path = "/lib/libc.so.6", .begin = 0x1000, .end = 0x2000 },
};
static const struct profile_name names[] = {
	{ FRAME(1, 0x1010), "work;hard\n" },
	{ FRAME(1, 0x1100), "main" },
};
static const struct profile_stack stacks[] = {
	{ work, LEN(work), "server", "worker-#", "running", 7, 70 },
	{ other, LEN(other), "server", "worker-#", "lock", 3, 30 },
};
static const struct profile profile = {
	.time_ns = 1000,
	.duration_ns = 2000,
	.period_ns = 10,
	.samples = 10,
	.weight = 10,
	.complete = 7,
	.lost = 4,
	.files = files,
	.files_len = LEN(files),
	.names = names,
	.names_len = LEN(names),
	.stacks = stacks,
	.stacks_len = LEN(stacks),
};

/* As Parca wants them (its pkg/normalizer/validate.go). */
static void expect_ids_in_sequence(const Pprof__Profile *read)
{
	for (size_t i = 0; i < read->n_mapping; i++)
		cr_expect_eq(read->mapping[i]->id, i + 1);
	for (size_t i = 0; i < read->n_location; i++)
		cr_expect_eq(read->location[i]->id, i + 1);
	for (size_t i = 0; i < read->n_function; i++)
		cr_expect_eq(read->function[i]->id, i + 1);
}

static Pprof__Profile *read_back(const struct profile *written)
{
	struct buffer out = BUFFER_INIT(1 << 20);
	Pprof__Profile *read;

	cr_assert_eq(pprof_write(written, &out), 0);
	read = pprof__profile__unpack(NULL, out.len, (const uint8_t *)out.data);
	cr_assert_not_null(read);
	expect_ids_in_sequence(read);
	buffer_free(&out);
	return read;
}

static const char *text(const Pprof__Profile *read, int64_t index)
{
	cr_assert_lt((size_t)index, read->n_string_table);
	return read->string_table[index];
}

static const Pprof__Location *location(const Pprof__Profile *read, uint64_t id)
{
	cr_assert(id && id <= read->n_location);
	cr_assert_eq(read->location[id - 1]->id, id);
	return read->location[id - 1];
}

static const char *name(const Pprof__Profile *read, uint64_t id)
{
	const Pprof__Location *at = location(read, id);

	if (!at->n_line)
		return "";
	for (size_t i = 0; i < read->n_function; i++)
		if (read->function[i]->id == at->line[0]->function_id)
			return text(read, read->function[i]->name);
	cr_assert(0, "no function %lu", at->line[0]->function_id);
	return NULL;
}

Test(pprof, has_each_stack_with_its_values_and_labels)
{
	Pprof__Profile *read = read_back(&profile);
	const Pprof__Sample *sample = read->sample[1];

	cr_expect_str_empty(read->string_table[0]);
	cr_assert_eq(read->n_sample, 2);
	cr_assert_eq(read->sample[0]->n_value, 2);
	cr_expect_eq(read->sample[0]->value[0], 7);
	cr_expect_eq(read->sample[0]->value[1], 70);
	cr_assert_eq(sample->n_label, 3);
	cr_expect_str_eq(text(read, sample->label[0]->key), "workload");
	cr_expect_str_eq(text(read, sample->label[0]->str), "server");
	cr_expect_str_eq(text(read, sample->label[1]->str), "worker-#");
	cr_expect_str_eq(text(read, sample->label[2]->str), "lock");
	cr_expect_str_eq(text(read, read->sample_type[0]->type), "samples");
	cr_expect_str_eq(text(read, read->sample_type[1]->type), "cpu");
	cr_expect_str_eq(text(read, read->sample_type[1]->unit), "nanoseconds");
	cr_expect_eq(read->period, 10);
	cr_expect_eq(read->duration_nanos, 2000);
	pprof__profile__free_unpacked(read, NULL);
}

Test(pprof, has_each_frame_once_and_names_those_that_have_one)
{
	Pprof__Profile *read = read_back(&profile);
	const Pprof__Sample *first = read->sample[0], *second = read->sample[1];

	cr_expect_eq(read->n_location, 4);
	cr_expect_eq(read->n_function, 2);
	cr_assert_eq(first->n_location_id, 3);
	cr_expect_eq(first->location_id[1], second->location_id[1]);
	cr_expect_str_eq(name(read, first->location_id[0]), "");
	cr_expect_str_eq(name(read, first->location_id[1]), "work;hard\n");
	cr_expect_str_eq(name(read, first->location_id[2]), "main");
	pprof__profile__free_unpacked(read, NULL);
}

Test(pprof, tells_of_the_executable_first)
{
	struct profile_file others[] = { files[0], files[1] };
	struct profile own = profile;
	Pprof__Profile *read;

	others[1].executable = true;
	own.files = others;
	read = read_back(&own);
	cr_assert_eq(read->n_mapping, 2);
	cr_expect_str_eq(text(read, read->mapping[0]->filename), others[1].path);
	cr_expect_str_eq(text(read, read->mapping[1]->filename), others[0].path);
	cr_expect_eq(location(read, read->sample[0]->location_id[0])->mapping_id,
		     read->mapping[0]->id);
	cr_expect_eq(location(read, read->sample[0]->location_id[1])->mapping_id,
		     read->mapping[1]->id);
	pprof__profile__free_unpacked(read, NULL);
}

Test(pprof, says_what_is_missing)
{
	Pprof__Profile *read = read_back(&profile);

	cr_assert_eq(read->n_comment, 2);
	cr_expect_str_eq(text(read, read->comment[0]), "complete stacks: 7 of 10");
	cr_expect_str_eq(text(read, read->comment[1]), "lost samples: 4");
	pprof__profile__free_unpacked(read, NULL);
}

/* As Go calls them, of whose profiles of locks and blocking others know the names. */
Test(pprof, of_waits_has_their_number_and_their_time)
{
	static const struct {
		enum profile_kind kind;
		const char *count, *time;
	} rows[] = {
		{ PROFILE_OFFCPU, "waits", "offcpu" },
		{ PROFILE_BLOCK, "contentions", "delay" },
		{ PROFILE_LOCK, "contentions", "delay" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct profile waits = profile;
		Pprof__Profile *read;

		waits.kind = rows[i].kind;
		waits.period_ns = 0;
		waits.weight = 100;
		read = read_back(&waits);
		cr_expect_str_eq(text(read, read->sample_type[0]->type), rows[i].count);
		cr_expect_str_eq(text(read, read->sample_type[0]->unit), "count");
		cr_expect_str_eq(text(read, read->sample_type[1]->type), rows[i].time);
		cr_expect_str_eq(text(read, read->sample_type[1]->unit), "nanoseconds");
		cr_expect_str_eq(text(read, read->period_type->type), rows[i].count);
		cr_expect_eq(read->period, 1);
		cr_expect_eq(read->sample[1]->value[0], 3);
		cr_expect_eq(read->sample[1]->value[1], 30);
		cr_expect_str_eq(text(read, read->comment[0]), "complete stacks: 7 of 100 ns");
		pprof__profile__free_unpacked(read, NULL);
	}
}

Test(pprof, of_page_faults_has_their_number_only)
{
	struct profile faults = profile;
	Pprof__Profile *read;

	faults.kind = PROFILE_FAULT;
	faults.period_ns = 0;
	read = read_back(&faults);
	cr_assert_eq(read->n_sample_type, 1);
	cr_expect_str_eq(text(read, read->sample_type[0]->type), "faults");
	cr_expect_str_eq(text(read, read->sample_type[0]->unit), "count");
	cr_expect_str_eq(text(read, read->default_sample_type), "faults");
	cr_expect_str_eq(text(read, read->period_type->type), "faults");
	cr_assert_eq(read->sample[1]->n_value, 1);
	cr_expect_eq(read->sample[1]->value[0], 3);
	cr_expect_str_eq(text(read, read->comment[0]), "complete stacks: 7 of 10");
	pprof__profile__free_unpacked(read, NULL);
}

/* Or pprof takes one file for the other. */
Test(pprof, has_files_that_do_not_overlap_and_frames_within_theirs)
{
	Pprof__Profile *read = read_back(&profile);
	const Pprof__Location *inside = location(read, read->sample[0]->location_id[0]);
	const Pprof__Location *nowhere = location(read, read->sample[1]->location_id[0]);
	const Pprof__Mapping *libc = read->mapping[1];

	cr_assert_eq(read->n_mapping, 2);
	cr_expect_lt(read->mapping[0]->memory_limit, libc->memory_start);
	cr_expect_eq(inside->mapping_id, libc->id);
	cr_expect_geq(inside->address, libc->memory_start);
	cr_expect_lt(inside->address, libc->memory_limit);
	cr_expect_str_eq(text(read, libc->filename), "/lib/libc.so.6");
	cr_expect_str_eq(text(read, read->mapping[0]->build_id), "abcd");
	cr_expect_eq(nowhere->mapping_id, 0);
	cr_expect_eq(nowhere->address, 0x7f0000001234);
	pprof__profile__free_unpacked(read, NULL);
}

Test(pprof, of_nothing_is_a_profile_as_well)
{
	const struct profile nothing = { .samples = 0 };
	Pprof__Profile *read = read_back(&nothing);

	cr_expect_eq(read->n_sample, 0);
	cr_expect_eq(read->n_sample_type, 2);
	pprof__profile__free_unpacked(read, NULL);
}

Test(pprof, that_does_not_fit_is_an_error)
{
	struct buffer out = BUFFER_INIT(10);

	cr_expect_neq(pprof_write(&profile, &out), 0);
	buffer_free(&out);
}

Test(folded, is_a_line_for_each_stack_outermost_first)
{
	struct buffer out = BUFFER_INIT(1 << 20);

	folded_write(&profile, &out);
	buffer_char(&out, '\0');
	cr_expect_str_eq(out.data, "server;worker-#;running;main;work_hard_;libc.so.6+0x1f20 7\n"
				   "server;worker-#;lock;main;work_hard_;0x7f0000001234 3\n"
				   "[lost] 4\n");
	buffer_free(&out);
}
