/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/view.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t view_length(const struct view *view, size_t elements)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (elements * view->element_bytes + page - 1) / page * page;
}

int view_open(struct view *view, const struct loader *loader, const char *name,
	      size_t element_bytes)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	int fd = loader_map_fd(loader, name);

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return -errno;
	if (info.value_size != element_bytes || element_bytes % 8)
		return -EPROTO;
	*view = (struct view){
		.fd = fd,
		.entries = info.max_entries,
		.element_bytes = element_bytes,
	};
	return 0;
}

void view_close(struct view *view)
{
	if (view->base)
		munmap(view->base, view_length(view, view->mapped));
	*view = (struct view){ .fd = -1 };
}

/* Maps at least @elements, doubling, so that a growing table is mapped anew only seldom. */
static int view_grow(struct view *view, size_t elements)
{
	size_t goal = view->mapped ? view->mapped : 1;
	void *base;

	while (goal < elements)
		goal *= 2;
	if (goal > view->entries)
		goal = view->entries;
	base = mmap(NULL, view_length(view, goal), PROT_READ | PROT_WRITE, MAP_SHARED, view->fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	if (view->base)
		munmap(view->base, view_length(view, view->mapped));
	view->base = base;
	view->mapped = goal;
	return 0;
}

void *view_at(struct view *view, size_t index)
{
	if (index >= view->entries)
		return NULL;
	if (index >= view->mapped && view_grow(view, index + 1))
		return NULL;
	return view->base + index * view->element_bytes;
}

void *view_all(struct view *view)
{
	return view_at(view, view->entries - 1) ? view->base : NULL;
}
