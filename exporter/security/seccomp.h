/* SPDX-License-Identifier: Apache-2.0 */
/* Seccomp: the system calls that each role goes on using. */
#ifndef WORKLOAD_SECURITY_SECCOMP_H
#define WORKLOAD_SECURITY_SECCOMP_H

#include "security/sandbox.h"

/* As sandbox_enter(), for this part of it; @mode is not SANDBOX_OFF. */
int seccomp_enter(enum sandbox_role role, enum sandbox_mode mode, const struct needs *const *needs);

/*
 * As sandbox_enter_strict(). A filter, and not the kernel's strict mode, which cannot be had where
 * there is a filter already (seccomp(2)): of systemd, of a container.
 */
int seccomp_enter_strict(void);

/* What system call @number of this machine is called, which the caller frees; NULL: it is not
 * known.
 */
char *seccomp_call_name(int number);

#endif
