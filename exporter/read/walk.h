/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks: iterator programs of the kernel side that user space runs, over descriptors, tasks,
 * sockets and connections. Which programs make up a walk depends on the request backend that is
 * loaded.
 */
#ifndef WORKLOAD_READ_WALK_H
#define WORKLOAD_READ_WALK_H

#include <stdbool.h>

#include "abi/mutex.h"

struct bpf_link;
struct bpf_program;

enum walk { WALK_LISTENERS, WALK_CONNECTIONS, WALK_TASKS, WALK_SOCKETS, WALK_PROCESSES };

#define WALK_PROGRAMS 8

/* What the program of WALK_PROCESSES writes; the other walks write nothing. */
typedef void (*walk_row_fn)(void *arg, const struct mutex_process *process);

struct walks {
	struct bpf_link *links[WALK_PROGRAMS]; /* owned; NULL where a program is not attached */
};

bool walk_is_program(const char *program);

/* The map that @program goes through, by name; NULL if it goes through none. */
const char *walk_program_map(const char *program);

/* Makes @program, which is one, ready to run; @map_fd is that of its map, if it has one. 0 or
 * -errno. */
int walks_attach(struct walks *walks, const struct bpf_program *program, int map_fd);
void walks_detach(struct walks *walks, const char *program);
void walks_detach_all(struct walks *walks);

/*
 * Runs all programs of @walk to their end; @row, which may be NULL, is called with what they write.
 * 0; -EOPNOTSUPP if none is attached; -errno.
 */
int walks_run(const struct walks *walks, enum walk walk, walk_row_fn row, void *arg);

#endif
