/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes on functions of one process: a program at their entries and another at their returns.
 *
 * Since Linux 6.6 one link carries all of them (BPF_TRACE_UPROBE_MULTI), which is removed in 50 ms;
 * before, each is a perf event of its own, which takes 100 to 200 ms to remove (the kernel waits
 * for its readers, one event after the other) and, on some kernels, CAP_SYS_ADMIN to make (all
 * measured).
 */
#ifndef WORKLOAD_KERNEL_UPROBES_H
#define WORKLOAD_KERNEL_UPROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define UPROBES_MAX 8 /* functions */

struct bpf_program;
struct uprobes;

/* Where to, in the file that is called @path by the caller. */
struct uprobes_place {
	const char *path;
	size_t len; /* at most UPROBES_MAX */
	uint64_t offsets[UPROBES_MAX];
	uint64_t cookies[UPROBES_MAX];
};

/*
 * Whether this kernel has links that carry many, and keeps them to all threads of one process: from
 * 6.6 to 6.10 they were kept to one thread (46ba0e49b642). A program has to be prepared for it
 * before it is loaded.
 */
bool uprobes_are_multi(void);
void uprobes_prepare(struct bpf_program *program);

/*
 * Attaches the programs to process @pid, the returns first: a return without an entry is nothing,
 * an entry without a return lasts. 0 or -errno, with nothing attached.
 */
int uprobes_attach(const struct bpf_program *entry, const struct bpf_program *back, pid_t pid,
		   const struct uprobes_place *place, struct uprobes **out);

/* Slow. May be called in any thread. */
void uprobes_destroy(struct uprobes *uprobes);

#endif
