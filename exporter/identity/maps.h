/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mappings of a process, as /proc/PID/maps tells, and the files that they are of. All of it is
 * hostile: a path is only something to be opened with care.
 */
#ifndef WORKLOAD_IDENTITY_MAPS_H
#define WORKLOAD_IDENTITY_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* A line (proc(5); fs/proc/task_mmu.c, show_map_vma). */
struct maps_line {
	uint64_t begin, end;
	uint64_t offset; /* in the file */
	uint64_t inode; /* 0: of no file */
	uint32_t dev_major, dev_minor; /* of its file system, which stat(2) may tell otherwise */
	bool executable;
	char *name; /* the rest of the line: a path, "[vdso]", "" */
};

/*
 * Takes a line apart; @out points into it. 0; -EINVAL: it is none. A newline in a path is written
 * as \012, and so may be what has that for its name; a file without a name ends with " (deleted)",
 * and so may a name.
 */
int maps_line_split(char *line, struct maps_line *out);

/* Whether it is of a file with a path. */
static inline bool maps_line_has_path(const struct maps_line *line)
{
	return line->inode && *line->name == '/';
}

/*
 * Opens the file that is called @path in the root of the process (of that folder in /proc), or its
 * executable, for reading; nothing but a regular file, and nothing but the one with @inode (0:
 * any). A descriptor; -ENOENT if the name leads to another file by now; -ENAMETOOLONG; -errno. The
 * owner of the file cannot make the caller wait: -EWOULDBLOCK while there is a lease on it
 * (fcntl(2), F_SETLEASE), -EOPNOTSUPP where its file system is a process (FUSE). Others can.
 */
int maps_open(int dir_fd, const char *path, uint64_t inode);
int maps_open_executable(int dir_fd, uint64_t inode);

/*
 * The same of any file that is called @name, in @folder of the root of the process; not through
 * symbolic links, which lead elsewhere in another root.
 */
int maps_open_below(int dir_fd, const char *folder, const char *name);

#endif
