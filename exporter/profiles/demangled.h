/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions of C++ (Itanium C++ ABI, 5.1) and of Rust (both of its manglings; RFC 2603) as
 * they are in the source, by libiberty, which knows them as binutils and perf do.
 */
#ifndef WORKLOAD_PROFILES_DEMANGLED_H
#define WORKLOAD_PROFILES_DEMANGLED_H

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLED_BYTES_MAX 1024U /* of a mangled name: libiberty refuses longer ones of C++ */

/*
 * What the function @name is called, without its parameters, the type that it returns, and what a
 * compiler has added to a part of it (`.isra.0`, `.cold`): as much as there is room for in the
 * @size bytes at @out. False: it is not mangled, or in no way that is known; @out holds anything.
 * It may take time without end: parts of a name refer to others, and are read and written as often.
 */
bool demangled(const char *name, char *out, size_t size);

#endif
