/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ELF file says of itself as a program: where its code is in the file and as linked, and
 * which build it is, and whether it generates code. The image is hostile (unwind/elf_image.h).
 */
#ifndef WORKLOAD_PROFILES_PROGRAM_H
#define WORKLOAD_PROFILES_PROGRAM_H

#include <stdint.h>

#include "unwind/elf_image.h"
#include "unwind/generator.h"

#define PROGRAM_SEGMENTS_MAX 16U /* linkers make one or two that hold code */
#define PROGRAM_BUILD_ID_MAX 20U /* bytes: SHA-1, the longest that linkers make */
#define PROGRAM_ADDRESS_END (UINT64_C(1) << 48) /* a frame has 48 bits for its address */

/* A part that is loaded to be run. Never empty; ends at or before PROGRAM_ADDRESS_END. */
struct program_segment {
	uint64_t offset; /* in the file */
	uint64_t address; /* as linked */
	uint64_t bytes; /* of the file, which may be shorter */
};

struct program {
	struct program_segment segments[PROGRAM_SEGMENTS_MAX]; /* as in the file */
	uint32_t segments_len;
	uint32_t segments_more; /* that there was no room for, or that are none */
	uint32_t generator; /* enum generator: what generates code, if the file does */
	uint32_t zero;
	uint64_t begin, end; /* of all segments, as linked; end 0: there are none */
	uint32_t build_id_len; /* 0: it has none, or one that is longer */
	uint8_t build_id[PROGRAM_BUILD_ID_MAX];
};

void program_read(const struct elf_image *image, struct program *program);

/* Whether @program can be what program_read() has made: it may come from a hostile process. */
bool program_is_sane(const struct program *program);

#endif
