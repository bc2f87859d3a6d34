/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF objects as they were compiled in: opened, with the knobs that all of them share, for the
 * loader to load.
 */
#ifndef WORKLOAD_READ_OBJECTS_H
#define WORKLOAD_READ_OBJECTS_H

#include <stdbool.h>

#include "read/sizes.h"

struct bpf_object;

enum object_id {
	OBJECT_DISCOVERY,
	OBJECT_REQUESTS,
	OBJECT_REQUESTS_SYSCALL,
	OBJECT_THREADS,
	OBJECT_MUTEX,
	OBJECTS
};

struct object {
	struct bpf_object *bpf; /* NULL: not open */
	void *skeleton;
	void (*destroy)(void *skeleton);
};

/*
 * @spares: whether those programs are kept, see spares_are_needed(). 0; -errno with @object
 * untouched.
 */
int object_open(enum object_id id, const struct map_sizes *sizes, bool spares,
		struct object *object);

/* Closes it, with its programs and maps; one that is not open is nothing. */
void object_close(struct object *object);

/* Whether this kernel has all hooks of an open object; told without loading it. */
bool object_has_hooks(const struct object *object);

#endif
