/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namer: processes of their own that tell what a process is, the only part of the exporter that
 * keeps a capability (CAP_SYS_PTRACE) after the start.
 *
 * Reading which executable another user's process runs takes a capability that would also allow to
 * read and change that process. So the process that talks to the network has none, and asks: "what
 * is process 4711, which started then?" is all that can be asked. Both sides take the other for
 * hostile: messages have a fixed size and are checked.
 *
 * A process that is asked about may also make its reader wait: it can hold the lock of its own
 * memory, an executable's file system may not answer. So no caller waits here: one question is open
 * at a time, each has a time within which it is to be answered, and a reader that misses it is
 * ended and replaced. The namer is a keeper (keeper.h), and its child the reader that answers.
 *
 * All functions but start expect a namer that was started. One thread. Times are CLOCK_MONOTONIC.
 */
#ifndef WORKLOAD_SECURITY_NAMER_H
#define WORKLOAD_SECURITY_NAMER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "identity/identity.h"
#include "security/capabilities.h"
#include "security/sandbox.h"

struct namer_options {
	const char *proc_root; /* borrowed while the namer lives */
	const struct user *user; /* that it becomes; only while starting */
	enum sandbox_mode sandbox;
};

struct namer;

/*
 * Starts the processes, which end with their parent's end of the socket: call it before there are
 * other threads, and best before there is anything that they should not inherit. 0 with @out (stop
 * releases it) or -errno; a namer that cannot enter its sandbox does not start.
 */
int namer_start(const struct namer_options *options, struct namer **out);

/*
 * Asks for identity_read(), to be answered until @due_ns. 0; -EBUSY while a question is open or no
 * reader is ready; -EPIPE: the namer has ended.
 */
int namer_ask(struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm, uint64_t due_ns);

/*
 * The answer to the open question: what identity_read() returned, with @out. -EAGAIN: there is none
 * yet, or no question is open. -ETIMEDOUT: none came in time, or the reader has ended over it; ask
 * later. -EPIPE: the namer has ended. After -EAGAIN and -EPIPE call it again once the descriptor is
 * readable: it also learns that a reader is ready.
 */
int namer_take(struct namer *namer, uint64_t now_ns, struct identity *out);

/* identity_read_public() by the caller's own means. */
int namer_read_public(const struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm,
		      struct identity *out);

/* Whether a question can be asked now. */
bool namer_is_ready(const struct namer *namer);

/* When the open question should be answered: UINT64_MAX if none is open. */
uint64_t namer_due_ns(const struct namer *namer);

/* A descriptor that becomes readable when there is something to take. */
int namer_fd(const struct namer *namer);

/* Whether the namer still lives, as far as namer_take() and namer_ask() have found out. */
bool namer_alive(const struct namer *namer);

/* Lets the processes end, without waiting for them; NULL is nothing. */
void namer_stop(struct namer *namer);

#endif
