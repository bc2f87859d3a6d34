/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namer: a process of its own that tells who a process is, the only part of the exporter that
 * keeps a capability (CAP_SYS_PTRACE) after the start.
 *
 * Reading which executable another user's process runs takes a capability that would also allow to
 * read and change that process. So the process that talks to the network has none, and asks: "who
 * is process 4711, which started then?" is all that can be asked. Both sides take the other for
 * hostile: messages have a fixed size and are checked. It also keeps the server from hanging where
 * /proc or an executable's file system hangs.
 *
 * All functions but start expect a namer that was started. One thread.
 */
#ifndef WORKLOAD_SECURITY_NAMER_H
#define WORKLOAD_SECURITY_NAMER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "discovery/identity.h"
#include "security/capabilities.h"
#include "security/sandbox.h"

struct namer_options {
	const char *proc_root; /* borrowed while the namer lives */
	const struct user *user; /* that it becomes; only while starting */
	enum sandbox_mode sandbox;
	unsigned int answer_ms; /* how long to wait for an answer; 0: 2 s */
};

struct namer;

/*
 * Starts the process, which ends with its parent's end of the socket: call it before there are
 * other threads, and best before there is anything that it should not inherit. 0 with @out (stop
 * releases it) or -errno; a namer that cannot enter its sandbox does not start.
 */
int namer_start(const struct namer_options *options, struct namer **out);

/*
 * identity_read() by the namer: 0 and its errors. 1 if it has ended or does not answer in time:
 * then
 * @out holds what every user may know (identity_read_public).
 */
int namer_identify(struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm,
		   struct identity *out);

/* A descriptor that becomes readable when the process ends, or answers too late. */
int namer_fd(const struct namer *namer);

/* Takes late answers; whether the process still lives. */
bool namer_alive(struct namer *namer);

/* Lets the process end, without waiting for it; NULL is nothing. */
void namer_stop(struct namer *namer);

#endif
