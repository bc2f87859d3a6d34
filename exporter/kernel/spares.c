/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/spares.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "kernel/programs.h"

#define SPARE "_spare" /* in the names of spares, see PROG_COPIES */
#define SOFTIRQ "_softirq" /* in those of copies that are free in a softirq */
/*
 * What holds the list of a tracepoint's programs since it no longer disables preemption
 * (include/linux/tracepoint.h, guard(srcu_fast_notrace)).
 */
#define PREEMPTIBLE_TYPE "class_srcu_fast_notrace_t"

bool spares_are_needed(const struct btf *types)
{
	return types && btf__find_by_name_kind(types, PREEMPTIBLE_TYPE, BTF_KIND_TYPEDEF) >= 0;
}

static bool program_is_spare(const struct bpf_program *program)
{
	return strstr(bpf_program__name(program), SPARE);
}

void spares_leave_out(struct bpf_object *object)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
	{
		if (program_is_spare(program))
			bpf_program__set_autoload(program, false);
	}
}

static uint64_t program_skipped(const struct bpf_program *program)
{
	struct bpf_prog_info info;

	return program_info_read(program, &info) ? 0 : info.recursion_misses;
}

uint64_t spares_skipped(struct bpf_program *const *programs, size_t len, bool preempted)
{
	uint64_t all = 0, least = 0;

	for (size_t i = 0; i < len; i++) {
		bool softirq = strstr(bpf_program__name(programs[i]), SOFTIRQ);
		uint64_t skipped = softirq && !preempted ? 0 : program_skipped(programs[i]);

		if (!softirq && !program_is_spare(programs[i])) {
			all += least;
			least = skipped;
		} else if (skipped < least) {
			least = skipped;
		}
	}
	return all + least;
}
