/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opener: a helper that reads what other processes have mapped to run, and opens the files of
 * it. It keeps the right to look at every process (CAP_SYS_PTRACE), and reads no memory but the
 * environment of a JVM. A process
 * can make it hang: then it is replaced (helpers/helper.h).
 *
 * Everything that it tells was chosen by the process that it is about, numbers of files included. A
 * file that it opens may be on any file system: reading it can hang, and its bytes can change.
 */
#ifndef WORKLOAD_PROFILES_OPENER_H
#define WORKLOAD_PROFILES_OPENER_H

#include <stdint.h>

#include "abi/unwind.h"
#include "helpers/helper.h"

#define OPENER_RANGES_MAX CODE_RANGES_MAX
#define OPENER_PATH_LEN 1024

enum opener_what {
	OPENER_MAPS, /* what can be run: ranges in the memory that is shared */
	OPENER_FILE, /* the file of a range: its descriptor */
	OPENER_PERF_MAP, /* the file in which it tells the names of what it generates, if there is
			    one */
};

struct opener_question {
	uint32_t what;
	int32_t pid; /* of the pid namespace of the root of /proc that is `arg` */
	uint64_t start_ns; /* of the process, as in identity_read(); 0: not compared */
	uint64_t begin, inode; /* of OPENER_FILE: of a range that OPENER_MAPS has told */
};

enum opener_range_kind {
	OPENER_RANGE_FILE,
	OPENER_RANGE_VDSO,
	OPENER_RANGE_ANONYMOUS, /* of no file that has a path: generated while it runs */
	OPENER_RANGE_KINDS,
};

/*
 * Mappings that can be run, one behind the other in memory and in the file. Members from offset to
 * dev_minor are those of a file, else 0.
 */
struct opener_range {
	uint64_t begin, end;
	uint64_t offset; /* of begin in the file */
	uint64_t inode; /* not 0 */
	uint64_t path_hash; /* to be compared with others */
	uint32_t dev_major,
		dev_minor; /* not always those of stat(2): btrfs, overlayfs; major not ~0 */
	uint32_t kind;
	uint32_t zero;
};
_Static_assert(sizeof(struct opener_range) == 56, "struct opener_range has a hole");

/* The memory that is shared. */
struct opener_shared {
	struct opener_range ranges[OPENER_RANGES_MAX]; /* by address */
};

/*
 * Of OPENER_MAPS: how many ranges there are, and at least how many are left out. Those of no file
 * make room for others. Whether it is a JVM that was told to keep frame pointers (profiles/jvm.h).
 * Of OPENER_FILE, with the descriptor, which only reads a regular file: what fstat(2) tells of it.
 * Times are numbers to be compared with others. The path is in the mount namespace of the process;
 * of a long one it is the end.
 *
 * Of OPENER_PERF_MAP, with such a descriptor: nothing. The file is /tmp/perf-PID.map in the root of
 * the process, with its number there, and it or root owns it; no part of the path is a link.
 *
 * Errors: -ENOENT: no perf map. -ESRCH: no such process, another one has its number, or nothing is
 * mapped (a process that was not waited for, one of the kernel, a main thread that has ended).
 * -ESTALE: the range is not there any more, or its name leads to another file, or nowhere, and it
 * is not the executable; the perf map was written before the process began. -EWOULDBLOCK: a lease
 * is on the file. -EINVAL: no such question. Other -errno: /proc or the file cannot be read.
 */
struct opener_answer {
	uint32_t len, left_out;
	uint32_t executable; /* 1: the file is what the process was started from */
	uint32_t frame_pointers; /* 1: it was told to */
	uint64_t dev, inode, bytes, mtime_ns, ctime_ns;
	char path[OPENER_PATH_LEN]; /* terminated */
};

/* `arg` is the root of /proc, terminated. */
extern const struct helper_kind opener_kind;

/*
 * Copies the ranges that an answer to OPENER_MAPS tells of out of the memory that is shared. 0,
 * with answer->len ranges that are of a kind, not empty, in the lower half of the addresses, by
 * address, and apart; -EPROTO: they are not, and @out is undefined.
 */
int opener_ranges(const struct helper *opener, const struct opener_answer *answer,
		  struct opener_range out[static OPENER_RANGES_MAX]);

#endif
