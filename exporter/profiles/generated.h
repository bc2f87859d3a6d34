/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that a process generates while it runs is of no file: one stands for it, which has the
 * addresses of the process. So its frames are kept like any others, and followed by frame pointers
 * where it has them.
 */
#ifndef WORKLOAD_PROFILES_GENERATED_H
#define WORKLOAD_PROFILES_GENERATED_H

#include <stdbool.h>
#include <stddef.h>

#include "abi/discovery.h"
#include "profiles/files.h"
#include "profiles/opener.h"

/* What its functions are called as long as nothing names them. */
#define GENERATED_NAME "[jit]"
#define GENERATED_NAME_UNFOLLOWED "[jit_without_frame_pointers]"
#define GENERATED_NAME_DENIED "[jit_map_unreadable]"

/* The process that @file, which stands for what it generates, is of: number, begin and exec. */
struct tree_process generated_process(const struct file *file);

/* What functions of @file, which has a path, are called that have no names. */
const char *generated_name(const struct file *file);

/*
 * What a process has mapped of no file, of its @len @ranges, is of the file of what it generates,
 * if one of its @range_files is known to do so: each place there is one user more of that. @told:
 * it was told to keep frame pointers.
 */
void generated_take(struct files *files, const struct tree_process *process, bool told,
		    const struct opener_range *ranges, struct file **range_files, size_t len);

#endif
