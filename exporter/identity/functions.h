/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where functions are in an ELF file, by name: what a uprobe is placed by. The file is hostile: its
 * tables are read by libelf, which checks them, and how much of them is bounded here: memory by
 * FUNCTIONS_SYMBOLS_BYTES_MAX, time by that and the length of the names that are looked for.
 *
 * One thread: libelf is not thread-safe.
 */
#ifndef WORKLOAD_IDENTITY_FUNCTIONS_H
#define WORKLOAD_IDENTITY_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#define FUNCTIONS_SYMBOLS_BYTES_MAX (64U << 20) /* a symbol table and its names */

/*
 * Looks for @names[0] to @names[@len - 1] in the dynamic symbols of the file @fd, and where those
 * do not have all of them in the symbols that stripping removes. @offsets[i] becomes the offset in
 * the file of the first instruction of @names[i], 0 if there is no such function in it (an indirect
 * function is none).
 *
 * Returns how many were found; -ENOEXEC if it is no ELF file of this machine's word size and byte
 * order; -errno.
 */
int functions_find(int fd, const char *const *names, size_t len, uint64_t *offsets);

#endif
