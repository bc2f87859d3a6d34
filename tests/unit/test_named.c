/* SPDX-License-Identifier: Apache-2.0 */
/* What a tree is named after, and when it is asked about: without a process and without a clock. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "abi/limits.h"
#include "registry/named.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define BEGIN (100 * SECOND)
#define FOUNDER 100
#define LIVES true

TestSuite(named);

static const struct tree founded = { .tgid = FOUNDER, .start_ns = 7, .uid = 1000 };

/* A tree that was found at BEGIN. */
static struct named found(void)
{
	struct named named = { 0 };

	named_look(&named, &founded, BEGIN);
	return named;
}

/* And is known by its executable. */
static struct named known(void)
{
	struct named named = found();

	cr_assert_eq(named_answer(&named, 0, LIVES, BEGIN), NAMED_KNOW);
	named_show(&named, 5, false);
	cr_assert_not(named_know(&named, true, BEGIN));
	return named;
}

static struct tree_process process(uint32_t tgid, uint64_t start_ns)
{
	return (struct tree_process){
		.tgid = tgid,
		.tid = tgid,
		.start_ns = start_ns,
		.thread_start_ns = start_ns,
	};
}

Test(named, a_new_tree_is_asked_about_at_once)
{
	struct named named = found();

	cr_expect(named_is(&named, &founded));
	cr_expect(named_has_head(&named));
	cr_expect_eq(named_pid(&named), FOUNDER);
	cr_expect_eq(named_pid_start_ns(&named), 7);
	cr_expect_eq(named_due_ns(&named, true, 0), BEGIN);
}

Test(named, another_process_with_its_number_is_another_tree)
{
	struct named named = known();
	struct tree later = founded;

	later.start_ns++;
	cr_expect_not(named_is(&named, &later));
	named_look(&named, &founded, BEGIN + SECOND);
	cr_expect(named.known, "the same tree goes on");
	named_look(&named, &later, BEGIN + SECOND);
	cr_expect_not(named.known);
	cr_expect_eq(named.found_ns, BEGIN + SECOND);
}

Test(named, what_is_known_is_not_asked_about)
{
	struct named named = known();

	cr_expect_eq(named_due_ns(&named, true, 0), UINT64_MAX);
	cr_expect_eq(named.handle, 5);
	cr_expect_not(named_shows_public(&named, BEGIN + 100 * SECOND));
}

Test(named, an_answer_that_does_not_come_is_waited_for_a_second_before_the_public_name)
{
	struct named named = found();

	cr_expect_not(named_shows_public(&named, BEGIN + NAMED_PATIENCE_NS - 1));
	cr_expect(named_shows_public(&named, BEGIN + NAMED_PATIENCE_NS));
	cr_expect_eq(named_due_ns(&named, false, 0), BEGIN + NAMED_PATIENCE_NS,
		     "nothing can be asked before");
	named_show(&named, 6, false);
	cr_expect_not(named_shows_public(&named, BEGIN + NAMED_PATIENCE_NS), "once");
	cr_expect_eq(named_due_ns(&named, false, 0), UINT64_MAX);
	cr_expect_eq(named_due_ns(&named, true, 0), BEGIN, "the question is still to be asked");
}

Test(named, a_late_answer_is_asked_for_later_and_later_with_more_patience)
{
	static const uint64_t again_ms[] = { 250, 500, 1000, 2000, 4000 };
	static const uint64_t patience_ms[] = { 100, 200, 400, 800, 800 };
	struct named named = found();

	for (size_t i = 0; i < sizeof(again_ms) / sizeof(*again_ms); i++) {
		cr_expect_eq(named_answer_ns(&named), patience_ms[i] * MS);
		cr_expect_eq(named_answer(&named, -ETIMEDOUT, LIVES, BEGIN), NAMED_LATE);
		cr_expect_eq(named.due_ns, BEGIN + again_ms[i] * MS);
	}
	for (size_t i = 0; i < 100; i++)
		named_answer(&named, -ETIMEDOUT, LIVES, BEGIN);
	cr_expect_eq(named.due_ns, BEGIN + 128 * SECOND, "but not for ever");
}

Test(named, what_cannot_be_read_is_tried_eight_times_in_five_seconds)
{
	struct named named = found();
	uint64_t now_ns = BEGIN;

	for (int i = 1; i < 8; i++) {
		cr_expect_eq(named_answer(&named, -EACCES, LIVES, now_ns), NAMED_WAIT, "%d", i);
		cr_expect_eq(named.due_ns, now_ns + (20 * MS << i));
		now_ns = named.due_ns;
	}
	cr_expect_eq(now_ns - BEGIN, 5080 * MS);
	cr_expect_eq(named_answer(&named, -EACCES, LIVES, now_ns), NAMED_KNOW_COMM);
	cr_expect_eq(named.due_ns, 0);
}

Test(named, what_has_no_process_left_is_known_by_what_there_is)
{
	struct named named = found(), has_name = known();

	cr_expect_eq(named_answer(&named, -ESRCH, !LIVES, BEGIN), NAMED_KNOW_COMM);
	cr_expect_eq(named_settle(&has_name), NAMED_WAIT, "what is known stays known");
	cr_expect(has_name.known);
	named = found();
	cr_expect_eq(named_settle(&named), NAMED_KNOW_COMM);
}

Test(named, without_a_namer_the_public_name_must_do)
{
	struct named named = found();

	cr_expect_eq(named_answer(&named, -EPIPE, LIVES, BEGIN), NAMED_KNOW_PUBLIC);
}

Test(named, an_unreadable_executable_is_counted_once_and_asked_about_again)
{
	struct named named = found();

	named_show(&named, 5, false);
	cr_expect(named_know(&named, false, BEGIN));
	cr_expect_eq(named.due_ns, BEGIN + 250 * MS);
	cr_expect_not(named_know(&named, false, BEGIN));
	cr_expect_eq(named.due_ns, BEGIN + 500 * MS);
	cr_expect(named_changed(&named, true, false, BEGIN + SECOND));
	cr_expect(named_know(&named, false, BEGIN + SECOND), "another program is another loss");
}

Test(named, an_exec_is_asked_about_whenever_it_happens)
{
	struct named named = known();

	cr_expect_not(named_changed(&named, false, false, BEGIN + SECOND));
	cr_expect(named_changed(&named, true, false, BEGIN + 1000 * SECOND));
	cr_expect_eq(named.due_ns, BEGIN + 1000 * SECOND);
	cr_expect(named.known, "and has its old name until the answer comes");
}

/* A daemon that forks is its child; what a server leaves behind after long is no continuation. */
Test(named, a_head_that_ends_soon_has_an_heir_and_later_keeps_its_name)
{
	struct named named = known();

	cr_expect_not(named_changed(&named, false, true, BEGIN + NAMED_HEIR_NS + 1));
	cr_expect(named_has_head(&named));
	cr_expect(named_changed(&named, false, true, BEGIN + NAMED_HEIR_NS));
	cr_expect_not(named_has_head(&named));
	named = found();
	cr_expect(named_changed(&named, false, true, BEGIN + 2 * NAMED_HEIR_NS),
		  "unless it was never known");
}

Test(named, the_heir_is_the_eldest_that_lives)
{
	struct named named = known();
	struct tree_process young = process(300, 30), old = process(200, 20),
			    twin = process(199, 20), gone = process(150, 10);

	gone.tid = 0;
	cr_expect(named_changed(&named, false, true, BEGIN));
	cr_expect(named_heir_is_due(&named, BEGIN));
	named_walk(&named);
	named_meet(&named, &young);
	named_meet(&named, &old);
	named_meet(&named, &gone);
	named_meet(&named, &twin);
	named_meet(&named, &old);
	cr_expect_eq(named_inherit(&named, LIVES, BEGIN), NAMED_INHERIT);
	cr_expect(named_has_head(&named));
	cr_expect_eq(named_pid(&named), 199);
	cr_expect_eq(named_pid_start_ns(&named), 20);
	gone.tid = gone.tgid;
	named_walk(&named);
	named_meet(&named, &gone);
	cr_expect_eq(named_pid(&named), 199, "the next walk changes nothing");
	cr_expect_not(named_heir_is_due(&named, BEGIN));
}

/* The main thread of a process may end before the others: one of those is asked about. */
Test(named, an_heir_whose_first_thread_has_ended_is_asked_about_by_another)
{
	struct named named = known();
	struct tree_process heir = process(200, 20);

	heir.tid = 201;
	heir.thread_start_ns = 21;
	named_changed(&named, false, true, BEGIN);
	named_walk(&named);
	named_meet(&named, &heir);
	named_inherit(&named, LIVES, BEGIN);
	cr_expect_eq(named.tgid, 200);
	cr_expect_eq(named_pid(&named), 201);
	cr_expect_eq(named_pid_start_ns(&named), 21);
}

Test(named, without_an_heir_the_walk_is_made_again_as_long_as_it_lives)
{
	struct named named = known(), ended;

	named_changed(&named, false, true, BEGIN);
	named_walk(&named);
	ended = named;
	cr_expect_eq(named_inherit(&named, LIVES, BEGIN), NAMED_WAIT);
	cr_expect_not(named_heir_is_due(&named, BEGIN));
	cr_expect_eq(named_due_ns(&named, true, 0), BEGIN + 40 * MS);
	cr_expect_eq(named_due_ns(&named, true, BEGIN + SECOND), BEGIN + SECOND,
		     "and not before there may be a walk");
	cr_expect_eq(named_inherit(&ended, !LIVES, BEGIN), NAMED_WAIT, "it keeps its name");
	cr_expect_eq(ended.due_ns, 0);
}

/* The namer finds the head gone before the kernel side has told of it. */
Test(named, a_head_that_is_gone_when_it_is_asked_about_has_an_heir)
{
	struct named named = found();

	cr_expect_eq(named_answer(&named, -ESRCH, LIVES, BEGIN), NAMED_WAIT);
	cr_expect_not(named_has_head(&named));
	cr_expect(named_heir_is_due(&named, BEGIN));
}

/* The heir is gone as well: another one is looked for. */
Test(named, an_heir_that_is_gone_when_it_is_asked_about_has_an_heir)
{
	struct named named = found();
	struct tree_process heir = process(200, 20);

	named_answer(&named, -ESRCH, LIVES, BEGIN);
	named_walk(&named);
	named_meet(&named, &heir);
	named_inherit(&named, LIVES, BEGIN);
	cr_expect(named_has_head(&named));
	cr_expect_eq(named_answer(&named, -ESRCH, LIVES, BEGIN), NAMED_WAIT);
	cr_expect_not(named_has_head(&named));
	cr_expect_eq(named.due_ns, BEGIN + 40 * MS);
	named_walk(&named);
	cr_expect_eq(named.eldest.tid, 0);
}

/* What it took to learn a name is forgotten with it. */
Test(named, a_name_that_is_known_is_the_end_of_retries_delays_and_heirs)
{
	struct named named = found();
	struct tree_process heir = process(200, 20);

	named_answer(&named, -ETIMEDOUT, LIVES, BEGIN);
	named_answer(&named, -EACCES, LIVES, BEGIN);
	named_answer(&named, -ESRCH, LIVES, BEGIN);
	named_walk(&named);
	named_meet(&named, &heir);
	named_inherit(&named, LIVES, BEGIN);
	named_show(&named, 5, false);
	named_know(&named, true, BEGIN);
	cr_expect_eq(named_answer_ns(&named), 100 * MS);
	cr_expect_eq(named_pid(&named), 200, "the head is the heir");
	cr_expect_not(named.orphan);
	cr_expect_eq(named_answer(&named, -EACCES, LIVES, BEGIN), NAMED_WAIT);
	cr_expect_eq(named.due_ns, BEGIN + 40 * MS, "the first retry again");
}

Test(named, what_was_refused_is_asked_about_once_there_is_room)
{
	struct named named = found();

	named_show(&named, LEDGER_OTHER, true);
	named_know(&named, true, BEGIN);
	named_room(&named, BEGIN + SECOND);
	cr_expect_eq(named.due_ns, BEGIN + SECOND);
	named_room(&named, BEGIN + 2 * SECOND);
	cr_expect_eq(named.due_ns, BEGIN + SECOND, "and is in its turn");
	named_know(&named, false, BEGIN + 2 * SECOND);
	named_room(&named, BEGIN + 2 * SECOND);
	cr_expect_eq(named.due_ns, BEGIN + 2 * SECOND,
		     "it need not wait for the executable to be readable");
	named = known();
	named_room(&named, BEGIN + SECOND);
	cr_expect_eq(named.due_ns, 0);
}

Test(named, those_that_kept_the_namer_waiting_come_last)
{
	static struct named trees[TREES_MAX];

	cr_expect_eq(named_next(trees, BEGIN), 0);
	trees[1] = trees[2] = trees[3] = trees[4] = found();
	trees[1].due_ns = BEGIN - 3;
	trees[1].late = 1;
	trees[2].due_ns = BEGIN - 1;
	trees[3].due_ns = BEGIN - 2;
	trees[4].due_ns = BEGIN + 1;
	cr_expect_eq(named_next(trees, BEGIN), 3);
	trees[3].orphan = true;
	cr_expect_eq(named_next(trees, BEGIN), 2, "without a head it cannot be asked about");
	trees[2].due_ns = 0;
	cr_expect_eq(named_next(trees, BEGIN), 1);
	trees[1].due_ns = 0;
	cr_expect_eq(named_next(trees, BEGIN), 0, "one is not due yet");
}
