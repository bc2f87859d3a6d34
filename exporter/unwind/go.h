/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What frame information of Go does not say, and its conventions do
 * (src/cmd/compile/abi-internal.md, and the assembler in src/runtime of Go): where functions keep
 * their caller's frame pointer, where goroutines and threads begin, and which functions go on upon
 * another stack. These are known by their names: a program without symbols has no rules.
 */
#ifndef WORKLOAD_UNWIND_GO_H
#define WORKLOAD_UNWIND_GO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "unwind/cfi.h"

#define GO_FUNCTIONS_MAX 32
#define GO_SYMBOLS_BYTES_MAX (64U << 20) /* of .symtab: 2.8 million symbols */

struct go_function {
	uint64_t begin, end; /* addresses as linked */
	enum unwind_kind kind; /* of its rules */
};

struct go_code {
	bool is_go; /* else there is nothing more */
	bool is_named; /* it has symbols */
	bool arm64; /* where no rule says how a stack goes on upon another */
	size_t len;
	struct go_function functions[GO_FUNCTIONS_MAX];
};

/* 0 with @go; -ENOEXEC: @image is no ELF file of x86-64 or arm64. */
int go_find(const void *image, size_t bytes, struct go_code *go);

/*
 * Makes @rule, which frame information has for @address of a function with @common, what it is in
 * code of Go. False: it is none.
 */
bool go_rule(const struct go_code *go, const struct cfi_common *common, uint64_t address,
	     struct unwind_rule *rule);

/*
 * Where the row of that rule begins: a handler of signals returns to the very first byte of the
 * function that ends it, as if the byte before had called it.
 */
uint64_t go_row_begin(const struct go_code *go, uint64_t address);

#endif
