/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/units.h"

#define MANY 40 /* more than one wait tells */

/* A descriptor that is readable while it is not 0, and what happens when the loop says so. */
struct bell {
	struct loop *loop;
	struct loop_watch watch;
	int heard;
	bool silence; /* is read, so that it is not readable any more */
	struct bell *forgets; /* another one, or itself; NULL: none */
	struct task *asks; /* for a job; NULL: for none */
	bool ends; /* the loop */
};

/* A job that writes down that it ran. */
struct task {
	struct loop_job job;
	char name;
	uint64_t due_ns;
	int result;
	char **log; /* where the next letter is written: shared by those whose order matters */
};

static void bell_heard(void *arg)
{
	struct bell *bell = arg;
	uint64_t value;

	bell->heard++;
	if (bell->silence)
		cr_assert_eq(read(bell->watch.fd, &value, sizeof(value)), sizeof(value));
	if (bell->forgets)
		loop_forget(bell->loop, &bell->forgets->watch);
	if (bell->asks)
		bell->asks->due_ns = 0;
	if (bell->ends)
		loop_end(bell->loop);
}

static void bell_watch(struct bell *bell, struct loop *loop, int fd)
{
	cr_assert_geq(fd, 0);
	bell->loop = loop;
	bell->watch = (struct loop_watch){ .fd = fd, .ready = bell_heard, .arg = bell };
	cr_assert_eq(loop_watch(loop, &bell->watch, LOOP_READABLE), 0);
}

static void bell_start(struct bell *bell, struct loop *loop, unsigned value)
{
	bell_watch(bell, loop, eventfd(value, EFD_CLOEXEC | EFD_NONBLOCK));
}

static void bell_stop(struct bell *bell)
{
	loop_forget(bell->loop, &bell->watch);
	close(bell->watch.fd);
}

static uint64_t task_due_ns(const void *arg)
{
	return ((const struct task *)arg)->due_ns;
}

static int task_run(void *arg)
{
	struct task *task = arg;

	*(*task->log)++ = task->name;
	task->due_ns = UINT64_MAX;
	return task->result;
}

static void task_start(struct task *task, struct loop *loop, char **log)
{
	task->log = log;
	task->job = (struct loop_job){ .due_ns = task_due_ns, .run = task_run, .arg = task };
	loop_add(loop, &task->job);
}

static uint64_t in_ms(uint64_t ms)
{
	return clock_monotonic_ns() + ms * NS_PER_MS;
}

/* --- descriptors ----------------------------------------------------------------------------- */

Test(loop, a_descriptor_is_told_while_it_is_readable)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct bell bell = { 0 };

	cr_assert_eq(loop_new(&loop), 0);
	bell_start(&bell, loop, 1);
	cr_expect_eq(loop_round(loop, 0), 0);
	cr_expect_eq(loop_round(loop, 0), 0);
	cr_expect_eq(bell.heard, 2);
	bell.silence = true;
	cr_expect_eq(loop_round(loop, 0), 0);
	cr_expect_eq(loop_round(loop, 0), 0);
	cr_expect_eq(bell.heard, 3);
	bell_stop(&bell);
}

/* A connection of which it is told what @event says, before and after the other side does @act. */
static int told_of(enum loop_event event, void (*act)(int other))
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct bell bell = { 0 };
	int ends[2], before;

	cr_assert_eq(loop_new(&loop), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	bell.loop = loop;
	bell.watch = (struct loop_watch){ .fd = ends[0], .ready = bell_heard, .arg = &bell };
	cr_assert_eq(loop_watch(loop, &bell.watch, event), 0);
	cr_expect_eq(loop_round(loop, 0), 0);
	before = bell.heard;
	act(ends[1]);
	cr_expect_eq(loop_round(loop, 0), 0);
	bell_stop(&bell);
	close(ends[1]);
	return before ? -1 : bell.heard;
}

static void send_byte(int other)
{
	cr_assert_eq(send(other, "x", 1, 0), 1);
}

static void send_no_more(int other)
{
	shutdown(other, SHUT_WR);
}

static void shut_both(int other)
{
	shutdown(other, SHUT_RDWR);
}

Test(loop, a_connection_is_told_of_by_what_it_is_watched_for)
{
	cr_expect_eq(told_of(LOOP_READABLE, send_byte), 1);
	cr_expect_eq(told_of(LOOP_ENDED, send_byte), 0);
	cr_expect_eq(told_of(LOOP_ENDED, send_no_more), 1);
	cr_expect_eq(told_of(LOOP_BROKEN, send_byte), 0);
	cr_expect_eq(told_of(LOOP_BROKEN, send_no_more), 0);
	cr_expect_eq(told_of(LOOP_BROKEN, shut_both), 1);
}

Test(loop, a_descriptor_that_is_watched_already_is_refused)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct bell bell = { 0 };

	cr_assert_eq(loop_new(&loop), 0);
	bell_start(&bell, loop, 0);
	cr_expect_eq(loop_watch(loop, &bell.watch, LOOP_READABLE), -EEXIST);
	bell_stop(&bell);
}

Test(loop, what_is_forgotten_is_not_told_in_the_same_round_either)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct bell bells[2] = { { .forgets = &bells[1] }, { .forgets = &bells[0] } };

	cr_assert_eq(loop_new(&loop), 0);
	bell_start(&bells[0], loop, 1);
	bell_start(&bells[1], loop, 1);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(loop_round(loop, 0), 0);
	cr_expect_eq(bells[0].heard + bells[1].heard, 3, "the first, whichever that is");
	cr_expect(!bells[0].heard || !bells[1].heard);
	bell_stop(&bells[0]);
	bell_stop(&bells[1]);
}

Test(loop, what_forgets_itself_is_told_once)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct bell bell = { .forgets = &bell };

	cr_assert_eq(loop_new(&loop), 0);
	bell_start(&bell, loop, 1);
	cr_expect_eq(loop_round(loop, 0), 0);
	cr_expect_eq(loop_round(loop, 0), 0);
	cr_expect_eq(bell.heard, 1);
	bell_stop(&bell);
}

Test(loop, of_many_that_are_ready_each_has_its_turn)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct bell bells[MANY] = { 0 };

	cr_assert_eq(loop_new(&loop), 0);
	for (int i = 0; i < MANY; i++)
		bell_start(&bells[i], loop, 1);
	for (int i = 0; i < 10; i++)
		cr_expect_eq(loop_round(loop, 0), 0);
	for (int i = 0; i < MANY; i++) {
		cr_expect_geq(bells[i].heard, 3, "%d: %d", i, bells[i].heard);
		bell_stop(&bells[i]);
	}
}

/* --- jobs ------------------------------------------------------------------------------------- */

Test(loop, jobs_that_are_due_run_once_a_round_as_they_were_added)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct task tasks[] = { { .name = 'a' },
				{ .name = 'b', .due_ns = UINT64_MAX },
				{ .name = 'c' } };
	char text[16] = "", *log = text;

	cr_assert_eq(loop_new(&loop), 0);
	for (int i = 0; i < 3; i++)
		task_start(&tasks[i], loop, &log);
	for (int round = 0; round < 3; round++) {
		cr_expect_eq(loop_round(loop, 0), 0);
		tasks[0].due_ns = tasks[2].due_ns = in_ms(0);
	}
	cr_expect_str_eq(text, "acacac");
}

Test(loop, a_job_runs_at_its_date_and_not_before)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	uint64_t date_ns = in_ms(20);
	struct task task = { .name = 'a', .due_ns = date_ns };
	char text[8] = "", *log = text;
	int rounds = 0;

	cr_assert_eq(loop_new(&loop), 0);
	task_start(&task, loop, &log);
	for (; !*text; rounds++)
		cr_expect_eq(loop_round(loop, in_ms(5000)), 0);
	cr_expect_geq(clock_monotonic_ns(), date_ns);
	cr_expect_eq(rounds, 1, "no round ends before the date");
}

Test(loop, a_job_runs_at_its_date_while_descriptors_wake_the_loop)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct task task = { .name = 'a', .due_ns = in_ms(20) };
	struct bell bell = { 0 };
	char text[8] = "", *log = text;
	uint64_t patience_ns = in_ms(5000);

	cr_assert_eq(loop_new(&loop), 0);
	task_start(&task, loop, &log);
	bell_start(&bell, loop, 1);
	while (!*text && clock_monotonic_ns() < patience_ns)
		cr_expect_eq(loop_round(loop, UINT64_MAX), 0);
	cr_expect_str_eq(text, "a");
	bell_stop(&bell);
}

Test(loop, what_a_descriptor_asks_for_is_done_in_the_same_round)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct task task = { .name = 'a', .due_ns = UINT64_MAX };
	struct bell bell = { .asks = &task };
	char text[8] = "", *log = text;

	cr_assert_eq(loop_new(&loop), 0);
	task_start(&task, loop, &log);
	bell_start(&bell, loop, 1);
	cr_expect_eq(loop_round(loop, UINT64_MAX), 0);
	cr_expect_str_eq(text, "a");
	bell_stop(&bell);
}

/* In ms, as epoll_wait counts them, this date is 10 where 32 bits are all that is kept of it. */
Test(loop, a_date_beyond_what_one_wait_can_last_does_not_end_it)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct task task = { .name = 'a', .due_ns = in_ms((1ULL << 32) + 10) };
	const struct itimerspec in_50_ms = { .it_value = { .tv_nsec = 50 * NS_PER_MS } };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct bell bell = { 0 };
	char text[8] = "", *log = text;

	cr_assert_eq(loop_new(&loop), 0);
	task_start(&task, loop, &log);
	cr_assert_eq(timerfd_settime(timer, 0, &in_50_ms, NULL), 0);
	bell_watch(&bell, loop, timer);
	cr_expect_eq(loop_round(loop, UINT64_MAX), 0);
	cr_expect_eq(bell.heard, 1);
	cr_expect_str_empty(text);
	bell_stop(&bell);
}

/* --- the end ---------------------------------------------------------------------------------- */

Test(loop, a_job_that_fails_ends_the_loop_before_the_next_job)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct task tasks[] = { { .name = 'a', .result = -ESHUTDOWN }, { .name = 'b' } };
	char text[8] = "", *log = text;

	cr_assert_eq(loop_new(&loop), 0);
	for (int i = 0; i < 2; i++)
		task_start(&tasks[i], loop, &log);
	cr_expect_eq(loop_run(loop), -ESHUTDOWN);
	cr_expect_str_eq(text, "a");
}

Test(loop, the_call_that_ends_it_is_the_last)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct task task = { .name = 'a' };
	struct bell bells[2] = { { .ends = true }, { .ends = true } };
	char text[8] = "", *log = text;

	cr_assert_eq(loop_new(&loop), 0);
	task_start(&task, loop, &log);
	bell_start(&bells[0], loop, 1);
	bell_start(&bells[1], loop, 1);
	cr_expect_eq(loop_run(loop), 0);
	cr_expect_eq(bells[0].heard + bells[1].heard, 1);
	cr_expect_str_empty(text);
	bell_stop(&bells[0]);
	bell_stop(&bells[1]);
}
