/* SPDX-License-Identifier: Apache-2.0 */
/* The part of an ELF file (unwind/elf_image.h) that says how its functions are unwound. */
#ifndef WORKLOAD_UNWIND_IMAGE_H
#define WORKLOAD_UNWIND_IMAGE_H

#include <stddef.h>

#include "unwind/frames.h"

/*
 * Finds the section .eh_frame of the ELF file in @image. 0 with @section, whose bytes are those of
 * the image; -ENOEXEC: no ELF file of x86-64 or arm64 (64 bits, little endian); -ENODATA: it has no
 * such section, or none of its bytes.
 */
int image_frames(const void *image, size_t bytes, struct frames_section *section);

/*
 * Reads that section, and what there is room for of other functions: of a program of Go those of
 * its own table (unwind/go.h), else those of .debug_frame, as C may have been told to write only
 * that. 0 with @frames, which borrows from the image, and which frames_free() releases, also after
 * an error; -ENOEXEC: as above; -ENODATA: there is neither; -E2BIG or -ENOMEM.
 */
int image_frames_read(const void *image, size_t bytes, struct frames *frames);

#endif
