/* SPDX-License-Identifier: Apache-2.0 */
/* What the survey makes of code that processes generate. */
#include "surveying.h"

#include "abi/profiles.h"
#include "profiles/generated.h"

#define ADDRESS 0x10000ULL

/* A process that runs a file, and what it has generated in two places. */
static void process_add(struct surveying *surveying)
{
	size_t at = surveying->len;
	struct opener_range *ranges;

	surveying_add(surveying);
	for (uint64_t i = 0; i < 3; i++)
		surveying_map(surveying, at, (i + 1) * ADDRESS, i ? 0 : 5);
	ranges = surveying->script->processes[at].ranges;
	for (size_t i = 1; i < 3; i++)
		ranges[i] = (struct opener_range){ .begin = ranges[i].begin,
						   .end = ranges[i].end,
						   .kind = OPENER_RANGE_ANONYMOUS };
}

static struct surveying *surveying_of(enum generator generator, bool told, size_t processes)
{
	struct surveying *surveying = surveying_new();

	surveying->script->generator = generator;
	surveying->script->frame_pointers = told;
	for (size_t i = 0; i < processes; i++)
		process_add(surveying);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	return surveying;
}

/* The rule that the kernel side follows @file by, of which it has no rows. */
static const struct unwind_rule *rule_of(const struct surveying *surveying, const struct file *file)
{
	const struct unwind_file *stored = &surveying->stored.arrays.files[file->number];

	return stored->pages == UNWIND_ONE_RULE ? &surveying->stored.arrays.rules[stored->page]
						: NULL;
}

Test(generated, is_followed_where_it_keeps_frame_pointers)
{
	static const struct {
		enum generator generator;
		bool told, known, followed;
	} cases[] = {
		{ GENERATOR_NONE, true, false, false },  { GENERATOR_V8, false, true, true },
		{ GENERATOR_V8, true, true, true },      { GENERATOR_HOTSPOT, false, true, false },
		{ GENERATOR_HOTSPOT, true, true, true },
	};
	const struct unwind_rule rule = generator_rule();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct surveying *surveying = surveying_of(cases[i].generator, cases[i].told, 1);
		const struct file *file = surveying_file(surveying, 0, 1);

		cr_expect_eq(file != NULL, cases[i].known, "%zu", i);
		cr_expect_eq(surveying_file(surveying, 0, 2), file, "%zu", i);
		cr_expect_neq(surveying_file(surveying, 0, 0), file, "%zu", i);
		if (file) {
			cr_expect_eq(surveying_code(surveying, 0)->ranges[2].bias, 0);
			cr_expect_str_eq(file->path, cases[i].followed ? GENERATED_NAME
								       : GENERATED_NAME_UNFOLLOWED);
			cr_assert_eq(rule_of(surveying, file) != NULL, cases[i].followed, "%zu", i);
		}
		if (cases[i].followed)
			cr_expect_arr_eq(rule_of(surveying, file), &rule, sizeof(rule));
		surveying_free(surveying);
	}
}

Test(generated, is_another_of_each_process_and_goes_with_it)
{
	struct surveying *surveying = surveying_of(GENERATOR_V8, false, 2);
	uint32_t first = surveying_file(surveying, 0, 1)->number;

	cr_expect_neq(first, surveying_file(surveying, 1, 1)->number);
	cr_expect_eq(surveying_file(surveying, 0, 0), surveying_file(surveying, 1, 0));
	surveying_end(surveying, 0);
	surveying->met[0] = surveying->met[1];
	surveying_walk(surveying, clock_monotonic_ns());
	cr_expect_not_null(files_at(&surveying->survey.files, first), "a profile may have it");
	surveying_walk(surveying, UINT64_MAX / 2);
	cr_expect_null(files_at(&surveying->survey.files, first));
	cr_expect_not_null(surveying_file(surveying, 1, 1));
	surveying_free(surveying);
}

Test(generated, is_another_after_exec)
{
	struct surveying *surveying = surveying_of(GENERATOR_V8, false, 1);
	const struct file *before = surveying_file(surveying, 0, 1);

	surveying->met[0].exec_id++;
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	cr_expect_neq(surveying_file(surveying, 0, 1), before);
	surveying_free(surveying);
}

Test(generated, has_no_names_of_a_file)
{
	struct surveying *surveying = surveying_of(GENERATOR_V8, false, 1);
	uint32_t number = surveying_file(surveying, 0, 1)->number;
	const uint64_t frame = frame_make(number, ADDRESS);
	struct survey_wish wish = { .file = number, .frames = &frame, .len = 1 };

	survey_ask(&surveying->survey, &wish);
	survey_go_on(&surveying->survey, clock_monotonic_ns());
	cr_expect(wish.done);
	cr_expect_eq(wish.result, -ENOENT);
	surveying_free(surveying);
}
