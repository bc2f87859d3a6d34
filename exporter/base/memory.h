/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process and what it has made in the kernel may take, and what it keeps. */
#ifndef WORKLOAD_BASE_MEMORY_H
#define WORKLOAD_BASE_MEMORY_H

#include <stdint.h>

struct memory_limit {
	uint64_t limit_bytes; /* the least of its cgroup and those above; UINT64_MAX: none */
	uint64_t used_bytes; /* by all in its cgroup, without files that the kernel may forget */
};

/*
 * Of the reader itself, by version 1 (memory.limit_in_bytes) or 2 (memory.max), from the text of
 * its file in @proc_root (self/cgroup) and the hierarchies below @cgroup_root (/sys/fs/cgroup).
 * What of the path is not there, as in a container that sees only its own cgroup, is passed over.
 * 0; -errno: nothing can be read, or no limit is known; then *@out is untouched.
 */
int memory_limit_read(const char *proc_root, const char *cgroup_root, struct memory_limit *out);

/*
 * What becomes of large blocks that are freed: they go back to the kernel at once, or stay for
 * those to come. By itself glibc keeps blocks as large as the largest that was ever freed
 * (mallopt(3), M_MMAP_THRESHOLD).
 */
void memory_return_large_blocks(void);
void memory_keep_large_blocks(void);

#endif
