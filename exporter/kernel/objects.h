/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF objects as they were compiled in: opened, with the knobs that all of them share, for the
 * loader to load.
 */
#ifndef WORKLOAD_KERNEL_OBJECTS_H
#define WORKLOAD_KERNEL_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/sizes.h"

struct bpf_object;
struct btf;

struct object {
	struct bpf_object *bpf; /* NULL: not open */
	void *skeleton;
	void (*destroy)(void *skeleton);
};

/* What all objects are told before they are loaded. */
struct object_knobs {
	struct map_sizes sizes;
	unsigned int hierarchy; /* cgroup_hierarchy.id */
	bool spares; /* those programs are kept, see spares_are_needed() */
	bool casts; /* see hooks_have_cast() */
	bool storage_refuses; /* see hooks_storage_refuses() */
	unsigned int mib_overflows, mib_deferred; /* see hooks_net_counter() */
};

/*
 * Of this machine and its kernel, whose types are @types; the sizes as map_sizes_read() leaves
 * them. 0 or -errno: of that.
 */
int object_knobs_read(struct object_knobs *knobs, const char *proc_root, const struct btf *types);

/* Opens the object of bpf/NAME.bpf.c. 0; -ENOENT if there is none; -errno, @object untouched. */
int object_open(const char *name, const struct object_knobs *knobs, struct object *object);

/* Closes it, with its programs and maps; one that is not open is nothing. */
void object_close(struct object *object);

/* How many programs of it are to be loaded; 0 if it is not open. */
size_t object_programs(const struct object *object);

/* Whether this kernel has all hooks of an open object; told without loading it. */
bool object_has_hooks(const struct object *object, const struct btf *types);

#endif
