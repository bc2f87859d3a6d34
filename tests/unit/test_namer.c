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

#include "security/namer.h"

#define ROOT "tests/unit/fixtures/proc"

static const struct user nobody_else;

/* Without seccomp: a sanitizer's own calls are not on the list. test_sandbox.c has the rest. */
static struct namer *start(const char *proc_root, unsigned int answer_ms)
{
	struct namer_options options = {
		.proc_root = proc_root,
		.user = &nobody_else,
		.sandbox = SANDBOX_OFF,
		.answer_ms = answer_ms,
	};
	struct namer *namer = NULL;

	cr_assert_eq(namer_start(&options, &namer), 0);
	return namer;
}

static pid_t child_of_this_process(void)
{
	FILE *file = NULL;
	char path[64];
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	file = fopen(path, "re");
	cr_assert_not_null(file);
	cr_assert_eq(fscanf(file, "%d", &pid), 1);
	fclose(file);
	return pid;
}

static void wait_for_its_end(struct namer *namer)
{
	struct pollfd ended = { .fd = namer_fd(namer), .events = POLLIN };

	cr_assert_eq(poll(&ended, 1, 10000), 1);
	cr_assert_not(namer_alive(namer));
}

Test(namer, it_answers_what_reading_tells)
{
	struct namer *namer = start(ROOT, 0);

	for (pid_t pid = 100; pid <= 113; pid++) {
		struct identity direct = { 0 }, told = { 0 };
		int r = identity_read(ROOT, pid, 0, "thread", &direct);

		cr_expect_eq(namer_identify(namer, pid, 0, "thread", &told), r);
		cr_expect_arr_eq(&told, &direct, sizeof(told), "process %d", (int)pid);
	}
	cr_expect(namer_alive(namer));
	namer_stop(namer);
}

Test(namer, a_process_that_is_not_there_is_not_invented)
{
	struct identity identity = { .name = "untouched" };
	struct namer *namer = start(ROOT, 0);

	cr_expect_eq(namer_identify(namer, 99, 0, "thread", &identity), -ESRCH);
	cr_expect_eq(namer_identify(namer, -1, 0, "thread", &identity), -ESRCH);
	cr_expect_str_eq(identity.name, "untouched");
	namer_stop(namer);
}

Test(namer, once_it_has_ended_what_every_user_may_know_is_told)
{
	struct namer *namer = start(ROOT, 0);
	struct identity identity = { 0 };

	kill(child_of_this_process(), SIGKILL);
	wait_for_its_end(namer);
	cr_expect_eq(namer_identify(namer, 100, 0, "thread", &identity), 1);
	cr_expect_str_eq(identity.exe, "");
	cr_expect_str_eq(identity.runtime, "unknown");
	cr_expect_str_neq(identity.name, "");
	cr_expect_eq(namer_identify(namer, 99, 0, "thread", &identity), -ESRCH);
	namer_stop(namer);
}

Test(namer, one_that_hangs_is_waited_for_once_and_answers_again_later)
{
	struct namer *namer = start(ROOT, 50);
	struct pollfd late = { .fd = namer_fd(namer), .events = POLLIN };
	struct identity direct = { 0 }, told = { 0 };
	pid_t pid = child_of_this_process();

	kill(pid, SIGSTOP);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(namer_identify(namer, 100, 0, "thread", &told), 1);
	kill(pid, SIGCONT);
	cr_assert_eq(poll(&late, 1, 10000), 1);
	cr_expect(namer_alive(namer));
	cr_expect_eq(identity_read(ROOT, 101, 0, "thread", &direct), 0);
	/* On a busy machine the answer may take longer than the 50 ms again. */
	for (int i = 0; i < 200 && namer_identify(namer, 101, 0, "thread", &told); i++)
		poll(NULL, 0, 10);
	cr_expect_arr_eq(&told, &direct, sizeof(told));
	namer_stop(namer);
}

Test(namer, it_ends_with_those_who_ask)
{
	struct namer *namer = start(ROOT, 0);
	pid_t pid = child_of_this_process();
	siginfo_t info = { 0 };

	namer_stop(namer);
	cr_expect_eq(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
	cr_expect_eq(info.si_code, CLD_EXITED);
	cr_expect_eq(info.si_status, 0);
}

Test(namer, it_inherits_no_descriptors)
{
	int leaked = open("/proc/self/stat", O_RDONLY); /* not even close-on-exec */
	struct namer *namer = start(ROOT, 0);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)child_of_this_process(), leaked);
	cr_expect_eq(access(path, F_OK), -1);
	cr_expect_eq(errno, ENOENT);
	namer_stop(namer);
	close(leaked);
}
