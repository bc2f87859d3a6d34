/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks: iterator programs of the kernel side that user space runs, over descriptors, tasks and
 * sockets. Which programs make up a walk depends on the features that are loaded.
 */
#ifndef WORKLOAD_KERNEL_WALK_H
#define WORKLOAD_KERNEL_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/discovery.h"
#include "abi/limits.h"

struct bpf_link;
struct bpf_program;

enum walk {
	WALK_LISTENERS,
	WALK_CONNECTIONS,
	WALK_TASKS,
	WALK_WAITS,
	WALK_SOCKETS,
	WALK_MEMBERS, /* threads that have state */
	WALK_PROCESSES,
	WALK_LASTING, /* waits that last */
	WALKS
};

#define WALK_PROGRAMS_MAX 80

/* A program that is run as a part of @walk. */
struct walk_program {
	const char *program;
	enum walk walk;
};

/* What the program of a walk writes: of WALK_PROCESSES a struct tree_process, of WALK_LASTING a
 * struct wait_told; the other walks write nothing. */
typedef void (*walk_row_fn)(void *arg, const void *row);

/* Whether two rows with the same number are the same program of the same process: that number was
 * not given to another one meanwhile, and it has not called exec. */
static inline bool walk_process_is(const struct tree_process *a, const struct tree_process *b)
{
	return a->start_ns == b->start_ns && a->exec_id == b->exec_id;
}

/* Zeroed: none. */
struct walks {
	const struct walk_program *programs[WALK_PROGRAMS_MAX]; /* in the order in which they run */
	size_t len;
	struct bpf_link *links[WALK_PROGRAMS_MAX]; /* owned; NULL where a program is not attached */
};

/* Adds a program, which is borrowed, behind the others, of at most WALK_PROGRAMS_MAX. */
void walks_add(struct walks *walks, const struct walk_program *program);

/* Whether a program of this name was added. */
bool walks_have(const struct walks *walks, const char *program);

/* Whether any program of @walk is attached. */
bool walks_can(const struct walks *walks, enum walk walk);

/* Makes @program, which was added, ready to run. 0 or -errno. */
int walks_attach(struct walks *walks, const struct bpf_program *program);
void walks_detach(struct walks *walks, const char *program);
void walks_detach_all(struct walks *walks);

/* Where a walk is to be carried on; all zeros: at its begin. */
struct walk_cursor {
	int at; /* which program */
	int fd; /* that is being read; 0: none */
};

/*
 * Runs all programs of @walk; @row, which may be NULL, is called with what they write. 0: to their
 * end. 1: to @until_ns (CLOCK_MONOTONIC), or somewhat later; @cursor tells where to go on.
 * -EOPNOTSUPP if none is attached; -errno. @cursor is where it began unless 1 is returned.
 */
int walks_run(const struct walks *walks, enum walk walk, struct walk_cursor *cursor,
	      uint64_t until_ns, walk_row_fn row, void *arg);

/* The walk is not carried on. */
void walk_cursor_reset(struct walk_cursor *cursor);

#endif
