/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/uprobes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

/* include/uapi/linux/bpf.h of Linux 6.6; the libbpf of today's distributions does not know it. */
#define TRACE_UPROBE_MULTI 48
#define UPROBE_MULTI_RETURN 1
struct link_create_uprobe_multi {
	__u32 prog_fd, target_fd, attach_type, flags;
	__u64 path, offsets, ref_ctr_offsets, cookies;
	__u32 cnt, multi_flags, pid, zero;
};

struct uprobes {
	struct bpf_link *links[2 * UPROBES_MAX];
	size_t len;
	int multi[2]; /* descriptors, or -1 */
};

bool uprobes_are_multi(void)
{
	struct utsname name;

	return !uname(&name) && text_release_is_since(name.release, 6, 11) == 1;
}

void uprobes_prepare(struct bpf_program *program)
{
	if (uprobes_are_multi())
		bpf_program__set_expected_attach_type(program,
						      (enum bpf_attach_type)TRACE_UPROBE_MULTI);
}

static int attach_multi(const struct bpf_program *program, pid_t pid, bool at_return,
			const struct uprobes_place *place)
{
	const struct link_create_uprobe_multi link = {
		.prog_fd = (__u32)bpf_program__fd(program),
		.attach_type = TRACE_UPROBE_MULTI,
		.path = (uintptr_t)place->path,
		.offsets = (uintptr_t)place->offsets,
		.cookies = (uintptr_t)place->cookies,
		.cnt = (__u32)place->len,
		.multi_flags = at_return ? UPROBE_MULTI_RETURN : 0,
		.pid = (__u32)pid,
	};
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof(link));

	return fd < 0 ? -errno : (int)fd;
}

static int attach_one(struct uprobes *uprobes, const struct bpf_program *program, pid_t pid,
		      bool at_return, const struct uprobes_place *place, size_t i)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = place->cookies[i],
		    .retprobe = at_return);
	struct bpf_link *link = bpf_program__attach_uprobe_opts(program, pid, place->path,
								place->offsets[i], &options);

	if (!link)
		return -errno;
	uprobes->links[uprobes->len++] = link;
	return 0;
}

static int attach_all(struct uprobes *uprobes, const struct bpf_program *program, pid_t pid,
		      bool at_return, const struct uprobes_place *place)
{
	int r = 0;

	if (bpf_program__get_expected_attach_type(program) == (int)TRACE_UPROBE_MULTI) {
		r = attach_multi(program, pid, at_return, place);
		uprobes->multi[at_return] = r < 0 ? -1 : r;
		return r < 0 ? r : 0;
	}
	for (size_t i = 0; i < place->len && !r; i++)
		r = attach_one(uprobes, program, pid, at_return, place, i);
	return r;
}

int uprobes_attach(const struct bpf_program *entry, const struct bpf_program *back, pid_t pid,
		   const struct uprobes_place *place, struct uprobes **out)
{
	struct uprobes *uprobes = calloc(1, sizeof(*uprobes));
	int r;

	if (!uprobes)
		return -ENOMEM;
	uprobes->multi[0] = uprobes->multi[1] = -1;
	r = attach_all(uprobes, back, pid, true, place);
	if (!r)
		r = attach_all(uprobes, entry, pid, false, place);
	if (r)
		uprobes_destroy(uprobes);
	else
		*out = uprobes;
	return r;
}

void uprobes_destroy(struct uprobes *uprobes)
{
	for (size_t i = 0; i < uprobes->len; i++)
		bpf_link__destroy(uprobes->links[i]);
	cleanup_close(&uprobes->multi[0]);
	cleanup_close(&uprobes->multi[1]);
	free(uprobes);
}
