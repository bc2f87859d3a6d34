/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of the objects that are open: what became of each, and what holds it at its hook. */
#ifndef WORKLOAD_KERNEL_PROBES_H
#define WORKLOAD_KERNEL_PROBES_H

#include <stddef.h>

#include "kernel/hooks.h"
#include "model/snapshot.h"

struct bpf_link;
struct bpf_object;
struct bpf_program;

/* Zeroed: none. All of it is owned, but the programs, which are their objects'. */
struct probes {
	size_t len; /* of each of these: */
	struct probe_row *rows;
	char (*reasons)[HOOKS_REASON_BYTES]; /* why it is not attached; "": not known */
	struct bpf_program **programs;
	struct bpf_link **links; /* NULL: not attached, or held by a walk or a clock */
	struct program_row *runs; /* what probes_runs() read last */
	char *logs; /* the verifier's, only while loading */
};

/* Makes room for @len. 0 or -ENOMEM; probes_free() in any case. */
int probes_init(struct probes *probes, size_t len);

/*
 * Adds those programs of @object (which may be NULL) that are to be loaded, as those of @feature,
 * which is borrowed, and prepares each for loading.
 */
void probes_add(struct probes *probes, const char *feature, struct bpf_object *object);

/* What the verifier has written about a program: "" if it took it. Until probes_loaded(). */
const char *probe_log(const struct probes *probes, size_t probe);
void probes_loaded(struct probes *probes);

/* What the kernel has counted of each that is loaded, valid until the next call. */
const struct program_row *probes_runs(struct probes *probes, size_t *len);

/* In this order: objects are closed in between. */
void probes_detach(struct probes *probes);
void probes_free(struct probes *probes);

#endif
