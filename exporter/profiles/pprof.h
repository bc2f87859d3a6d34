/* SPDX-License-Identifier: Apache-2.0 */
/* A profile in the format of pprof (profile.proto), plain and as files and clients have it. */
#ifndef WORKLOAD_PROFILES_PPROF_H
#define WORKLOAD_PROFILES_PPROF_H

#include "base/buffer.h"
#include "profiles/profile.h"

/*
 * Appends all of it. 0; -ENOMEM; the error of @out.
 *
 * A frame is a location. Its address is that of its file as linked, and each file is said to have
 * been mapped at a place of its own, as addresses of two files may be equal. A name is a function;
 * a frame without one has an address only.
 */
int pprof_write(const struct profile *profile, struct buffer *out);

/* The same, compressed with gzip. -ENOBUFS as well: it is more than PPROF_BYTES_MAX before. */
int pprof_write_gzip(const struct profile *profile, struct buffer *out);
#define PPROF_BYTES_MAX (16U << 20)

#endif
