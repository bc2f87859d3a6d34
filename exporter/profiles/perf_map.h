/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What functions are called that a process has generated, as it has written to a file for that: its
 * perf map (perf's description of an interface for compilers): lines of a begin and a length,
 * hexadecimal, and a name. The file grows meanwhile: of lines of the same place the last one
 * counts. All of it is hostile.
 */
#ifndef WORKLOAD_PROFILES_PERF_MAP_H
#define WORKLOAD_PROFILES_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "profiles/names.h"

#define PERF_MAP_BYTES_MAX (64U << 20) /* at its end, of a larger one: a million functions */

/*
 * As names_find(), with the @len bytes of a perf map at @map, which may change meanwhile, and
 * addresses in the process. A last line without an end is still being written, and is left out.
 * Time is in proportion to its lines and the logarithm of @asked.
 */
int perf_map_find(const void *map, size_t len, const uint64_t *addresses, size_t asked,
		  struct name_texts *texts);

#endif
