/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox of a process that computes: it can read, write and exit. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "security/sandbox.h"

#define WORKED 100
#define FAILED 101

typedef bool (*try_fn)(void);

/*
 * What waitpid() says of a process that enters it, after @before, and does this. It ends by the
 * system call itself: a sanitizer asks for more in _exit().
 */
static int status_of(enum sandbox_mode before, try_fn try)
{
	pid_t pid = fork();
	int status = 0;

	cr_assert_geq(pid, 0);
	if (!pid) {
		bool worked = !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
			      !sandbox_enter(SANDBOX_KEEPER, before, NULL) &&
			      !sandbox_enter_strict() && try();

		syscall(SYS_exit, worked ? WORKED : FAILED);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static bool nothing(void)
{
	return true;
}

static bool write_nothing(void)
{
	return !syscall(SYS_write, STDERR_FILENO, "", 0);
}

static bool open_to_read(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY) >= 0;
}

static bool map_memory(void)
{
	return syscall(SYS_mmap, 0, 4096, 0, 0, -1, 0) != 0;
}

static void expect_strict(enum sandbox_mode before)
{
	static const try_fn work[] = { nothing, write_nothing },
			    end[] = { open_to_read, map_memory };

	for (size_t i = 0; i < 2; i++) {
		int works = status_of(before, work[i]), ends = status_of(before, end[i]);

		cr_expect(WIFEXITED(works) && WEXITSTATUS(works) == WORKED, "%zu: %#x", i,
			  (unsigned)works);
		cr_expect(WIFSIGNALED(ends) && WTERMSIG(ends) == SIGSYS, "%zu: %#x", i,
			  (unsigned)ends);
	}
}

Test(strict, it_can_write_and_exit_and_nothing_else)
{
	expect_strict(SANDBOX_OFF);
}

/* As systemd and containers make them; one that forbids to ask what there is, too. */
Test(strict, it_can_be_entered_behind_a_filter_that_is_there_already)
{
	expect_strict(SANDBOX_ON);
}
