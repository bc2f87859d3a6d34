/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes for the names of functions, while the survey goes on. */
#include "surveying.h"

#include "abi/profiles.h"

#define ADDRESS 0x10000ULL
#define SECOND 1000000000ULL
#define LATE (11 * SECOND) /* for names, demangled */
#define FORGOTTEN (11 * 60 * SECOND) /* that they were */

/* A process that runs two files, which are known. */
static struct surveying *known(uint32_t numbers[static 2])
{
	struct surveying *surveying = surveying_new();

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying_map(surveying, 0, 2 * ADDRESS, 6);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	for (size_t i = 0; i < 2; i++)
		numbers[i] = surveying_code(surveying, 0)->ranges[i].file;
	surveying->script->parser.len = 0;
	return surveying;
}

static void wait_until_done(struct surveying *surveying, const struct survey_wish *wish)
{
	uint64_t end_ns = clock_monotonic_ns() + SURVEY_WAIT_NS;

	survey_go_on(&surveying->survey, clock_monotonic_ns());
	while (!wish->done) {
		cr_assert_lt(clock_monotonic_ns(), end_ns, "the wish is never done");
		surveying_step(surveying, 0);
	}
}

static void wait_until_asked(struct surveying *surveying, size_t len)
{
	uint64_t end_ns = clock_monotonic_ns() + SURVEY_WAIT_NS;

	survey_go_on(&surveying->survey, clock_monotonic_ns());
	while (surveying->script->parser.len < len) {
		cr_assert_lt(clock_monotonic_ns(), end_ns, "the parser is not asked");
		surveying_step(surveying, 0);
	}
}

static void expect_names(struct survey_wish *wish)
{
	char name[32];

	cr_assert_eq(wish->result, 0);
	for (size_t i = 0; i < wish->names.len; i++) {
		snprintf(name, sizeof(name), "at_%lx", (uint64_t)frame_address(wish->frames[i]));
		cr_expect_str_eq(parsed_names_text(&wish->names, i), name);
	}
	parsed_names_free(&wish->names);
}

Test(survey_names, are_those_of_the_addresses_that_are_asked)
{
	uint32_t files[2];
	struct surveying *surveying = known(files);
	const uint64_t frames[] = { frame_make(files[1], 0x2004), frame_make(files[1], 0x2008) };
	struct survey_wish wish = { .file = files[1], .frames = frames, .len = 2 };

	survey_ask(&surveying->survey, &wish);
	cr_expect_not(wish.done);
	wait_until_done(surveying, &wish);
	cr_expect_eq(wish.names.len, 2);
	expect_names(&wish);
	surveying_free(surveying);
}

/* One after the other: the process that is being read comes first, all others later. */
Test(survey_names, come_before_the_next_process)
{
	uint32_t files[2];
	struct surveying *surveying = known(files);
	const uint64_t frames[] = { frame_make(files[0], 0x2004) };
	struct survey_wish wish = { .file = files[0], .frames = frames, .len = 1 };

	surveying->script->held = true;
	for (uint64_t inode = 7; inode < 9; inode++) {
		surveying_add(surveying);
		surveying_map(surveying, surveying->len - 1, ADDRESS, inode);
	}
	surveying_walk(surveying, clock_monotonic_ns());
	wait_until_asked(surveying, 1);
	survey_ask(&surveying->survey, &wish);
	surveying->script->held = false;
	wait_until_done(surveying, &wish);
	expect_names(&wish);
	surveying_run(surveying);
	cr_assert_eq(surveying->script->parser.len, 3);
	cr_expect_eq(surveying->script->parser.asked[0], 0);
	cr_expect_eq(surveying->script->parser.asked[1], 1, "names");
	cr_expect_eq(surveying->script->parser.asked[2], 0);
	cr_expect_not_null(surveying_file(surveying, 1, 0));
	cr_expect_not_null(surveying_file(surveying, 2, 0));
	surveying_free(surveying);
}

Test(survey_names, are_no_longer_told_once_the_wish_is_given_up)
{
	uint32_t files[2];
	struct surveying *surveying = known(files);
	const uint64_t frames[] = { frame_make(files[0], 0x2004) };
	struct survey_wish wish = { .file = files[0], .frames = frames, .len = 1 };

	surveying->script->held = true;
	survey_ask(&surveying->survey, &wish);
	wait_until_asked(surveying, 1);
	survey_give_up(&surveying->survey);
	surveying->script->held = false;
	surveying_run(surveying);
	cr_expect_not(wish.done);
	cr_expect_null(wish.names.names);
	surveying_free(surveying);
}

/* The answer to the one that was given up is not taken for that to the next. */
Test(survey_names, are_not_those_of_a_wish_that_was_given_up)
{
	uint32_t files[2];
	struct surveying *surveying = known(files);
	const uint64_t frames[] = { frame_make(files[0], 0x2004) };
	const uint64_t others[] = { frame_make(files[1], 0x2008) };
	struct survey_wish wish = { .file = files[0], .frames = frames, .len = 1 };
	struct survey_wish next = { .file = files[1], .frames = others, .len = 1 };

	surveying->script->held = true;
	survey_ask(&surveying->survey, &wish);
	wait_until_asked(surveying, 1);
	survey_give_up(&surveying->survey);
	survey_ask(&surveying->survey, &next);
	surveying->script->held = false;
	wait_until_done(surveying, &next);
	expect_names(&next);
	cr_expect_eq(surveying->script->parser.len, 2);
	surveying_free(surveying);
}

/* It may be given up where it was not asked yet. */
Test(survey_names, that_were_given_up_are_not_asked_for)
{
	uint32_t files[2];
	struct surveying *surveying = known(files);
	const uint64_t frames[] = { frame_make(files[0], 0x2004) };
	struct survey_wish wish = { .file = files[0], .frames = frames, .len = 1 };

	survey_ask(&surveying->survey, &wish);
	survey_give_up(&surveying->survey);
	surveying_run(surveying);
	cr_expect_eq(surveying->script->parser.len, 0);
	surveying_free(surveying);
}

Test(survey_names, fail_where_the_parser_does_and_the_next_are_told)
{
	static const struct {
		enum script_fault fault;
		int result;
	} rows[] = {
		{ SCRIPT_REFUSE, -EACCES },
		{ SCRIPT_RUBBISH, -EPROTO },
		{ SCRIPT_LIE, -EPROTO },
		{ SCRIPT_END, -ETIMEDOUT },
	};
	uint32_t files[2];
	struct surveying *surveying = known(files);
	const uint64_t frames[] = { frame_make(files[0], 0x2004) };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct survey_wish wish = { .file = files[0], .frames = frames, .len = 1 };

		surveying->script->names = rows[i].fault;
		survey_ask(&surveying->survey, &wish);
		wait_until_done(surveying, &wish);
		cr_expect_eq(wish.result, rows[i].result, "%zu: %d", i, wish.result);
		cr_expect_null(wish.names.names, "%zu", i);
		surveying->script->names = SCRIPT_NONE;
		survey_ask(&surveying->survey, &wish);
		wait_until_done(surveying, &wish);
		expect_names(&wish);
	}
	surveying_free(surveying);
}

/* A name may be made so that demangling it has no end; or the machine is busy. */
Test(survey_names, are_quickly_asked_for_where_they_take_too_long)
{
	uint32_t files[2];
	struct surveying *surveying = known(files);
	const uint64_t frames[] = { frame_make(files[0], 0x2004) };
	struct survey_wish wish = { .file = files[0], .frames = frames, .len = 1 };

	surveying->script->demangles_long = true;
	survey_ask(&surveying->survey, &wish);
	wait_until_asked(surveying, 1);
	surveying_step(surveying, LATE);
	wait_until_done(surveying, &wish);
	expect_names(&wish);
	cr_expect_eq(surveying->script->parser.len, 2);
	survey_ask(&surveying->survey, &wish);
	wait_until_done(surveying, &wish);
	expect_names(&wish);
	cr_expect_eq(surveying->script->parser.len, 3, "it is known of the file");
	survey_ask(&surveying->survey, &wish);
	surveying_step(surveying, FORGOTTEN);
	wait_until_asked(surveying, 4);
	surveying_step(surveying, FORGOTTEN + LATE);
	wait_until_done(surveying, &wish);
	expect_names(&wish);
	cr_expect_eq(surveying->script->parser.len, 5, "not for good");
	surveying_free(surveying);
}

Test(survey_names, of_a_file_that_cannot_be_read_are_none)
{
	uint32_t files[2];
	struct surveying *surveying = known(files);
	const uint64_t frames[] = { frame_make(surveying->survey.vdso, 0x500) };
	struct survey_wish wish = { .file = surveying->survey.vdso, .frames = frames, .len = 1 };

	survey_ask(&surveying->survey, &wish);
	wait_until_done(surveying, &wish);
	cr_expect_eq(wish.result, -ENOENT, "it has no descriptor");
	wish.file = UNWIND_FILES_MAX - 1;
	survey_ask(&surveying->survey, &wish);
	wait_until_done(surveying, &wish);
	cr_expect_eq(wish.result, -ENOENT, "it is not there");
	cr_expect_eq(surveying->script->parser.len, 0);
	surveying_free(surveying);
}

Test(survey_names, are_as_many_as_are_asked_at_once)
{
	uint32_t files[2];
	struct surveying *surveying = known(files);
	static uint64_t frames[NAMES_MAX + 7];
	struct survey_wish wish = { .file = files[0], .frames = frames, .len = NAMES_MAX + 7 };

	for (size_t i = 0; i < wish.len; i++)
		frames[i] = frame_make(files[0], i);
	survey_ask(&surveying->survey, &wish);
	wait_until_done(surveying, &wish);
	cr_expect_eq(wish.names.len, NAMES_MAX);
	cr_expect_eq(wish.len, NAMES_MAX + 7, "the others have no names");
	expect_names(&wish);
	surveying_free(surveying);
}

/* Without a worker it is not replaced: it has ended for good. */
Test(survey_names, fail_where_the_parser_has_ended)
{
	struct surveying *surveying = surveying_new_with(true);
	uint32_t file;
	uint64_t frame;

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	file = surveying_code(surveying, 0)->ranges[0].file;
	frame = frame_make(file, 0x2000);
	surveying->script->names = SCRIPT_END;
	for (int i = 0; i < 2; i++) {
		struct survey_wish wish = { .file = file, .frames = &frame, .len = 1 };

		survey_ask(&surveying->survey, &wish);
		wait_until_done(surveying, &wish);
		cr_expect_eq(wish.result, -EPIPE, "%d: %d", i, wish.result);
	}
	surveying_free(surveying);
}
