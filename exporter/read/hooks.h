/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hooks this kernel has, as its description of its own types (BTF) tells.
 */
#ifndef WORKLOAD_READ_HOOKS_H
#define WORKLOAD_READ_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

struct btf;

/* Reads the kernel's types: some milliseconds and megabytes. 0 or -errno. */
int hooks_open(struct btf **types);
void hooks_close(struct btf **types);

/*
 * Whether @types have the hook of a program's @section: tp_btf/NAME or iter/NAME. Of other kinds of
 * hook the types do not tell: true.
 */
bool hooks_have(const struct btf *types, const char *section);

/* @section in words, as in "tracepoint sk_data_ready" or "iterator task_file". */
void hooks_describe(const char *section, char *out, size_t size);

#endif
