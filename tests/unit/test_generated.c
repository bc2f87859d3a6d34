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

static void processes_add(struct surveying *surveying, size_t processes)
{
	for (size_t i = 0; i < processes; i++)
		process_add(surveying);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
}

static struct surveying *surveying_of(enum generator generator, bool told, size_t processes)
{
	struct surveying *surveying = surveying_new();

	surveying->script->generator = generator;
	surveying->script->frame_pointers = told;
	processes_add(surveying, processes);
	return surveying;
}

/* The rule that the kernel side follows @file by, of which it has no rows. */
static const struct unwind_rule *rule_of(const struct surveying *surveying, const struct file *file)
{
	const struct unwind_file *stored = &surveying->stored.arrays.files[file->number];

	return stored->pages == UNWIND_ONE_RULE ? &surveying->stored.arrays.rules[stored->page]
						: NULL;
}

Test(generated, is_followed_where_its_frames_are_known)
{
	static const struct {
		enum generator generator;
		bool told, known, followed;
	} cases[] = {
		{ GENERATOR_NONE, true, false, false },  { GENERATOR_V8, false, true, true },
		{ GENERATOR_V8, true, true, true },      { GENERATOR_HOTSPOT, false, true, false },
		{ GENERATOR_HOTSPOT, true, true, true }, { GENERATOR_CPYTHON, false, true, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct unwind_rule rule = generator_rule(cases[i].generator !=
							       GENERATOR_CPYTHON);
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

/* A wish for the name of an address in what the first process generates. */
struct asking {
	struct surveying *surveying;
	uint64_t frame;
	struct survey_wish wish;
};

static void wish_begin(struct asking *naming)
{
	uint32_t number = surveying_file(naming->surveying, 0, 1)->number;

	naming->frame = frame_make(number, ADDRESS);
	naming->wish = (struct survey_wish){ .file = number, .frames = &naming->frame, .len = 1 };
	survey_ask(&naming->surveying->survey, &naming->wish);
}

static void wish_wait(struct asking *naming)
{
	uint64_t end_ns = clock_monotonic_ns() + SURVEY_WAIT_NS;

	survey_go_on(&naming->surveying->survey, clock_monotonic_ns());
	while (!naming->wish.done) {
		cr_assert_lt(clock_monotonic_ns(), end_ns, "the wish is never done");
		surveying_step(naming->surveying, 0);
	}
}

static void wish_run(struct asking *naming)
{
	wish_begin(naming);
	wish_wait(naming);
}

/* The same frame. */
static void wish_again(struct asking *naming)
{
	survey_ask(&naming->surveying->survey, &naming->wish);
	wish_wait(naming);
}

static void expect_name(struct asking *naming)
{
	cr_assert_eq(naming->wish.result, 0);
	cr_expect_str_eq(parsed_names_text(&naming->wish.names, 0), "at_10000");
	parsed_names_free(&naming->wish.names);
}

Test(generated, has_the_names_of_its_perf_map)
{
	struct asking naming = { .surveying = surveying_of(GENERATOR_V8, false, 1) };
	struct script *script = naming.surveying->script;

	wish_run(&naming);
	cr_expect_eq(naming.wish.result, -ENOENT, "there is none yet");
	cr_expect_eq(script_times(&script->parser, PARSER_PERF_MAP), 0);
	script->perf_map = true;
	wish_run(&naming);
	expect_name(&naming);
	cr_expect_eq(script_times(&script->parser, PARSER_PERF_MAP), 1);
	script->perf_map = false;
	wish_run(&naming);
	expect_name(&naming);
	cr_expect_eq(script_times(&script->parser, PARSER_NAMES), 0);
	surveying_free(naming.surveying);
}

Test(generated, is_called_by_the_reason_that_it_has_no_names)
{
	struct asking naming = { .surveying = surveying_of(GENERATOR_V8, false, 1) };
	const struct file *file = surveying_file(naming.surveying, 0, 1);

	wish_run(&naming);
	cr_expect_str_eq(generated_name(file), GENERATED_NAME);
	naming.surveying->script->map_error = -EACCES;
	wish_run(&naming);
	cr_expect_eq(naming.wish.result, -ENOENT);
	cr_expect_str_eq(generated_name(file), GENERATED_NAME_DENIED);
	naming.surveying->script->perf_map = true;
	wish_run(&naming);
	expect_name(&naming);
	cr_expect_str_eq(generated_name(file), GENERATED_NAME);
	surveying_free(naming.surveying);
}

/* What runs under its number now has a map of its own. */
Test(generated, has_the_names_that_it_had_before_exec)
{
	struct asking naming = { .surveying = surveying_of(GENERATOR_V8, false, 1) };
	struct surveying *surveying = naming.surveying;

	surveying->script->perf_map = true;
	wish_run(&naming);
	expect_name(&naming);
	surveying->met[0].exec_id++;
	surveying->script->opener.len = 0;
	surveying_walk(surveying, clock_monotonic_ns());
	wish_again(&naming);
	expect_name(&naming);
	cr_expect_eq(script_times(&surveying->script->opener, SCRIPT_PERF_MAP), 0);
	surveying_free(surveying);
}

/* That takes a moment, in which the opener is not asked again and again. */
Test(generated, waits_for_a_parser_that_is_replaced)
{
	struct asking naming = { .surveying = surveying_of(GENERATOR_V8, false, 1) };
	struct script *script = naming.surveying->script;

	script->perf_map = true;
	script->names = SCRIPT_END;
	wish_run(&naming);
	cr_expect_eq(naming.wish.result, -ETIMEDOUT);
	script->names = SCRIPT_NONE;
	script->opener.len = 0;
	wish_run(&naming);
	expect_name(&naming);
	cr_expect_eq(script_times(&script->opener, SCRIPT_PERF_MAP), 1);
	surveying_free(naming.surveying);
}

Test(generated, has_no_names_once_a_helper_has_ended)
{
	for (int parser = 0; parser < 2; parser++) {
		struct asking naming = { .surveying = surveying_new_with(true) };
		struct script *script = naming.surveying->script;

		script->generator = GENERATOR_V8;
		processes_add(naming.surveying, 1);
		script->perf_map = true;
		script->file = parser ? SCRIPT_NONE : SCRIPT_END;
		script->names = parser ? SCRIPT_END : SCRIPT_NONE;
		for (int i = 0; i < 3; i++) {
			wish_run(&naming);
			cr_expect_eq(naming.wish.result, parser ? -EPIPE : -ENOENT, "%d %d: %d",
				     parser, i, naming.wish.result);
		}
		surveying_free(naming.surveying);
	}
}

Test(generated, may_be_asked_for_names_that_are_given_up)
{
	struct asking naming = { .surveying = surveying_of(GENERATOR_V8, false, 1) };
	struct surveying *surveying = naming.surveying;

	surveying->script->perf_map = true;
	for (int other = 0; other < 2; other++) {
		wish_begin(&naming);
		survey_go_on(&surveying->survey, clock_monotonic_ns());
		cr_expect_eq(surveying->survey.step, SURVEY_PERF_MAP);
		survey_give_up(&surveying->survey);
		if (!other)
			surveying_run(surveying);
		cr_expect_not(naming.wish.done);
	}
	wish_run(&naming);
	expect_name(&naming);
	surveying_free(surveying);
}
