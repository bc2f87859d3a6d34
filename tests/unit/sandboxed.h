/* SPDX-License-Identifier: Apache-2.0 */
/* A child that enters a sandbox, and then tries something. */
#ifndef TESTS_SANDBOXED_H
#define TESTS_SANDBOXED_H

#include <criterion/criterion.h>

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "security/sandbox.h"

#define ENTERED 100 /* exit codes of the child: an errno, or one of these */
#define NOT_ENTERED 101

typedef int (*try_fn)(void);

/* A sanitizer asks for more in _exit(). */
static inline void sandboxed_exit(int code)
{
	syscall(SYS_exit_group, code);
}

/* What waitpid() says of a process that enters the sandbox and then tries this. */
static inline int status_with(enum sandbox_role role, enum sandbox_mode mode,
			      const struct needs *const *needs, try_fn try)
{
	pid_t pid = fork();
	int status = 0;

	cr_assert_geq(pid, 0);
	if (!pid) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || sandbox_enter(role, mode, needs))
			sandboxed_exit(NOT_ENTERED);
		errno = 0;
		sandboxed_exit(try() < 0 ? errno : ENTERED);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static inline int status_after(enum sandbox_role role, enum sandbox_mode mode, try_fn try)
{
	return status_with(role, mode, NULL, try);
}

#endif
