/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions that each program of Go has, for its tracebacks, and that no linker flag
 * leaves out: their names, and by how much each instruction has moved the stack pointer (Go 1.18
 * and later: src/runtime/symtab.go, src/cmd/link/internal/ld/pcln.go). The image is hostile: what
 * is read of a function is in proportion to its own entry.
 */
#ifndef WORKLOAD_UNWIND_PCLNTAB_H
#define WORKLOAD_UNWIND_PCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf_image.h"
#include "unwind/reader.h"

/* src/internal/abi/symtab.go, FuncFlag. */
#define PCLNTAB_TOP_FRAME 1U /* a stack begins there */
#define PCLNTAB_SP_WRITE 2U /* it sets the stack pointer to what its steps do not say */

struct pclntab {
	struct reader names, steps, functions; /* of the image */
	size_t len; /* functions */
	uint64_t text; /* address that functions are relative to, as linked */
	uint32_t quantum; /* bytes of the shortest instruction */
	uint32_t flag_at; /* of a function's entry */
};

struct pclntab_function {
	uint64_t begin, end; /* addresses as linked; never empty */
	struct reader name; /* up to its NUL, or to the end of the reader; may be empty */
	struct reader steps; /* empty: there are none */
	uint8_t flags;
};

/* Whether @image is a program of Go. */
bool go_is(const struct elf_image *image);

/* 0; -ENODATA: @image has none, or one that is not understood. */
int pclntab_find(const struct elf_image *image, struct pclntab *table);

/* Function @index; false: it is none. They ascend where the table is good. */
bool pclntab_function(const struct pclntab *table, size_t index, struct pclntab_function *function);

/* The function that has @address; false: none has. */
bool pclntab_search(const struct pclntab *table, uint64_t address,
		    struct pclntab_function *function);

/* From where on the stack pointer is how far below what it was when the function was called. */
struct pclntab_step {
	struct reader code;
	uint64_t begin, next; /* addresses */
	int64_t bytes;
	uint32_t quantum;
	bool begun;
};

/* @steps: of a function that begins at @begin. */
void pclntab_begin(struct reader steps, uint64_t begin, uint32_t quantum,
		   struct pclntab_step *step);

/* 1: *step is the next; 0: there is no more; -EINVAL. */
int pclntab_next(struct pclntab_step *step);

#endif
