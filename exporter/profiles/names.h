/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the functions are called that addresses of an ELF file are in, as texts that are safe to
 * show, those of C++ and Rust as they are in the source (profiles/demangled.h). A function without
 * a symbol has the name that Go has for its tracebacks, or is told by where it begins, which its
 * frame information knows: all addresses in it are then told alike.
 */
#ifndef WORKLOAD_PROFILES_NAMES_H
#define WORKLOAD_PROFILES_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf_image.h"

#define NAMES_MAX 16384U /* addresses that are asked at once */
#define NAME_BYTES_MAX 512U /* of one; a longer one ends with NAME_CUT */
#define NAME_CUT "..."
#define NAMES_TEXTS_BYTES (2U << 20) /* of all: on average 128 for each */

struct name {
	uint32_t text; /* offset in the texts; 0: there is none */
	uint32_t bytes; /* of it, without its NUL */
	uint64_t begin; /* of the function, as linked; 0: it is not known */
};

/* In memory that the process that finds names shares with the one that asks. */
struct names {
	uint64_t addresses[NAMES_MAX]; /* as linked; they ascend */
	struct name names[NAMES_MAX]; /* of each */
	char texts[NAMES_TEXTS_BYTES]; /* UTF-8 with NUL behind each; the first is empty */
};

struct names_found {
	uint32_t texts_bytes; /* that are in use */
	uint32_t no_room; /* names that there was no room for */
	uint32_t too_large; /* not 0: a symbol table was left out (SYMBOLS_BYTES_MAX) */
	uint32_t zero;
};

struct name_texts;

/*
 * Writes the names of the @len addresses at @addresses, which is no shared memory, to @texts, in
 * which there are none yet (profiles/name_texts.h). @quick: functions that only their instructions
 * tell of are not looked for. A symbol that does not say where it ends is no name then of what may
 * be one of these, nor if there is no memory for them, or too much frame information. 0 or -ENOMEM.
 */
int names_find(const struct elf_image *image, const uint64_t *addresses, size_t len, bool quick,
	       struct name_texts *texts);

#endif
