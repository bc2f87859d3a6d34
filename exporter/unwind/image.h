/* SPDX-License-Identifier: Apache-2.0 */
/* The part of an ELF file (unwind/elf_image.h) that says how its functions are unwound. */
#ifndef WORKLOAD_UNWIND_IMAGE_H
#define WORKLOAD_UNWIND_IMAGE_H

#include <stddef.h>

#include "unwind/elf_image.h"
#include "unwind/frames.h"

/*
 * Finds the section .eh_frame of @image. 0 with @section, whose bytes are those of the image;
 * -ENODATA: it has no such section, or none of its bytes.
 */
int image_frames(const struct elf_image *image, struct frames_section *section);

/*
 * The functions of that section. 0 with @frames, which borrows from @image, and which frames_free()
 * releases, also after an error; -ENODATA: it has none; -E2BIG or -ENOMEM.
 */
int image_framed_read(const struct elf_image *image, struct frames *frames);

/* Whether there may be functions that no frame information tells of, but their instructions do. */
bool image_may_be_bare(const struct elf_image *image);

/*
 * Adds them to @frames (unwind/bare.h), which takes ten times as long. 0, or -ENOMEM: some may be
 * there.
 */
int image_bare_read(const struct elf_image *image, struct frames *frames);

/*
 * Reads that section, and what there is room for of other functions: of a program of Go those of
 * its own table (unwind/go.h), else those of .debug_frame, as C may have been told to write only
 * that, and those that their instructions tell of. 0 with @frames, which borrows from @bytes, and
 * which frames_free() releases, also after an error; -ENOEXEC: as elf_image_open(); -ENODATA: there
 * is none of these; -E2BIG or -ENOMEM.
 */
int image_frames_read(const void *bytes, size_t len, struct frames *frames);

#endif
