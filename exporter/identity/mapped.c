/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/units.h"

#define MAPS_LIMIT_BYTES (2U << 20)

/*
 * Names as the libraries have had them: the kernel shows files by their own names, not by those of
 * links. musl's dynamic linker is its C library, called libc.so where the linker is the link.
 */
static const struct {
	enum mapped_kind kind;
	bool whole; /* the name, and not just how it begins */
	const char *name;
} names[] = {
	{ MAPPED_LIBPTHREAD, false, "libpthread.so." },
	{ MAPPED_LIBPTHREAD, false, "libpthread-2." },
	{ MAPPED_GLIBC, true, "libc.so.6" },
	{ MAPPED_GLIBC, false, "libc-2." },
	{ MAPPED_MUSL, false, "ld-musl-" },
	{ MAPPED_MUSL, true, "libc.so" },
};

static int kind_of(const char *path, enum mapped_kind *kind)
{
	const char *name = text_base_name(path);

	for (size_t i = 0; i < COUNT(names); i++) {
		if (names[i].whole ? strcmp(name, names[i].name) != 0
				   : !text_has_prefix(name, names[i].name))
			continue;
		*kind = names[i].kind;
		return 0;
	}
	return -1;
}

/* proc(5): address perms offset dev inode path; a newline in a path is written as \012. */
int mapped_line(char *line, void *arg)
{
	struct mapped *mapped = arg;
	struct mapped_file *file;
	enum mapped_kind kind;
	uint64_t inode;
	char *path = strchr(line, '/'), perms[5] = "";
	bool deleted = path && text_cut_suffix(path, " (deleted)");

	mapped->any = true;
	if (!path || sscanf(line, "%*x-%*x %4s %*x %*x:%*x %" SCNu64, perms, &inode) != 2 ||
	    perms[2] != 'x' || kind_of(path, &kind))
		return 0;
	file = &mapped->files[kind];
	if (file->found || strlen(path) >= sizeof(file->path))
		return 0;
	file->found = true;
	file->inode = inode;
	file->deleted = deleted;
	text_copy(file->path, sizeof(file->path), path);
	return 0;
}

int mapped_read(int dir_fd, struct mapped *mapped)
{
	memset(mapped, 0, sizeof(*mapped));
	return proc_lines_read(dir_fd, "maps", MAPS_LIMIT_BYTES, mapped_line, mapped);
}

/*
 * @inode 0: any. What the name leads to is looked at before it is opened: opening a device may do
 * something, and opening a FIFO or a file with a lease may wait.
 */
static int regular_open(int dir_fd, const char *name, int flags, uint64_t inode)
{
	_cleanup_(cleanup_close) int place = openat(dir_fd, name, O_PATH | O_CLOEXEC | flags);
	char path[32];
	struct stat stat;
	int fd;

	if (place < 0 || fstat(place, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode) || (inode && stat.st_ino != inode))
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* After a mere chroot(2) the kernel shows paths from the reader's root. */
int mapped_open(int dir_fd, const struct mapped_file *file)
{
	char path[sizeof("root") + PROC_PATH_LEN];
	int fd;

	snprintf(path, sizeof(path), "root%s", file->path);
	fd = regular_open(dir_fd, path, O_NOFOLLOW, file->inode);
	return fd == -ENOENT ? regular_open(dir_fd, file->path, O_NOFOLLOW, file->inode) : fd;
}

int mapped_open_executable(int dir_fd)
{
	return regular_open(dir_fd, "exe", 0, 0);
}
