/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a process has mapped to run pthread_mutex_lock from, as /proc/PID/maps tells. All
 * of it is hostile: what is found here is only a path to be opened with care.
 */
#ifndef WORKLOAD_IDENTITY_MAPPED_H
#define WORKLOAD_IDENTITY_MAPPED_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/mutex.h"
#include "identity/proc.h"

/*
 * In the order in which they are tried. libpthread comes first: up to glibc 2.33 it has the
 * functions and libc only forwards to them; since 2.34 it has none.
 */
enum mapped_kind { MAPPED_LIBPTHREAD, MAPPED_GLIBC, MAPPED_MUSL, MAPPED_KINDS };

struct mapped_file {
	bool found;
	bool deleted; /* the name leads elsewhere by now, or nowhere */
	uint64_t inode;
	char path[PROC_PATH_LEN]; /* in the mount namespace of the process; without symbolic links
				   */
};

struct mapped {
	bool any; /* anything at all: nothing is, where the main thread of a process has ended */
	struct mapped_file files[MAPPED_KINDS];
};

/* The layout of pthread_mutex_t with that library. */
static inline enum mutex_layout mapped_layout(enum mapped_kind kind)
{
	return kind == MAPPED_MUSL ? MUTEX_MUSL : MUTEX_GLIBC;
}

/*
 * Looks at one line of maps: of executable mappings, the first of each kind. Cuts the line into
 * pieces. Always 0.
 */
int mapped_line(char *line, void *mapped);

/* Reads the first 2 MiB of maps below the directory of the process. 0 or -errno. */
int mapped_read(int dir_fd, struct mapped *mapped);

/* Opens @file of the process: as maps_open(). */
int mapped_open(int dir_fd, const struct mapped_file *file);

#endif
