/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of a section .eh_frame: what functions have in common (CIE), and functions (FDE), as
 * in LSB 5.0, 10.6.1; and those of .debug_frame, as in DWARF 5, 6.4.1. The bytes are hostile.
 */
#ifndef WORKLOAD_UNWIND_FRAMES_H
#define WORKLOAD_UNWIND_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/cfi.h"
#include "unwind/reader.h"

#define FRAMES_FUNCTIONS_MAX (2U << 20) /* ClickHouse has some hundred thousand */
#define FRAMES_COMMONS_MAX (64U << 10) /* linkers keep a handful */

struct frames_section {
	const uint8_t *bytes; /* borrowed */
	size_t len;
	uint64_t address; /* that the section is linked at */
	const struct cfi_machine *machine; /* borrowed */
	bool debug; /* it is .debug_frame */
};

struct frames_common {
	uint64_t at; /* offset in the section: they are in that order */
	bool bad; /* it was not understood */
	bool go; /* of functions of Go: `code` are steps (unwind/pclntab.h), not a program */
	uint32_t kind; /* of those: of all of their rules, UNWIND_CFA if steps tell */
	bool frame_pointer; /* of functions that keep it (unwind/generator.h): `code` is nothing */
	struct cfi_common cfi;
};

struct frames_function {
	uint64_t begin, end; /* addresses as linked; never empty */
	size_t common; /* index */
	struct reader code;
};

struct frames {
	struct frames_common *commons; /* owned */
	size_t commons_len, commons_size;
	size_t commons_before; /* of sections that were read before */
	struct frames_function *functions; /* owned; by address, without overlap */
	size_t functions_len, functions_size;
	size_t bad; /* functions that were not understood, or overlap another */
	void *inflated; /* owned: bytes of a section that is compressed in its image */
};

/*
 * Reads all entries into @frames, which holds zeros or those of another section: a function that
 * both have is that of the other one. It borrows the bytes of the section, and frames_free()
 * releases the rest, also after an error. 0, -E2BIG or -ENOMEM. An entry that is not understood is
 * counted, and one that does not end within the section is the last.
 */
int frames_read(const struct frames_section *section, struct frames *frames);

/* Parts of it: what functions have in common, one, and their order, without overlap. */
int frames_add_common(struct frames *frames, const struct frames_common *common);
int frames_add(struct frames *frames, const struct frames_function *function);
void frames_order(struct frames *frames);

/* The function that has @address; NULL: none has. */
const struct frames_function *frames_find(const struct frames *frames, uint64_t address);

void frames_free(struct frames *frames);

#endif
