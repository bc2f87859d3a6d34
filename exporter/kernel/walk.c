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
		if (walks->programs[i]->walk == walk && walks->links[i])
			return true;
	return false;
}

int walks_attach(struct walks *walks, const struct bpf_program *program)
{
	int row = walk_row(walks, bpf_program__name(program));

	if (row < 0)
		return -EINVAL;
	walks->links[row] = bpf_program__attach_iter(program, NULL);
	return walks->links[row] ? 0 : -errno;
}

void walks_detach(struct walks *walks, const char *program)
{
	int row = walk_row(walks, program);

	if (row >= 0)
		bpf_link__destroy(TAKE_PTR(walks->links[row]));
}

void walks_detach_all(struct walks *walks)
{
	for (size_t i = 0; i < walks->len; i++)
		bpf_link__destroy(TAKE_PTR(walks->links[i]));
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
	for (int i = cursor->at; i < (int)walks->len; i++) {
		if (walks->programs[i]->walk != walk || !walks->links[i])
			continue;
		cursor->at = i;
		r = link_run(walks->links[i], row_bytes[walk], cursor, until_ns, row, arg);
		if (r > 0)
			return r;
		if (r)
			break;
	}
	walk_cursor_reset(cursor);
	return r;
}
