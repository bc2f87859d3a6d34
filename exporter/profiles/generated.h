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
#include "unwind/generator.h"

/* What its functions are called as long as nothing names them. */
#define GENERATED_NAME "[jit]"
#define GENERATED_NAME_UNFOLLOWED "[jit_without_frame_pointers]"

/*
 * One user more of the file of what @process generates with @generator; @told: it was told to keep
 * frame pointers. NULL: nothing is known of what it generates, or there is no room for a file.
 */
struct file *generated_use(struct files *files, const struct tree_process *process,
			   enum generator generator, bool told);

#endif
