/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that exist several times at their hook (bpf/lib/spares.h): which kernels need the
 * spares, and how many events none of the copies was free for.
 */
#ifndef WORKLOAD_KERNEL_SPARES_H
#define WORKLOAD_KERNEL_SPARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_object;
struct bpf_program;
struct btf;

/*
 * Whether programs at tracepoints can be preempted on this kernel: since Linux 7.0, told by @types,
 * its description of its own types (BTF); false if there is none (NULL).
 */
bool spares_are_needed(const struct btf *types);

/* Before loading: the spares of @object shall not be loaded (bpf_program__autoload() tells). */
void spares_leave_out(struct bpf_object *object);

/*
 * Of the programs, as an object lists them (copies after what they are copies of), how many events
 * were skipped because all copies were running on the same CPU. @preempted: spares_are_needed().
 * Then it is for each hook the least that any copy has skipped (recursion_misses of struct
 * bpf_prog_info), which can only be too many. Without that a copy for softirqs has seen what the
 * program has not: nothing else interrupts it.
 */
uint64_t spares_skipped(struct bpf_program *const *programs, size_t len, bool preempted);

#endif
