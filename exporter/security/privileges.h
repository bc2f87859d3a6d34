/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process may do: its capabilities, as far as the kernel lets them count for BPF.
 *
 * Facts of the kernel: CAP_SYS_ADMIN implies CAP_BPF and CAP_PERFMON, but not CAP_SYS_PTRACE.
 * bpf(2) asks for them in the initial user namespace, whatever another one grants.
 */
#ifndef WORKLOAD_SECURITY_PRIVILEGES_H
#define WORKLOAD_SECURITY_PRIVILEGES_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

/* Words that tell what to do, the same wherever a privilege is missing. */
#define PRIVILEGES_REMEDY "start as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE"
#define PRIVILEGES_REMEDY_NAMESPACE "start in the initial user namespace (no rootless container)"

struct privileges {
	bool known; /* false: /proc/self/status could not be read, and nothing below is set */
	bool user_namespace; /* another than the initial one: capabilities do not count */
	uint64_t effective; /* CapEff: bit n is the capability with the number n */
};

/*
 * Reads @proc_root/self. 0, -errno where it cannot be read, -EINVAL where it is not what proc(5)
 * says; @out is then untouched.
 */
int privileges_read(const char *proc_root, struct privileges *out);

/* Whether @capability (CAP_BPF, ...) is held and counts; false if that is not known. */
bool privileges_have(const struct privileges *privileges, int capability);

/* Whether @capability is held only because CAP_SYS_ADMIN implies it. */
bool privileges_implied(const struct privileges *privileges, int capability);

#endif
