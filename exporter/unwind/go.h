/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of Go: by the table that its own tracebacks use (unwind/pclntab.h), and by what else these
 * know (src/runtime/traceback.go, src/cmd/compile/abi-internal.md, and the assembler in
 * src/runtime): where functions keep their caller's frame pointer, where goroutines and threads
 * begin, and which functions go on upon another stack.
 */
#ifndef WORKLOAD_UNWIND_GO_H
#define WORKLOAD_UNWIND_GO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "unwind/elf_image.h"
#include "unwind/frames.h"

/*
 * Adds its functions to @frames, whose `code` are steps then. 0; -ENODATA: it has no table, or one
 * that is not understood; -E2BIG or -ENOMEM.
 */
int go_frames_read(const struct elf_image *image, const struct cfi_machine *machine,
		   struct frames *frames);

/* What holds where the stack pointer has moved by @bytes, in a function with @common. */
struct unwind_rule go_rule(const struct frames_common *common, int64_t bytes);

#endif
