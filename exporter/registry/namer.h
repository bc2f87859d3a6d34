/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namer: a helper that tells what a process is, the only part of the exporter that keeps a
 * capability (CAP_SYS_PTRACE) after the start.
 *
 * Reading which executable another user's process runs takes a capability that would also allow to
 * read and change that process. So the process that talks to the network has none, and asks: "what
 * is process 4711, which started then?" is all that can be asked.
 *
 * A process that is asked about may also make its reader wait: it can hold the lock of its own
 * memory, an executable's file system may not answer. So a reader that does not answer in time is
 * ended and replaced (helpers/helper.h).
 *
 * All functions but start expect a namer that was started. One thread. Times are CLOCK_MONOTONIC.
 */
#ifndef WORKLOAD_REGISTRY_NAMER_H
#define WORKLOAD_REGISTRY_NAMER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "helpers/helper.h"
#include "identity/identity.h"

#define NAMER_COMM_BYTES 64

struct namer_question {
	uint64_t start_ns;
	int32_t pid;
	uint32_t zero; /* explicit: a hole would tell what was in memory */
	char comm[NAMER_COMM_BYTES];
};

/* Its answers are struct identity: one that has been checked has texts with ends, and a name. */
extern const struct helper_kind namer_kind;

struct namer_options {
	const char *proc_root; /* borrowed while the namer lives */
	const struct user *user; /* that it becomes; only while starting */
	enum sandbox_mode sandbox;
};

struct namer;

/* As helper_start(). */
int namer_start(const struct namer_options *options, struct namer **out);

/* Asks for identity_read(), to be answered until @due_ns: as helper_ask(). */
int namer_ask(struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm, uint64_t due_ns);

/* The answer to the open question, what identity_read() returned, with @out: as helper_take(). */
int namer_take(struct namer *namer, uint64_t now_ns, struct identity *out);

/* identity_read_public() by the caller's own means. */
int namer_read_public(const struct namer *namer, pid_t pid, uint64_t start_ns, const char *comm,
		      struct identity *out);

/* Its helper, for all that is not about names. */
struct helper *namer_helper(const struct namer *namer);

/* NULL is nothing. */
void namer_stop(struct namer *namer);

#endif
