/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

int program_info_read(const struct bpf_program *program, struct bpf_prog_info *info)
{
	__u32 len = sizeof(*info);
	int fd = bpf_program__fd(program);

	memset(info, 0, sizeof(*info));
	if (fd < 0)
		return fd;
	return bpf_obj_get_info_by_fd(fd, info, &len) ? -errno : 0;
}

size_t programs_read(struct bpf_program *const *programs, const struct probe_row *probes,
		     size_t len, struct program_row *rows)
{
	struct bpf_prog_info info;
	size_t read = 0;

	for (size_t i = 0; i < len; i++) {
		if (program_info_read(programs[i], &info))
			continue;
		rows[read++] = (struct program_row){
			.program = probes[i].probe,
			.run_ns = info.run_time_ns,
			.runs = info.run_cnt,
		};
	}
	return read;
}
