/* SPDX-License-Identifier: Apache-2.0 */
/* Files at which the opener is late: it had no CPU, or hangs there, and others wait for that. */
#include "surveying.h"

#define ADDRESS 0x10000ULL
#define SECOND 1000000000ULL

/* @answers: at which time; 0: never. @asked: how often it is in the end. */
static void expect_again(size_t answers, size_t asked)
{
	struct surveying *surveying = surveying_new();

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying_map(surveying, 0, 2 * ADDRESS, 6);
	surveying->script->file = SCRIPT_HANG;
	surveying_walk(surveying, clock_monotonic_ns());
	for (size_t i = 1; i <= 6; i++) {
		surveying->script->only = i == answers ? 7 : 5;
		surveying_run_at(surveying, i * (PROCESS_AGAIN_NS + 2 * SECOND));
		cr_expect_eq(script_times(&surveying->script->opener, 5), i < asked ? i : asked);
		cr_expect_eq(surveying_file(surveying, 0, 0) != NULL, answers && i >= answers);
		cr_expect_not_null(surveying_file(surveying, 0, 1));
	}
	surveying_free(surveying);
}

Test(survey_late, is_asked_a_few_times)
{
	expect_again(3, 3);
	expect_again(0, 5);
}

/* A profile that waits for code has it where a busy machine was late once. */
Test(survey_late, is_asked_soon_after_the_first_time)
{
	struct surveying *surveying = surveying_new();

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying->script->file = SCRIPT_HANG;
	surveying_walk(surveying, clock_monotonic_ns());
	cr_expect_not(survey_lacks(&surveying->survey));
	surveying_run(surveying);
	cr_expect_null(surveying_file(surveying, 0, 0));
	cr_expect(survey_lacks(&surveying->survey));
	surveying->script->file = SCRIPT_NONE;
	surveying_run_at(surveying, SECOND);
	cr_expect_not_null(surveying_file(surveying, 0, 0));
	cr_expect_not(survey_lacks(&surveying->survey));
	surveying_free(surveying);
}

/* Less and less often, and never not at all. */
Test(survey_late, what_is_mapped_is_asked_again)
{
	static const uint64_t waits[] = { SECOND, SECOND, 5 * SECOND, PROCESS_AGAIN_NS,
					  PROCESS_AGAIN_NS };
	struct surveying *surveying = surveying_new();
	uint64_t ahead_ns = 0;

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying->script->maps = SCRIPT_HANG;
	surveying_walk(surveying, clock_monotonic_ns());
	surveying_run(surveying);
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		cr_expect_eq(script_times(&surveying->script->opener, 0), i + 1);
		cr_expect(survey_lacks(&surveying->survey));
		surveying_run_at(surveying, ahead_ns + 1); /* at once it is not */
		cr_expect_eq(script_times(&surveying->script->opener, 0), i + 1);
		ahead_ns += waits[i];
		surveying->script->maps = i + 1 < sizeof(waits) / sizeof(*waits) ? SCRIPT_HANG
										 : SCRIPT_NONE;
		surveying_run_at(surveying, ahead_ns);
	}
	cr_expect_not_null(surveying_file(surveying, 0, 0));
	cr_expect_not(survey_lacks(&surveying->survey));
	surveying_free(surveying);
}

/* A process of which the opener was late is read again; after a refusal another one is asked. */
Test(survey_late, is_asked_no_more_once_it_was_refused)
{
	struct surveying *surveying = surveying_new();

	surveying_add(surveying);
	surveying_map(surveying, 0, ADDRESS, 5);
	surveying->script->only = 5;
	surveying_walk(surveying, clock_monotonic_ns());
	for (size_t i = 1; i <= 4; i++) {
		surveying->script->file = i == 1 ? SCRIPT_HANG : SCRIPT_REFUSE;
		surveying_run_at(surveying, i * (PROCESS_AGAIN_NS + 2 * SECOND));
		cr_expect_eq(script_times(&surveying->script->opener, 5), i < 2 ? i : 2);
	}
	surveying_free(surveying);
}

/* Else a file that hangs at one and is refused at another would have others wait for ever. */
Test(survey_late, is_asked_a_few_times_of_all_processes_together)
{
	static const enum script_fault faults[] = { SCRIPT_HANG,   SCRIPT_HANG, SCRIPT_HANG,
						    SCRIPT_REFUSE, SCRIPT_HANG, SCRIPT_HANG,
						    SCRIPT_NONE };
	static const bool begins[] = { true, false, false, true, true, false, true };
	struct surveying *surveying = surveying_new();
	size_t len = 0;

	surveying->script->only = 5;
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		surveying->script->file = faults[i];
		if (begins[i]) {
			surveying_add(surveying);
			surveying_map(surveying, len++, ADDRESS, 5);
			surveying_walk(surveying, clock_monotonic_ns());
		}
		surveying_run_at(surveying, (i + 1) * (PROCESS_AGAIN_NS + 2 * SECOND));
	}
	cr_expect_null(surveying_file(surveying, len - 1, 0));
	surveying_free(surveying);
}
