/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "registry/namer.h"

#define ROOT "tests/unit/fixtures/proc"

static const struct user nobody_else;

#define LONG_NS (60 * 1000000000ULL)

/* Without seccomp: a sanitizer's own calls are not on the list. test_sandbox.c has the rest. */
static struct namer *start(void)
{
	struct namer_options options = {
		.proc_root = ROOT,
		.user = &nobody_else,
		.sandbox = SANDBOX_OFF,
	};
	struct namer *namer = NULL;

	cr_assert_eq(namer_start(&options, &namer), 0);
	cr_assert(helper_is_ready(namer_helper(namer)));
	return namer;
}

/* The youngest: one that was killed may still be there. */
static pid_t child_of(pid_t parent)
{
	FILE *file = NULL;
	char path[64];
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
	file = fopen(path, "re");
	cr_assert_not_null(file);
	while (fscanf(file, "%d", &pid) == 1)
		;
	fclose(file);
	cr_assert_neq(pid, 0);
	return pid;
}

static pid_t keeper(void)
{
	return child_of(getpid());
}

static pid_t reader(void)
{
	return child_of(keeper());
}

static int ask(struct namer *namer, pid_t pid, uint64_t within_ns)
{
	return namer_ask(namer, pid, 0, "thread", clock_monotonic_ns() + within_ns);
}

/* What namer_take() says when there is something to take, or it is due. */
static int wait_and_take(struct namer *namer, struct identity *out)
{
	struct pollfd answer = { .fd = helper_fd(namer_helper(namer)), .events = POLLIN };
	int r;

	while ((r = namer_take(namer, clock_monotonic_ns(), out)) == -EAGAIN)
		cr_assert_geq(poll(&answer, 1, 10), 0);
	return r;
}

static int identify(struct namer *namer, pid_t pid, struct identity *out)
{
	cr_assert_eq(ask(namer, pid, LONG_NS), 0);
	return wait_and_take(namer, out);
}

/* Nothing is open: only a new reader can say something. */
static void wait_until_ready(struct namer *namer)
{
	struct pollfd hello = { .fd = helper_fd(namer_helper(namer)), .events = POLLIN };
	struct identity none;

	for (int i = 0; i < 1000 && !helper_is_ready(namer_helper(namer)); i++) {
		poll(&hello, 1, 10);
		cr_assert_eq(namer_take(namer, clock_monotonic_ns(), &none), -EAGAIN);
	}
	cr_assert(helper_is_ready(namer_helper(namer)));
}

static void wait_for_end(pid_t pid)
{
	for (int i = 0; i < 1000 && !kill(pid, 0); i++)
		poll(NULL, 0, 10);
	cr_expect_eq(kill(pid, 0), -1);
	cr_expect_eq(errno, ESRCH);
}

static void expect_right(struct namer *namer, pid_t pid)
{
	struct identity direct = { 0 }, told = { 0 };
	int r = identity_read(ROOT, pid, 0, "thread", &direct);

	cr_expect_eq(identify(namer, pid, &told), r);
	cr_expect_arr_eq(&told, &direct, sizeof(told), "process %d", (int)pid);
}

Test(namer, it_answers_what_reading_tells)
{
	struct namer *namer = start();

	for (pid_t pid = 100; pid <= 113; pid++)
		expect_right(namer, pid);
	cr_expect(helper_alive(namer_helper(namer)));
	namer_stop(namer);
}

Test(namer, a_process_that_is_not_there_is_not_invented)
{
	struct identity identity = { .name = "untouched" };
	struct namer *namer = start();

	cr_expect_eq(identify(namer, 99, &identity), -ESRCH);
	cr_expect_eq(identify(namer, -1, &identity), -ESRCH);
	cr_expect_str_eq(identity.name, "untouched");
	namer_stop(namer);
}

Test(namer, one_question_is_open_at_a_time)
{
	struct namer *namer = start();
	struct identity identity;

	cr_expect_eq(namer_take(namer, clock_monotonic_ns(), &identity), -EAGAIN);
	cr_expect_eq(helper_due_ns(namer_helper(namer)), UINT64_MAX);
	cr_expect_eq(namer_ask(namer, 100, 0, "thread", UINT64_MAX - 1), 0);
	cr_expect_not(helper_is_ready(namer_helper(namer)));
	cr_expect_eq(helper_due_ns(namer_helper(namer)), UINT64_MAX - 1);
	cr_expect_eq(ask(namer, 101, LONG_NS), -EBUSY);
	cr_expect_eq(wait_and_take(namer, &identity), 0);
	cr_expect(helper_is_ready(namer_helper(namer)));
	namer_stop(namer);
}

/* The question is still there, and the next reader answers it: too late to be taken. */
Test(namer, one_that_hangs_is_replaced)
{
	struct namer *namer = start();
	pid_t first = reader();
	struct identity identity;

	for (int i = 0; i < 5; i++) {
		kill(reader(), SIGSTOP);
		cr_assert_eq(ask(namer, 100, 10000000), 0);
		cr_expect_eq(wait_and_take(namer, &identity), -ETIMEDOUT);
		cr_expect_eq(ask(namer, 100, LONG_NS), -EBUSY);
		wait_until_ready(namer);
		cr_expect_neq(reader(), first);
	}
	wait_for_end(first);
	expect_right(namer, 101);
	namer_stop(namer);
}

Test(namer, one_that_ends_over_a_question_is_replaced)
{
	struct namer *namer = start();
	struct identity identity;

	kill(reader(), SIGSTOP);
	cr_assert_eq(ask(namer, 100, LONG_NS), 0);
	kill(reader(), SIGKILL);
	cr_expect_eq(wait_and_take(namer, &identity), -ETIMEDOUT);
	wait_until_ready(namer);
	expect_right(namer, 101);
	namer_stop(namer);
}

Test(namer, once_it_has_ended_what_every_user_may_know_is_told)
{
	struct namer *namer = start();
	struct identity identity = { 0 };
	pid_t last = reader();

	kill(keeper(), SIGKILL);
	cr_expect_eq(wait_and_take(namer, &identity), -EPIPE);
	cr_expect_not(helper_alive(namer_helper(namer)));
	cr_expect_eq(ask(namer, 100, LONG_NS), -EPIPE);
	wait_for_end(last);
	cr_expect_eq(namer_read_public(namer, 100, 0, "thread", &identity), 0);
	cr_expect_str_eq(identity.exe, "");
	cr_expect_str_eq(identity.runtime, "unknown");
	cr_expect_str_neq(identity.name, "");
	cr_expect_eq(namer_read_public(namer, 99, 0, "thread", &identity), -ESRCH);
	namer_stop(namer);
}

Test(namer, it_ends_with_those_who_ask)
{
	struct namer *namer = start();
	pid_t pid = keeper(), last = reader();
	siginfo_t info = { 0 };

	namer_stop(namer);
	cr_expect_eq(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
	cr_expect_eq(info.si_code, CLD_EXITED);
	cr_expect_eq(info.si_status, 0);
	wait_for_end(last);
}

static void expect_closed(pid_t pid, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	cr_expect_eq(access(path, F_OK), -1);
	cr_expect_eq(errno, ENOENT);
}

Test(namer, it_inherits_no_descriptors)
{
	int leaked = open("/proc/self/stat", O_RDONLY); /* not even close-on-exec */
	struct namer *namer = start();

	expect_closed(reader(), leaked);
	namer_stop(namer);
	close(leaked);
}
