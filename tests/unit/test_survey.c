/* SPDX-License-Identifier: Apache-2.0 */
/* What the survey finds out of processes, and what it makes of helpers that fail. */
#include "surveying.h"

#include <link.h>

#include "abi/profiles.h"

#define SECOND 1000000000ULL
#define ADDRESS 0x10000ULL

/* Waits until the log of a helper is so long: the question is being answered. */
static void wait_for(struct surveying *surveying, const struct script_log *log, size_t len)
{
	uint64_t end_ns = clock_monotonic_ns() + SURVEY_WAIT_NS;

	while (log->len < len) {
		cr_assert_lt(clock_monotonic_ns(), end_ns, "it is not asked");
		surveying_step(surveying, 0);
	}
}

/* Of tables: each file has one more. */
static size_t rows_of_store(const struct surveying *surveying)
{
	struct unwind_store_use use = unwind_store_use(surveying->stored.store);

	return use.rows - use.files;
}

/* --- real processes ------------------------------------------------------------------------- */

static const struct code_range *range_at(const struct process_code *code, uint64_t address)
{
	for (uint32_t i = 0; i < code->len; i++)
		if (address >= code->ranges[i].begin && address < code->ranges[i].end)
			return &code->ranges[i];
	return NULL;
}

struct linked {
	struct surveying *surveying;
	const struct process_code *code;
	size_t objects, vdsos;
};

/* What the dynamic linker says of each object of this process, of which the child is a copy. */
static int object_check(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct linked *linked = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const struct code_range *range;

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		range = range_at(linked->code, info->dlpi_addr + header->p_vaddr);
		cr_assert_not_null(range, "%s", info->dlpi_name);
		cr_expect_neq(range->file, 0, "%s", info->dlpi_name);
		cr_expect_eq(range->bias, info->dlpi_addr, "%s", info->dlpi_name);
		cr_expect_not_null(files_at(&linked->surveying->survey.files, range->file));
		linked->vdsos += range->file == linked->surveying->survey.vdso;
		linked->objects++;
	}
	return 0;
}

Test(survey, tells_where_a_process_has_its_code_as_the_dynamic_linker_does, .timeout = 120)
{
	struct surveying *surveying = surveying_new_real();
	struct linked linked = { .surveying = surveying };

	surveying_add(surveying);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	linked.code = surveying_code(surveying, 0);
	dl_iterate_phdr(object_check, &linked);
	cr_expect_gt(linked.objects, 5);
	cr_expect_eq(linked.vdsos, 1);
	cr_expect_gt(rows_of_store(surveying), 10000, "their tables are there");
	surveying_free(surveying);
}

/* --- files ---------------------------------------------------------------------------------- */

Test(survey, adds_what_a_segment_is_moved_by_to_where_it_is_mapped)
{
	struct surveying *surveying = surveying_new();
	const struct process_code *code;

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	code = surveying_code(surveying, 0);
	cr_assert_eq(code->len, 1);
	cr_expect_eq(code->ranges[0].begin, ADDRESS);
	cr_expect_eq(code->ranges[0].end, ADDRESS + SURVEY_PAGE);
	cr_expect_eq(2 * SURVEY_PAGE + code->ranges[0].bias, ADDRESS);
	cr_expect_str_eq(surveying_file(surveying, 0, 0)->path, "/file/5");
	cr_expect_geq(surveying_file(surveying, 0, 0)->fd, 0);
	surveying_free(surveying);
}

/* A large one takes megabytes. */
Test(survey, gives_back_the_memory_that_a_table_came_in)
{
	struct surveying *surveying = surveying_new();
	const union parser_shared *shared = helper_shared(surveying->parser);

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	cr_expect_gt(rows_of_store(surveying), 0);
	cr_expect_eq(shared->table.rows[0].address, 0);
	surveying_free(surveying);
}

Test(survey, asks_once_for_a_file_that_several_processes_run)
{
	struct surveying *surveying = surveying_new();
	const struct process_code *one, *other;

	surveying_add(surveying);
	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying_map(surveying, 0, 2 * ADDRESS, 5);
	surveying_map(surveying, 1, 3 * ADDRESS, 5);
	surveying_map(surveying, 1, 4 * ADDRESS, 6);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	cr_expect_eq(script_times(&surveying->script->opener, 0), 2);
	cr_expect_eq(script_times(&surveying->script->opener, 5), 1);
	cr_expect_eq(script_times(&surveying->script->opener, 6), 1);
	cr_expect_eq(surveying->script->parser.len, 2);
	one = surveying_code(surveying, 0);
	other = surveying_code(surveying, 1);
	cr_expect_eq(one->ranges[0].file, other->ranges[0].file);
	cr_expect_eq(one->ranges[1].file, other->ranges[0].file);
	cr_expect_neq(other->ranges[1].file, other->ranges[0].file);
	cr_expect_eq(one->ranges[0].bias + 2 * ADDRESS, other->ranges[0].bias);
	surveying_free(surveying);
}

Test(survey, leaves_out_what_is_of_no_file)
{
	struct surveying *surveying = surveying_new();
	struct opener_range *range;
	const struct process_code *code;

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying_map(surveying, 0, 2 * ADDRESS, 0);
	surveying_map(surveying, 0, 3 * ADDRESS, 0);
	range = surveying->script->processes[0].ranges;
	range[1].kind = OPENER_RANGE_ANONYMOUS;
	range[2].kind = OPENER_RANGE_VDSO;
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	code = surveying_code(surveying, 0);
	cr_assert_eq(code->len, 3);
	cr_expect_neq(code->ranges[0].file, 0);
	cr_expect_eq(code->ranges[1].file, 0);
	cr_expect_eq(code->ranges[2].file, surveying->survey.vdso);
	cr_expect_eq(code->ranges[2].bias, 3 * ADDRESS);
	surveying_free(surveying);
}

/* --- an opener that fails ------------------------------------------------------------------- */

Test(survey, asks_again_later_what_a_process_has_mapped)
{
	static const enum script_fault faults[] = { SCRIPT_REFUSE, SCRIPT_RUBBISH, SCRIPT_LIE,
						    SCRIPT_END };

	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		struct surveying *surveying = surveying_new();
		struct tree_process *met = surveying_add(surveying);

		surveying_map(surveying, 0, ADDRESS, 5);
		surveying->script->maps = faults[i];
		surveying_walk(surveying, clock_monotonic_ns());
		surveying_run(surveying);
		cr_expect_eq(plain_slot(surveying->loader, (pid_t)met->tgid).slot, 0, "%zu", i);
		cr_expect_eq(surveying->script->opener.len, 1, "%zu", i);
		surveying->script->maps = SCRIPT_NONE;
		surveying_run_at(surveying, PROCESS_AGAIN_NS);
		cr_expect_neq(surveying_file(surveying, 0, 0), NULL, "%zu", i);
		surveying_free(surveying);
	}
}

Test(survey, does_not_wait_for_an_opener_that_hangs)
{
	struct surveying *surveying = surveying_new();
	struct tree_process *met;

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying->script->maps = SCRIPT_HANG;
	surveying_walk(surveying, clock_monotonic_ns());
	wait_for(surveying, &surveying->script->opener, 1);
	cr_expect_lt(survey_due_ns(&surveying->survey), clock_monotonic_ns() + 2 * SECOND);
	surveying->script->maps = SCRIPT_NONE;
	met = surveying_add(surveying);
	surveying_map(surveying, 1, ADDRESS, 6);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run_at(surveying, 2 * SECOND);
	cr_expect_neq(plain_slot(surveying->loader, (pid_t)met->tgid).slot, 0);
	cr_expect_eq(plain_slot(surveying->loader, surveying->children[0]).slot, 0);
	surveying_free(surveying);
}

/* The others of that process are known, and so is the same file in others that run it. */
Test(survey, asks_another_process_for_a_file_that_one_did_not_give)
{
	static const enum script_fault faults[] = { SCRIPT_REFUSE, SCRIPT_GONE, SCRIPT_RUBBISH };

	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		struct surveying *surveying = surveying_new();

		surveying_add(surveying);
		surveying_map(surveying, 0, ADDRESS, 5);
		surveying_map(surveying, 0, 2 * ADDRESS, 6);
		surveying->script->file = faults[i];
		surveying->script->only = 5;
		surveying_walk(surveying, clock_monotonic_ns());
		surveying_run(surveying);
		cr_expect_eq(surveying_code(surveying, 0)->ranges[0].file, 0, "%zu", i);
		cr_expect_not_null(surveying_file(surveying, 0, 1), "%zu", i);
		surveying->script->file = SCRIPT_NONE;
		surveying_add(surveying);
		surveying_map(surveying, 1, ADDRESS, 5);
		surveying_walk(surveying, clock_monotonic_ns());
		surveying_run(surveying);
		cr_expect_not_null(surveying_file(surveying, 1, 0), "%zu", i);
		surveying_free(surveying);
	}
}

/* As on a file system of the process' own, which does not answer: only that file is given up. */
Test(survey, loses_one_file_to_an_opener_that_hangs_at_it)
{
	struct surveying *surveying = surveying_new();

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying_map(surveying, 0, 2 * ADDRESS, 6);
	surveying->script->file = SCRIPT_HANG;
	surveying->script->only = 5;
	surveying_walk(surveying, clock_monotonic_ns());
	wait_for(surveying, &surveying->script->opener, 2);
	surveying_add(surveying);
	surveying_map(surveying, 1, ADDRESS, 5);
	surveying_map(surveying, 1, 2 * ADDRESS, 6);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run_at(surveying, 2 * SECOND);
	cr_expect_eq(script_times(&surveying->script->opener, 5), 1);
	cr_expect_null(surveying_file(surveying, 1, 0));
	cr_expect_not_null(surveying_file(surveying, 1, 1));
	surveying_free(surveying);
}

/* --- a parser that fails -------------------------------------------------------------------- */

Test(survey, takes_a_file_that_the_parser_cannot_read_for_one_without_a_table)
{
	static const enum script_fault faults[] = { SCRIPT_REFUSE, SCRIPT_RUBBISH, SCRIPT_LIE,
						    SCRIPT_END };

	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		struct surveying *surveying = surveying_new();
		size_t before = rows_of_store(surveying);

		surveying_add(surveying);
		surveying_map(surveying, 0, ADDRESS, 5);
		surveying->script->table = faults[i];
		surveying_walk(surveying, clock_monotonic_ns());
		surveying_run(surveying);
		cr_expect_eq(surveying_code(surveying, 0)->len, 1, "%zu", i);
		cr_expect_eq(rows_of_store(surveying), before, "%zu", i);
		surveying->script->table = SCRIPT_NONE;
		surveying_add(surveying);
		surveying_map(surveying, 1, ADDRESS, 5);
		surveying_map(surveying, 1, 2 * ADDRESS, 6);
		surveying_walk(surveying, clock_monotonic_ns());
		surveying_run(surveying);
		cr_expect_eq(surveying->script->parser.len, 2, "%zu: one is not asked twice", i);
		cr_expect_not_null(surveying_file(surveying, 1, 1), "%zu", i);
		cr_expect_gt(rows_of_store(surveying), before, "%zu", i);
		surveying_free(surveying);
	}
}

/* The next file comes while the parser is being replaced. */
Test(survey, loses_one_table_to_a_parser_that_hangs_at_it)
{
	struct surveying *surveying = surveying_new();
	size_t before = rows_of_store(surveying);

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying_map(surveying, 0, 2 * ADDRESS, 6);
	surveying->script->table = SCRIPT_HANG;
	surveying_walk(surveying, clock_monotonic_ns());
	wait_for(surveying, &surveying->script->parser, 1);
	surveying->script->table = SCRIPT_NONE;
	surveying_add(surveying);
	surveying_map(surveying, 1, 2 * ADDRESS, 6);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run_at(surveying, 21 * SECOND);
	cr_expect_not_null(surveying_file(surveying, 1, 0));
	cr_expect_gt(rows_of_store(surveying), before);
	surveying_free(surveying);
}

/* --- a process that changes meanwhile ------------------------------------------------------- */

Test(survey, tells_nothing_of_a_process_that_has_ended_meanwhile)
{
	struct surveying *surveying = surveying_new();
	pid_t pid = (pid_t)surveying_add(surveying)->tgid;

	surveying_map(surveying, 0, ADDRESS, 5);
	surveying->script->held = true;
	surveying_walk(surveying, clock_monotonic_ns());
	wait_for(surveying, &surveying->script->parser, 1);
	surveying_end(surveying, 0);
	surveying->len = 0;
	surveying_walk(surveying, clock_monotonic_ns());
	surveying->script->held = false;
	surveying_run(surveying);
	cr_expect_eq(plain_slot(surveying->loader, pid).slot, 0);
	cr_expect_eq(surveying->survey.files.len, 2, "the vdso, and one until it is swept");
	surveying_walk(surveying, clock_monotonic_ns());
	cr_expect_eq(surveying->survey.files.len, 1);
	surveying_free(surveying);
}

Test(survey, tells_a_process_that_calls_exec_what_it_runs_then)
{
	struct surveying *surveying = surveying_new();
	struct tree_process *met = surveying_add(surveying);

	surveying_map(surveying, 0, ADDRESS, 5);
	surveying->script->held = true;
	surveying_walk(surveying, clock_monotonic_ns());
	wait_for(surveying, &surveying->script->parser, 1);
	met->exec_id++;
	surveying->script->processes[0].ranges[0].inode = 6;
	surveying_walk(surveying, clock_monotonic_ns());
	surveying->script->held = false;
	surveying_run(surveying);
	cr_expect_str_eq(surveying_file(surveying, 0, 0)->path, "/file/6");
	surveying_free(surveying);
}

/* The walk that has met them is a second old. */
Test(survey, is_not_kept_waiting_by_processes_that_have_ended)
{
	struct surveying *surveying = surveying_new();

	for (size_t i = 0; i < SURVEY_PROCESSES; i++)
		surveying_add(surveying);
	for (size_t i = 0; i + 1 < SURVEY_PROCESSES; i++)
		surveying_end(surveying, i);
	surveying_walk(surveying, clock_monotonic_ns());
	survey_go_on(&surveying->survey, clock_monotonic_ns());
	cr_expect_neq(survey_due_ns(&surveying->survey), UINT64_MAX, "the opener is asked");
	surveying_free(surveying);
}

/* --- what is left and read again ------------------------------------------------------------ */

Test(survey, forgets_files_that_nothing_has_used_since_a_profile_began)
{
	struct surveying *surveying = surveying_new();
	uint64_t began_ns;

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	began_ns = clock_monotonic_ns();
	plain_processes(surveying->loader, NULL, 0);
	cr_assert_eq(survey_walk(&surveying->survey, clock_monotonic_ns(), began_ns), 0);
	cr_expect_eq(surveying->survey.files.len, 2);
	cr_assert_eq(survey_walk(&surveying->survey, clock_monotonic_ns(), clock_monotonic_ns()),
		     0);
	cr_expect_eq(surveying->survey.files.len, 1, "but for the vdso");
	surveying_free(surveying);
}

Test(survey, knows_nothing_once_it_has_forgotten_and_begins_anew)
{
	struct surveying *surveying = surveying_new();

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	survey_forget(&surveying->survey, clock_monotonic_ns());
	cr_expect_eq(surveying->survey.files.len, 1);
	cr_expect_eq(processes_slots(&surveying->survey.processes), 0);
	cr_expect(survey_is_done(&surveying->survey, clock_monotonic_ns()));
	surveying_walk(surveying, clock_monotonic_ns());
	cr_expect_not(survey_is_done(&surveying->survey, clock_monotonic_ns()));
	surveying_run(surveying);
	cr_expect_eq(script_times(&surveying->script->opener, 5), 2);
	cr_expect_str_eq(surveying_file(surveying, 0, 0)->path, "/file/5");
	surveying_free(surveying);
}

Test(survey, may_forget_while_it_asks)
{
	struct surveying *surveying = surveying_new();

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying->script->held = true;
	surveying_walk(surveying, clock_monotonic_ns());
	wait_for(surveying, &surveying->script->parser, 1);
	survey_forget(&surveying->survey, clock_monotonic_ns());
	surveying->script->held = false;
	surveying_run(surveying);
	cr_expect_eq(plain_slot(surveying->loader, surveying->children[0]).slot, 0);
	survey_forget(&surveying->survey, clock_monotonic_ns());
	cr_expect_eq(surveying->survey.files.len, 1);
	surveying_free(surveying);
}
