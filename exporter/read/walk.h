/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks: iterator programs of the kernel side that user space runs, over descriptors, tasks,
 * sockets and connections. Which programs make up a walk depends on the request backend that is
 * loaded.
 */
#ifndef WORKLOAD_READ_WALK_H
#define WORKLOAD_READ_WALK_H

#include <stdbool.h>

struct bpf_link;
struct bpf_program;

enum walk { WALK_LISTENERS, WALK_CONNECTIONS, WALK_TASKS, WALK_SOCKETS };

#define WALK_PROGRAMS 7

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

/* Runs all programs of @walk to their end. 0; -EOPNOTSUPP if none is attached; -errno. */
int walks_run(const struct walks *walks, enum walk walk);

#endif
