/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of workloads, and where each has its code: as the kernel side reads it, by slots of
 * `process_code` (abi/unwind.h).
 *
 * One thread. Times are CLOCK_MONOTONIC.
 */
#ifndef WORKLOAD_PROFILES_PROCESSES_H
#define WORKLOAD_PROFILES_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/discovery.h"
#include "abi/unwind.h"
#include "base/units.h"
#include "kernel/loader.h"
#include "kernel/view.h"
#include "profiles/files.h"

/* How often the code of one process is read at most, and where that has failed. */
#define PROCESS_READ_NS NS_PER_S
#define PROCESS_AGAIN_NS (10 * NS_PER_S)

struct process {
	struct tree_process identity;
	uint32_t slot; /* 0: none */
	uint64_t owner; /* of that */
	uint64_t read_ns; /* when its code was read last; 0: never */
	bool seen; /* by the last walk */
	bool partial; /* some of its files have not been asked for */
	unsigned int late; /* how often it was not told in time what is mapped, since it last was */
	uint64_t again_ns; /* after such an answer, also of its files: when to read; 0: none */
	bool deferred; /* no profile wants its stacks: it is behind others, also for a slot, */
	bool left_out; /* and nothing else does: it is not read */
	struct file **files; /* owned; that it uses */
	size_t files_len;
	UT_hash_handle hh;
};

struct processes {
	struct loader *loader; /* borrowed */
	struct view code; /* struct process_code */
	int slots; /* descriptor of `code_slots`; borrowed */
	struct process *by_tgid;
	bool taken[CODE_PROCESSES_MAX];
	size_t slots_len; /* that are taken */
	uint64_t owners; /* of slots, ever */
};

/* 0; -ENOENT; -errno. processes_free() in any case. */
int processes_open(struct processes *processes, struct loader *loader);
void processes_free(struct processes *processes);

/* Meets all that live, and forgets those that have ended or called exec. 0 or -errno of the walk.
 */
int processes_walk(struct processes *processes, uint64_t now_ns);

/* One whose code is not known, or has changed, and may be read at @now_ns; NULL: none. One that is
 * deferred only if there is no other. */
struct process *processes_next(struct processes *processes, uint64_t now_ns);

/* A question that was not answered in time for the @late-th time, from 1 on, is asked again then: a
 * busy machine has answers soon, and what hangs takes little of the time of others. */
uint64_t process_again_ns(unsigned int late, uint64_t now_ns);

/* Whether one that is not deferred is read again soon, as it is not known as a whole. */
bool processes_lack(const struct processes *processes);

/* The process with these; NULL: it has gone meanwhile. */
struct process *processes_find(const struct processes *processes,
			       const struct tree_process *identity);

/*
 * Before its code is asked for: a descriptor, which is the caller's, of what runs under its number
 * now. It is that process for certain if its code could be read later. -errno: it has ended.
 */
int process_open(const struct process *process);

/*
 * Tells the kernel side the @len ranges of @process, by address, and that it uses @files, whose
 * array is taken over. 0; -ENOSPC: no slot is free, or can be taken from one that is deferred;
 * -errno: it has ended.
 */
int process_tell(struct processes *processes, struct process *process, int pidfd,
		 const struct code_range *ranges, size_t len, struct file **files,
		 size_t files_len);

/* How many have a slot, of CODE_PROCESSES_MAX - 1. */
size_t processes_slots(const struct processes *processes);

/* All have ended, as far as can be told here. */
void processes_forget(struct processes *processes, uint64_t now_ns);

#endif
