/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/walk.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "abi/profiles.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define ROWS_BYTES 4096

static const size_t row_bytes[WALKS] = {
	[WALK_PROCESSES] = sizeof(struct tree_process),
	[WALK_LASTING] = sizeof(struct wait_told),
};

static int walk_row(const struct walks *walks, const char *program)
{
	for (size_t i = 0; i < walks->len; i++)
		if (!strcmp(program, walks->programs[i]->program))
			return (int)i;
	return -1;
}

void walks_add(struct walks *walks, const struct walk_program *program)
{
	walks->programs[walks->len++] = program;
}

bool walks_have(const struct walks *walks, const char *program)
{
	return walk_row(walks, program) >= 0;
}

bool walks_can(const struct walks *walks, enum walk walk)
{
	for (size_t i = 0; i < walks->len; i++)
		if (walks->programs[i]->walk == walk && walks->links[i][0])
			return true;
	return false;
}

/* @map_fd < 0: through no map. */
static int walk_attach(const struct bpf_program *program, int map_fd, struct bpf_link **link)
{
	union bpf_iter_link_info info = {};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);

	if (map_fd >= 0) {
		info.map.map_fd = (__u32)map_fd;
		opts.link_info = &info;
		opts.link_info_len = sizeof(info);
	}
	*link = bpf_program__attach_iter(program, &opts);
	return *link ? 0 : -errno;
}

int walks_attach(struct walks *walks, const struct bpf_program *program, walk_map_fn map_fd,
		 const void *arg)
{
	int row = walk_row(walks, bpf_program__name(program)), r = 0;
	struct bpf_link **links;
	const char *const *maps;

	if (row < 0)
		return -EINVAL;
	links = walks->links[row];
	maps = walks->programs[row]->maps;
	if (!maps[0])
		return walk_attach(program, -1, &links[0]);
	for (int i = 0; !r && i < WALK_MAPS_MAX && maps[i]; i++) {
		int fd = map_fd(arg, maps[i]);

		r = fd < 0 ? fd : walk_attach(program, fd, &links[i]);
	}
	return r;
}

static void links_destroy(struct bpf_link **links)
{
	for (int i = 0; i < WALK_MAPS_MAX; i++)
		bpf_link__destroy(TAKE_PTR(links[i]));
}

void walks_detach(struct walks *walks, const char *program)
{
	int row = walk_row(walks, program);

	if (row >= 0)
		links_destroy(walks->links[row]);
}

void walks_detach_all(struct walks *walks)
{
	for (size_t i = 0; i < walks->len; i++)
		links_destroy(walks->links[i]);
}

/*
 * The kernel gives out whole rows only: it reads up to a row that would not fit. What writes no
 * rows writes a byte where it can be left for a moment (bpf/lib/walks.h).
 */
static int iterator_read(int fd, size_t bytes, uint64_t until_ns, walk_row_fn row, void *arg)
{
	_Alignas(uint64_t) char rows[ROWS_BYTES];
	ssize_t n;

	do {
		n = read(fd, rows, row ? sizeof(rows) / bytes * bytes : 1);
		for (ssize_t at = 0; row && at + (ssize_t)bytes <= n; at += (ssize_t)bytes)
			row(arg, rows + at);
		if (!n || (n < 0 && errno != EINTR && errno != EAGAIN))
			return n ? -errno : 0;
	} while (clock_monotonic_ns() < until_ns);
	return 1;
}

static int link_run(const struct bpf_link *link, size_t bytes, struct walk_cursor *cursor,
		    uint64_t until_ns, walk_row_fn row, void *arg)
{
	int r;

	if (!cursor->fd) {
		r = bpf_iter_create(bpf_link__fd(link));
		if (r < 0)
			return r;
		cursor->fd = r;
	}
	r = iterator_read(cursor->fd, bytes, until_ns, row, arg);
	if (r <= 0) {
		close(cursor->fd);
		cursor->fd = 0;
	}
	return r;
}

void walk_cursor_reset(struct walk_cursor *cursor)
{
	if (cursor->fd)
		close(cursor->fd);
	*cursor = (struct walk_cursor){ 0 };
}

int walks_run(const struct walks *walks, enum walk walk, struct walk_cursor *cursor,
	      uint64_t until_ns, walk_row_fn row, void *arg)
{
	int r = -EOPNOTSUPP;

	if (row && !row_bytes[walk])
		return -EINVAL;
	for (int i = cursor->at; i < (int)walks->len * WALK_MAPS_MAX; i++) {
		const struct bpf_link *link = walks->links[i / WALK_MAPS_MAX][i % WALK_MAPS_MAX];

		if (walks->programs[i / WALK_MAPS_MAX]->walk != walk || !link)
			continue;
		cursor->at = i;
		r = link_run(link, row_bytes[walk], cursor, until_ns, row, arg);
		if (r > 0)
			return r;
		if (r)
			break;
	}
	walk_cursor_reset(cursor);
	return r;
}
