/* SPDX-License-Identifier: Apache-2.0 */
#include "security/sandbox.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "security/landlock.h"
#include "security/seccomp.h"

/*
 * RLIMIT_FSIZE is left alone: a log that standard error was redirected to must go on growing. Files
 * cannot be opened for writing anyway.
 */
static int limits_set(bool starts_any)
{
	const struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &none))
		return -errno;
	if (!starts_any && setrlimit(RLIMIT_NPROC, &none))
		return -errno;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? -errno : 0;
}

bool sandbox_is_supported(void)
{
	/* Behind a filter that forbids to ask there is one. */
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 || errno != EINVAL;
}

int sandbox_enter_strict(void)
{
	int r = limits_set(false);

	return r || !sandbox_is_supported() ? r : seccomp_enter_strict();
}

int sandbox_enter(enum sandbox_role role, enum sandbox_mode mode, const struct needs *const *needs)
{
	bool starts_any = role == SANDBOX_KEEPER, opens_any = role != SANDBOX_SERVER;
	int r;

	if (mode == SANDBOX_OFF)
		return 0;
	for (size_t i = 0; needs && needs[i]; i++) {
		starts_any |= needs[i]->threads;
		opens_any |= needs[i]->files;
	}
	r = limits_set(starts_any);
	/* Landlock also keeps a process from reading /proc/PID/exe of others. */
	if (!r && !opens_any && mode == SANDBOX_ON)
		r = landlock_enter();
	if (!r)
		r = seccomp_enter(role, mode, needs);
	return r;
}
