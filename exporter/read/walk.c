/* SPDX-License-Identifier: Apache-2.0 */
#include "read/walk.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* In the order in which the programs of one walk run. */
static const struct {
	const char *program;
	enum walk walk;
	const char *map;
} walk_table[WALK_PROGRAMS] = {
	{ "discovery_listeners", WALK_LISTENERS, NULL },
	{ "discovery_connections", WALK_CONNECTIONS, NULL },
	{ "requests_adopt", WALK_CONNECTIONS, NULL },
	{ "threads_walk", WALK_TASKS, NULL },
	{ "requests_sweep", WALK_SOCKETS, "sockets" },
	{ "requests_sweep_listeners", WALK_SOCKETS, "sockets" },
	{ "requests_sweep_connections", WALK_SOCKETS, "connections" },
	{ "mutex_processes", WALK_PROCESSES, NULL },
};

static int walk_row(const char *program)
{
	for (int i = 0; i < WALK_PROGRAMS; i++)
		if (!strcmp(program, walk_table[i].program))
			return i;
	return -1;
}

bool walk_is_program(const char *program)
{
	return walk_row(program) >= 0;
}

const char *walk_program_map(const char *program)
{
	int row = walk_row(program);

	return row < 0 ? NULL : walk_table[row].map;
}

int walks_attach(struct walks *walks, const struct bpf_program *program, int map_fd)
{
	int row = walk_row(bpf_program__name(program));
	union bpf_iter_link_info info = {};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);

	if (row < 0)
		return -EINVAL;
	if (walk_table[row].map) {
		info.map.map_fd = (__u32)map_fd;
		opts.link_info = &info;
		opts.link_info_len = sizeof(info);
	}
	walks->links[row] = bpf_program__attach_iter(program, &opts);
	return walks->links[row] ? 0 : -errno;
}

void walks_detach(struct walks *walks, const char *program)
{
	int row = walk_row(program);

	if (row >= 0)
		bpf_link__destroy(TAKE_PTR(walks->links[row]));
}

void walks_detach_all(struct walks *walks)
{
	for (int i = 0; i < WALK_PROGRAMS; i++)
		bpf_link__destroy(TAKE_PTR(walks->links[i]));
}

/* The kernel gives out whole rows only: it reads up to a row that would not fit. */
static int link_run(const struct bpf_link *link, walk_row_fn row, void *arg)
{
	_cleanup_(cleanup_close) int fd = bpf_iter_create(bpf_link__fd(link));
	struct mutex_process rows[256];
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		n = read(fd, rows, sizeof(rows));
		for (ssize_t i = 0; row && i < n / (ssize_t)sizeof(*rows); i++)
			row(arg, &rows[i]);
	} while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)));
	return n < 0 ? -errno : 0;
}

int walks_run(const struct walks *walks, enum walk walk, walk_row_fn row, void *arg)
{
	int r = -EOPNOTSUPP;

	for (int i = 0; i < WALK_PROGRAMS; i++) {
		if (walk_table[i].walk != walk || !walks->links[i])
			continue;
		r = link_run(walks->links[i], row, arg);
		if (r)
			return r;
	}
	return r;
}
