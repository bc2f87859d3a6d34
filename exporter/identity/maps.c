/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "identity/proc.h"

/* address perms offset dev inode name */
int maps_line_split(char *line, struct maps_line *out)
{
	struct maps_line split = { 0 };
	char perms[5] = "";
	int len = 0;

	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 "%n",
		   &split.begin, &split.end, perms, &split.offset, &split.dev_major,
		   &split.dev_minor, &split.inode, &len) != 7 ||
	    strlen(perms) != 4)
		return -EINVAL;
	split.executable = perms[2] == 'x';
	split.name = line + len + strspn(line + len, " ");
	*out = split;
	return 0;
}

/*
 * What the name leads to is looked at before it is opened: opening a device may do something, and
 * opening a FIFO or a file with a lease may wait. And closing a file that a process serves waits
 * for that process, also when it is killed (fs/fuse/file.c).
 */
static int regular_open(int dir_fd, const char *name, int flags, uint64_t inode)
{
	_cleanup_(cleanup_close) int place = openat(dir_fd, name, O_PATH | O_CLOEXEC | flags);
	char path[32];
	struct statfs system;
	struct stat stat;
	int fd;

	if (place < 0 || fstat(place, &stat) || fstatfs(place, &system))
		return -errno;
	if (system.f_type == FUSE_SUPER_MAGIC)
		return -EOPNOTSUPP;
	if (!S_ISREG(stat.st_mode) || (inode && stat.st_ino != inode))
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int below_open(int dir_fd, const char *path, uint64_t inode)
{
	char below[sizeof("root") + PROC_PATH_LEN];
	int len = snprintf(below, sizeof(below), "root%s", path);

	if (len < 0 || (size_t)len >= sizeof(below))
		return -ENAMETOOLONG;
	return regular_open(dir_fd, below, O_NOFOLLOW, inode);
}

/* A link in the root of another would be followed from the reader's. */
static int folder_open(int dir_fd, const char *name, int flags)
{
	return openat(dir_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
}

int maps_open_below(int dir_fd, const char *folder, const char *name)
{
	_cleanup_(cleanup_close) int root = folder_open(dir_fd, "root", 0), below = -1;

	if (root < 0)
		return -errno;
	below = folder_open(root, folder, O_NOFOLLOW);
	return below < 0 ? -errno : regular_open(below, name, O_NOFOLLOW, 0);
}

/* The part of @path behind that of the root of the process, which it begins with; NULL: does not.
 */
static const char *path_below(int dir_fd, const char *path)
{
	char root[PROC_PATH_LEN];
	ssize_t len = readlinkat(dir_fd, "root", root, sizeof(root));

	if (len <= 1 || (size_t)len >= sizeof(root) || strncmp(path, root, (size_t)len) != 0)
		return NULL;
	return path[len] == '/' ? path + len : NULL;
}

/*
 * After a mere chroot(2) the kernel shows paths from the reader's root: where the process may be
 * in a folder that the reader may not go through.
 */
int maps_open(int dir_fd, const char *path, uint64_t inode)
{
	int fd = below_open(dir_fd, path, inode);
	const char *below = fd == -ENOENT ? path_below(dir_fd, path) : NULL;

	if (below)
		fd = below_open(dir_fd, below, inode);
	return fd == -ENOENT ? regular_open(dir_fd, path, O_NOFOLLOW, inode) : fd;
}

int maps_open_executable(int dir_fd, uint64_t inode)
{
	return regular_open(dir_fd, "exe", 0, inode);
}
