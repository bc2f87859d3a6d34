/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes on the mutex functions of the watched processes (--mutex.backend=uprobe), attached and
 * removed as processes come and go.
 *
 * They are attached process by process: a uprobe on a library without a process would slow down
 * everything on the machine that uses the library. Threads of one process share its probes.
 *
 * Removing probes takes long (kernel/uprobes.h), so it is done by threads of their own. Such a
 * thread owns what it removes and shares nothing but a semaphore; all functions here belong to the
 * main thread.
 */
#ifndef WORKLOAD_FEATURES_MUTEXES_H
#define WORKLOAD_FEATURES_MUTEXES_H

#include <stdint.h>
#include <sys/types.h>

#include "kernel/loader.h"
#include "model/snapshot.h"

#define MUTEXES_PROCESSES_MAX 256 /* probed at the same time */

/* RESULT(identifier, label, what it means and what to do) */
#define MUTEX_RESULT_LIST(RESULT)                                                                \
	RESULT(PENDING, "pending", "found, to be looked at with one of the next scrapes")        \
	RESULT(ATTACHED, "attached", "probes are on its mutexes")                                \
	RESULT(NO_FUNCTIONS, "no_functions",                                                     \
	       "neither its libraries nor its executable name pthread_mutex_lock (static and "   \
	       "stripped, or 32-bit, or without pthreads): only waits that sleep are seen; for " \
	       "a static program keep its symbols")                                              \
	RESULT(REPLACED, "replaced",                                                             \
	       "its C library was replaced on disk after it started: only waits that sleep are " \
	       "seen; restart the service")                                                      \
	RESULT(UNMAPPED, "unmapped",                                                             \
	       "the library that was probed is no longer mapped: its probes are removed")        \
	RESULT(UNREADABLE, "unreadable",                                                         \
	       "its /proc/PID/maps or library cannot be read, or its main thread has ended: "    \
	       "only waits that sleep are seen; run with CAP_SYS_PTRACE")                        \
	RESULT(REFUSED, "refused",                                                               \
	       "the kernel refuses the probes: only waits that sleep are seen")                  \
	RESULT(OVER_LIMIT, "over_limit",                                                         \
	       "256 processes are probed already: only waits that sleep are seen")

enum mutex_result {
#define RESULT(id, label, meaning) MUTEX_##id,
	MUTEX_RESULT_LIST(RESULT)
#undef RESULT
		MUTEX_RESULTS,
};

/* What has become of a process: called when it changes, from within refresh. */
typedef void (*mutexes_note_fn)(void *arg, pid_t pid, enum mutex_result result,
				const char *meaning);

struct mutexes;

/*
 * @loader, with the feature on, and @proc_root are borrowed. Tries a probe on the caller itself.
 * 0; -EACCES if the kernel refuses that; -ENOMEM.
 */
int mutexes_new(struct loader *loader, const char *proc_root, mutexes_note_fn note, void *arg,
		struct mutexes **out);

/* Whether the kernel lets the caller, as it is privileged now, probe itself. 0 or -EACCES. */
int mutexes_try(struct mutexes *mutexes);

/* Waits until all probes are removed; NULL is nothing. */
void mutexes_free(struct mutexes *mutexes);

/*
 * Finds processes that are new, have ended or have called exec, and looks at up to 16 of them; at
 * most once a second. All others are looked at again after 10 s. 0 or -errno of the walk.
 */
int mutexes_refresh(struct mutexes *mutexes, uint64_t now_ns);

/* Processes by result, as of the last refresh. */
void mutexes_count(const struct mutexes *mutexes, struct mutex_row rows[static MUTEX_RESULTS]);

#endif
