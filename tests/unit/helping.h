/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers, and other processes that end with the test. */
#ifndef TESTS_HELPING_H
#define TESTS_HELPING_H

#include <criterion/criterion.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers/helper.h"

static inline struct helper *helping_start(const struct helper_kind *kind, const void *arg)
{
	static const struct user nobody_else;
	const struct helper_options options = {
		.kind = kind,
		.arg = arg,
		.user = &nobody_else,
		.sandbox = SANDBOX_OFF, /* a sanitizer's own calls are not on its list */
	};
	struct helper *helper = NULL;

	cr_assert_eq(helper_start(&options, &helper), 0);
	return helper;
}

/* A process that waits until it is ended. */
static inline pid_t helping_child(void)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test fails */
	for (;;)
		pause();
}

static inline void helping_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
