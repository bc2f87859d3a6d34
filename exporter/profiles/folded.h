/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, as flame graphs are drawn from: a line for each, outermost frame first, and the
 * count: "workload;pool;state;main;work;hash 42".
 */
#ifndef WORKLOAD_PROFILES_FOLDED_H
#define WORKLOAD_PROFILES_FOLDED_H

#include "base/buffer.h"
#include "profiles/profile.h"

/* Appends all of it; what goes wrong is in out->error. */
void folded_write(const struct profile *profile, struct buffer *out);

/*
 * Appends what a frame is called: its name; else its file and address, "libc.so.6+0x1f2a3"; else,
 * of no file, the address. Characters that would end a frame or a line become '_'.
 */
void folded_frame(const struct profile *profile, uint64_t frame, struct buffer *out);

#endif
