/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions of an ELF file addresses are in, by its symbol tables: .symtab, which stripping
 * removes, and .dynsym. The image is hostile (unwind/elf_image.h): time is in proportion to its
 * tables and the logarithm of how many addresses are asked, memory to the latter. No table of names
 * is made.
 */
#ifndef WORKLOAD_PROFILES_SYMBOLS_H
#define WORKLOAD_PROFILES_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf_image.h"

#define SYMBOLS_BYTES_MAX \
	(64U << 20) /* of a table: 2.8 million symbols; their names are not read */

struct symbol {
	uint64_t begin, end; /* addresses as linked */
	uint64_t rank; /* among those that begin there the highest is taken; 0: there is none */
	bool sized; /* else it ends where the next begins, and at the end of its section */
	struct reader name; /* up to its NUL, or to the end of the reader; never empty */
};

/*
 * Finds for each of @addresses, which ascend, the function that has it: of those that say how long
 * they are the one that begins last; where there is none the one before, if that does not say it.
 * Of several that begin there the most global one: of these one whose name has fewer underscores in
 * front, and then the first in .symtab, or in .dynsym. 0 with @found[0] to @found[@len - 1], which
 * borrow from the image; -EFBIG: the same, without a table that is larger than SYMBOLS_BYTES_MAX;
 * -ENOMEM.
 */
int symbols_find(const struct elf_image *image, const uint64_t *addresses, size_t len,
		 struct symbol *found);

#endif
