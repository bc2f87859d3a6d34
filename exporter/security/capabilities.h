/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives up what is not needed any more: capabilities, the user, and every way to get more.
 *
 * What goes on after the start, and what of the capabilities it takes, is in KEEP_LIST below, for a
 * feature in its struct needs (needs.h), for a helper in its kind (helpers/helper.h). Facts of the
 * kernel: since Linux 5.19 bpf(2) on descriptors that are open already (reading and writing maps,
 * running walks, asking for a program's statistics) takes none; before, with
 * kernel.unprivileged_bpf_disabled set, CAP_BPF. Which of the two is tried, not told from the
 * version (main.c). PTRACE_MODE_READ of another user's process, which /proc/PID/exe, maps and root
 * ask for, takes CAP_SYS_PTRACE (ptrace(2)).
 */
#ifndef WORKLOAD_SECURITY_CAPABILITIES_H
#define WORKLOAD_SECURITY_CAPABILITIES_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "security/needs.h"
#include "security/privileges.h"

/* KEEP(what goes on after the start, capabilities that it takes) */
#define KEEP_LIST(KEEP)                                                                         \
	/* maps, walks, statistics of programs; before Linux 5.19 one of the two that follow */ \
	KEEP(BPF, 0)                                                                            \
	KEEP(BPF_BEFORE_5_19, CAPABILITY(CAP_BPF))                                              \
	KEEP(BPF_AS_ADMIN, CAPABILITY(CAP_SYS_ADMIN)) /* where that is what implies it */

enum keep {
#define KEEP(id, capabilities) KEEP_##id,
	KEEP_LIST(KEEP)
#undef KEEP
		KEEPS,
};

/* The capabilities, one bit each, that @keep takes. */
uint64_t capabilities_of(enum keep keep);

/* A user to become. */
struct user {
	bool become; /* false: keep the present one */
	char name[64]; /* whose groups are taken; "": none but @gid */
	uid_t uid;
	gid_t gid;
};

/* Looks @name up. 0; -ENOENT if there is none; -errno. */
int user_find(const char *name, struct user *out);

/*
 * The user that a process becomes that needs no file of ours: @wanted if that is to be become; else
 * `nobody` (65534, the kernel's overflow id, which owns no files) where we are root. Capabilities
 * without root's files are all that such a process needs. 0; -EPERM where @mine has no CAP_SETUID
 * or no CAP_SETGID: then it stays root.
 */
int user_of_helpers(const struct privileges *mine, const struct user *wanted, struct user *out);

/*
 * Makes effective only what is in @keep and permitted; the rest can still be taken up again, by
 * calling this again. 0 or -errno.
 */
int capabilities_lower(uint64_t keep);

/*
 * Makes @capability effective, or no more, if it is permitted. 0; -EPERM: it is not; -errno. One
 * system call more than asking for it: a sandbox has to allow both, capget and capset.
 */
int capability_raise(int capability, bool raised);

/*
 * For good: becomes @user with its groups (needs CAP_SETUID and CAP_SETGID if that is another one),
 * keeps of the permitted capabilities only those in @keep, and those in @held for
 * capability_raise(), empties the inheritable and the ambient
 * set, and the bounding set if CAP_SETPCAP allows it, and sets no_new_privs, so that nothing that
 * is executed later can gain any. 0 or -errno: then some may be gone, and the process should end.
 */
int capabilities_drop(uint64_t keep, uint64_t held, const struct user *user);

#endif
