/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile in the format of pprof (profile.proto), of this exporter or of another program, as a
 * file has it: compressed with gzip, or not. All of it is hostile.
 */
#ifndef WORKLOAD_PROFILES_PPROF_READ_H
#define WORKLOAD_PROFILES_PPROF_READ_H

#include <stddef.h>
#include <stdint.h>

#include "profile.pb-c.h"

#define PPROF_READ_BYTES_MAX (64U << 20) /* of the file, and of what is compressed in it */
#define PPROF_READ_MEMORY_MAX (256U << 20) /* for the messages that are made of them */

/*
 * Reads @len bytes. 0, and *@out is the caller's: pprof_free(). -EINVAL: they are no such profile;
 * -E2BIG: it is larger than these limits; -ENOMEM.
 *
 * All that a profile refers to is there then: the texts; the locations, functions and files, which
 * each have an id of their own. It has a type of values, each sample has a value of each type, and
 * none is below zero.
 */
int pprof_read(const void *bytes, size_t len, Pprof__Profile **out);
void pprof_free(Pprof__Profile *profile); /* NULL is nothing */

/* What has this id in such a profile; NULL: nothing, as where it is 0. */
const Pprof__Location *pprof_location(const Pprof__Profile *profile, uint64_t id);
const Pprof__Function *pprof_function(const Pprof__Profile *profile, uint64_t id);
const Pprof__Mapping *pprof_mapping(const Pprof__Profile *profile, uint64_t id);

#endif
