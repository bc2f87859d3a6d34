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

#include "abi/unwind.h"
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

/* What tells of functions, which is their `code`. */
enum frames_told {
	FRAMES_PROGRAM, /* a program (unwind/cfi.h) */
	FRAMES_STEPS, /* steps of a function of Go (unwind/pclntab.h), or `kind` alone */
	FRAMES_POINTER, /* nothing: they keep a frame pointer (unwind/generator.h) */
	FRAMES_RULES, /* what is known of them already: each a struct frames_rule */
};

struct frames_common {
	uint64_t at; /* offset in the section: they are in that order */
	bool bad; /* it was not understood */
	enum frames_told told;
	uint32_t kind; /* of FRAMES_STEPS: of all of their rules, UNWIND_CFA if steps tell */
	struct cfi_common cfi;
};

/* From @address on @rule holds, up to that of the next. */
struct frames_rule {
	uint64_t address; /* as linked */
	struct unwind_rule rule;
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
	struct frames_rule *rules; /* owned; of functions that are told by them */
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

/* Leaves out those that are told so. Whether there were any. */
bool frames_leave_out(struct frames *frames, enum frames_told told);

/* The index of the first that begins behind @address, or how many there are. */
size_t frames_behind(const struct frames *frames, uint64_t address);

void frames_free(struct frames *frames);

#endif
