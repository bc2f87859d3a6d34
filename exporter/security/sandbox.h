/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of the kernel to a process that has started: the system calls that it goes on using
 * (seccomp), no file to write and no connection to make (also Landlock, where the kernel has it),
 * no new process and no core dump.
 *
 * It limits what an attacker that has taken the process over can do; rights are another matter
 * (capabilities.h).
 */
#ifndef WORKLOAD_SECURITY_SANDBOX_H
#define WORKLOAD_SECURITY_SANDBOX_H

#include <stdbool.h>

#include "security/needs.h"

/* Whether to enter: the values of enum sandbox_mode are those of --security.sandbox. */
enum sandbox_mode {
	SANDBOX_ON,
	SANDBOX_LOG, /* what is not on the list works, and the kernel logs it: to find out what
			lacks */
	SANDBOX_OFF
};

enum sandbox_role {
	SANDBOX_SERVER, /* serves HTTP, reads maps and its own part of /proc */
	SANDBOX_NAMER, /* reads /proc, memory and executables of others, answers on one socket */
	SANDBOX_OPENER, /* the same of what is mapped to run */
	SANDBOX_PARSER, /* has memory, and reads descriptors that it is given */
	SANDBOX_KEEPER /* as a namer, and starts processes that enter one before, and ends them */
};

/* Whether this kernel has seccomp filters. */
bool sandbox_is_supported(void);

/*
 * For the calling thread and all that it might start: call it in the only thread. Needs
 * no_new_privs. A call that is not on the role's list fails with ENOSYS, as if the kernel did not
 * have it, so that libraries fall back, and is logged by the kernel; a call that only an intruder
 * makes (execve, ptrace, ...) ends the process. 0 or -errno. A kernel without Landlock is no error:
 * seccomp forbids the same by its own means. @needs: what the parts of a server, or the messages of
 * a helper, need besides, and NULL at the end; NULL: nothing.
 */
int sandbox_enter(enum sandbox_role role, enum sandbox_mode mode, const struct needs *const *needs);

/*
 * For a process that computes: it can read and write what is open, and exit. All else ends it.
 * Where the kernel has no seccomp at all it is not limited (sandbox_is_supported()). 0 or -errno.
 */
int sandbox_enter_strict(void);

#endif
