/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel has counted of each program. */
#ifndef WORKLOAD_KERNEL_PROGRAMS_H
#define WORKLOAD_KERNEL_PROGRAMS_H

#include <stddef.h>

#include "model/snapshot.h"

struct bpf_prog_info;
struct bpf_program;

/* 0, or -errno if @program is not loaded; @info is written in any case. */
int program_info_read(const struct bpf_program *program, struct bpf_prog_info *info);

/*
 * Runs and run time of @len @programs, which are named as in @probes, into @rows (room for @len),
 * of those that are loaded. Returns how many.
 */
size_t programs_read(struct bpf_program *const *programs, const struct probe_row *probes,
		     size_t len, struct program_row *rows);

#endif
