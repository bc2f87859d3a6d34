// SPDX-License-Identifier: Apache-2.0
/*
 * Empty programs at hooks of the kernel: what the kernel's statistics count for a program that does
 * nothing, most of which is what taking them costs.
 *
 * `floor NAME=TRACEPOINT...` attaches one of each name, says `ready`, and stays until its standard
 * input ends.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Stays loaded and attached by descriptors that are never closed. 0, or -errno. */
static int empty_attach(const char *name, const char *tracepoint)
{
	const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_RAW_TP);
	int type = libbpf_find_vmlinux_btf_id(tracepoint, BPF_TRACE_RAW_TP), program;

	if (type < 0)
		return type;
	options.attach_btf_id = (__u32)type;
	program = bpf_prog_load(BPF_PROG_TYPE_TRACING, name, "GPL", nothing,
				sizeof(nothing) / sizeof(*nothing), &options);
	if (program < 0 || bpf_raw_tracepoint_open(NULL, program) < 0)
		return -errno;
	return 0;
}

int main(int argc, char **argv)
{
	char rest[64];

	for (int i = 1; i < argc; i++) {
		char *tracepoint = strchr(argv[i], '=');
		int r = -EINVAL;

		if (tracepoint) {
			*tracepoint++ = '\0';
			r = empty_attach(argv[i], tracepoint);
		}
		if (r) {
			fprintf(stderr, "floor: %s: %s\n", argv[i], strerror(-r));
			return EXIT_FAILURE;
		}
	}
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, rest, sizeof(rest)) > 0)
		;
	return EXIT_SUCCESS;
}
