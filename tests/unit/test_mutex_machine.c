/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdint.h>

#include "machine/mutex.h"

#define START 5000000000ULL
#define SP 0x7ffd00001000ULL
#define UNTOUCHED UINT64_MAX

static const __u32 glibc_free[] = { 0, 0, 0 };

Test(mutex_held, tells_by_the_words_of_each_library)
{
	const __u32 glibc_other[] = { 1, 1, 77 }, glibc_waiters[] = { 2, 1, 77 };
	const __u32 glibc_first[] = { 1, 0, 77 };
	const __u32 musl_free[] = { 0, 0, 0 }, musl_normal[] = { 0, 16, 0 };
	const __u32 musl_checked[] = { 2, 80, 0 };
	const __u32 musl_recursive[] = { 1, 77 | 0x80000000, 1 };

	cr_expect_not(mutex_is_held(MUTEX_GLIBC, glibc_free, 5));
	cr_expect(mutex_is_held(MUTEX_GLIBC, glibc_other, 5));
	cr_expect(mutex_is_held(MUTEX_GLIBC, glibc_first, 5), "only a recursive one is counted");
	cr_expect(mutex_is_held(MUTEX_GLIBC, glibc_waiters, 5));
	cr_expect_not(mutex_is_held(MUTEX_GLIBC, glibc_other, 77), "locked again by its owner");
	cr_expect_not(mutex_is_held(MUTEX_MUSL, musl_free, 5));
	cr_expect(mutex_is_held(MUTEX_MUSL, musl_normal, 5));
	cr_expect(mutex_is_held(MUTEX_MUSL, musl_normal, 16), "16 is EBUSY there, and no owner");
	cr_expect(mutex_is_held(MUTEX_MUSL, musl_recursive, 5));
	cr_expect_not(mutex_is_held(MUTEX_MUSL, musl_recursive, 77));
	cr_expect_not(mutex_is_held(MUTEX_MUSL, musl_checked, 80));
}

Test(mutex_call, a_free_lock_is_acquired_and_not_waited_for)
{
	struct mutex_call call = { 0 };
	__u64 waited = UNTOUCHED;

	mutex_enter(&call, MUTEX_LOCK, SP, 0, START);
	cr_expect_eq(mutex_leave(&call, SP, 0, START + 90, &waited), MUTEX_ACQUIRED);
	cr_expect_eq(waited, UNTOUCHED);
}

Test(mutex_call, a_held_lock_is_waited_for_from_the_entry_to_the_return)
{
	struct mutex_call call = { 0 };
	__u64 waited = UNTOUCHED;

	mutex_enter(&call, MUTEX_LOCK, SP, 1, START);
	cr_expect_eq(mutex_leave(&call, SP, 0, START + 90, &waited), MUTEX_ACQUIRED | MUTEX_WAITED);
	cr_expect_eq(waited, 90);
}

Test(mutex_call, a_lock_that_was_taken_after_the_entry_is_waited_for_as_well)
{
	struct mutex_call call = { 0 };
	__u64 waited = UNTOUCHED;

	mutex_enter(&call, MUTEX_LOCK, SP, 0, START);
	cr_expect(mutex_block(&call, STATE_LOCK, SP - 200));
	cr_expect_eq(mutex_leave(&call, SP, 0, START + 90, &waited), MUTEX_ACQUIRED | MUTEX_WAITED);
	cr_expect_eq(waited, 90);
}

Test(mutex_call, a_turn_to_accept_is_acquired_and_not_waited_for)
{
	struct mutex_call call = { 0 };
	__u64 waited = UNTOUCHED;

	mutex_enter(&call, MUTEX_LOCK, SP, 1, START);
	cr_expect_not(mutex_block(&call, STATE_IDLE, SP - 200));
	cr_expect_eq(mutex_leave(&call, SP, 0, START + 90, &waited), MUTEX_ACQUIRED);
}

Test(mutex_call, a_lock_whose_owner_died_is_acquired)
{
	struct mutex_call call = { 0 };
	__u64 waited = UNTOUCHED;

	mutex_enter(&call, MUTEX_LOCK, SP, 0, START);
	cr_expect(mutex_leave(&call, SP, 130, START, &waited) & MUTEX_ACQUIRED, "EOWNERDEAD");
}

Test(mutex_call, a_wait_that_timed_out_is_a_wait_and_no_acquisition)
{
	struct mutex_call call = { 0 };
	__u64 waited = UNTOUCHED;
	__u32 what;

	mutex_enter(&call, MUTEX_TIMED, SP, 1, START);
	what = mutex_leave(&call, SP, 110, START + 5, &waited);
	cr_expect(what & MUTEX_WAITED);
	cr_expect_not(what & MUTEX_ACQUIRED);
	cr_expect_eq(waited, 5);
}

Test(mutex_call, a_return_on_a_cpu_whose_clock_is_behind_has_not_waited)
{
	struct mutex_call call = { 0 };
	__u64 waited = UNTOUCHED;

	mutex_enter(&call, MUTEX_LOCK, SP, 1, START);
	mutex_leave(&call, SP, 0, START - 5, &waited);
	cr_expect_eq(waited, 0);
}

Test(mutex_call, a_try_never_waits)
{
	struct mutex_call call = { 0 };
	__u64 waited = UNTOUCHED;

	mutex_enter(&call, MUTEX_TRY, SP, 1, START);
	cr_expect_eq(mutex_leave(&call, SP, 16, START + 5, &waited), 0);
	mutex_enter(&call, MUTEX_TRY, SP, 0, START);
	cr_expect_eq(mutex_leave(&call, SP, 0, START + 5, &waited), MUTEX_ACQUIRED);
	cr_expect_eq(waited, UNTOUCHED);
}

/* musl: lock jumps to timedlock (same stack pointer), which calls trylock (a lower one). */
Test(mutex_call, what_is_called_from_within_is_part_of_the_call)
{
	struct mutex_call call = { 0 };
	__u64 waited = UNTOUCHED;

	mutex_enter(&call, MUTEX_LOCK, SP, 1, START);
	mutex_enter(&call, MUTEX_TIMED, SP, 1, START + 1);
	mutex_enter(&call, MUTEX_TRY, SP - 64, 1, START + 2);
	cr_expect_eq(mutex_leave(&call, SP - 64, 16, START + 3, &waited), 0);
	cr_expect_eq(mutex_leave(&call, SP, 0, START + 50, &waited), MUTEX_ACQUIRED | MUTEX_WAITED);
	cr_expect_eq(waited, 50);
	cr_expect_eq(mutex_leave(&call, SP, 0, START + 51, &waited), 0, "both return there");
}

Test(mutex_call, a_return_that_was_never_seen_does_not_swallow_the_next_call)
{
	struct mutex_call call = { 0 };
	__u64 waited = UNTOUCHED;

	mutex_enter(&call, MUTEX_LOCK, SP, 1, START);
	mutex_enter(&call, MUTEX_LOCK, SP, 1, START + 1000);
	cr_expect_eq(mutex_leave(&call, SP, 0, START + 1010, &waited),
		     MUTEX_ACQUIRED | MUTEX_WAITED);
	cr_expect_eq(waited, 10);

	mutex_enter(&call, MUTEX_LOCK, SP, 1, START);
	mutex_enter(&call, MUTEX_TRY, SP + 512, 0, START + 1000);
	cr_expect_eq(mutex_leave(&call, SP + 512, 0, START + 1001, &waited), MUTEX_ACQUIRED);
}

Test(mutex_call, a_return_without_an_entry_is_nothing)
{
	struct mutex_call call = { 0 };
	__u64 waited = UNTOUCHED;

	cr_expect_eq(mutex_leave(&call, SP, 0, START, &waited), 0);
	cr_expect_eq(waited, UNTOUCHED);
}

Test(mutex_call, only_a_lock_that_is_waited_for_just_below_the_call_is_its_own)
{
	struct mutex_call call = { 0 };

	cr_expect_not(mutex_block(&call, STATE_LOCK, SP), "in no call");
	mutex_enter(&call, MUTEX_LOCK, SP, 0, START);
	cr_expect_not(mutex_block(&call, STATE_WAIT, SP - 100), "a page fault");
	cr_expect_not(mutex_block(&call, STATE_LOCK, SP + 8), "above: the return was not seen");
	cr_expect_not(mutex_block(&call, STATE_LOCK, SP - 8192), "far below: another call");
	cr_expect_eq(call.held, 0);
}

Test(mutex_call, what_happens_within_a_page_below_the_call_is_part_of_it)
{
	struct mutex_call call = { 0 };
	__u64 waited;

	mutex_enter(&call, MUTEX_LOCK, SP, 0, START);
	mutex_enter(&call, MUTEX_TRY, SP - 4095, 0, START + 1);
	cr_expect(mutex_block(&call, STATE_LOCK, SP - 4095));
	cr_expect_not(mutex_block(&call, STATE_LOCK, SP - 4096));
	cr_expect_eq(mutex_leave(&call, SP, 0, START + 9, &waited), MUTEX_ACQUIRED | MUTEX_WAITED);
	mutex_enter(&call, MUTEX_LOCK, SP, 0, START);
	mutex_enter(&call, MUTEX_TRY, SP - 4096, 0, START + 1);
	cr_expect_eq(mutex_leave(&call, SP - 4096, 0, START + 2, &waited), MUTEX_ACQUIRED);
}
