/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of x86-64 that no frame information tells of: those of a C library that is built
 * without, as musl, and what is written in assembler. How they move the stack is told by their
 * instructions (unwind/flow.h). Where they begin is told by symbols, by the entry point of the
 * program, and by what is found there: functions that these call, and addresses that they take or
 * that are moved with the program, where what is there is understood as a function.
 */
#ifndef WORKLOAD_UNWIND_BARE_H
#define WORKLOAD_UNWIND_BARE_H

#include "unwind/cfi.h"
#include "unwind/elf_image.h"
#include "unwind/frames.h"

#define BARE_RULES_MAX (256U << 10) /* of all functions */

/*
 * Adds them to @frames, which are all others of @image. 0 or -ENOMEM: then some may be there. What
 * there are more than the limits is left out, and what is not understood.
 */
int bare_frames_read(const struct elf_image *image, const struct cfi_machine *machine,
		     struct frames *frames);

#endif
