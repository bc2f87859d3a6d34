/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's description of its own types (BTF), read when it is asked for. */
#ifndef WORKLOAD_KERNEL_TYPES_H
#define WORKLOAD_KERNEL_TYPES_H

struct btf;

struct types {
	struct btf *btf;
};

/* Valid until types_forget(); NULL if the kernel does not describe them. Takes milliseconds. */
const struct btf *types_get(struct types *types);

/* They take megabytes, which libbpf needs for itself next; may be asked for again. */
void types_forget(struct types *types);

#endif
