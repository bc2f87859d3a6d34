/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two profiles of one kind side by side, as of a service before and after it was changed: which
 * functions take more, or less, in each second.
 */
#ifndef WORKLOAD_PROFILES_DIFFERENCE_H
#define WORKLOAD_PROFILES_DIFFERENCE_H

#include "base/buffer.h"
#include "profiles/pprof_read.h"

#define DIFFERENCE_FUNCTIONS 20U

enum difference_side { BEFORE, AFTER, DIFFERENCE_SIDES };

struct difference;

struct difference *difference_new(void); /* NULL without memory */
void difference_free(struct difference *difference); /* NULL is nothing */

/*
 * Adds a profile as pprof_read() leaves it, once for each side, that before first: what it is of is
 * its default type of values, or its last one; it is not needed afterwards.
 *
 * 0; -EINVAL: it does not say how long it took; -EMEDIUMTYPE: it is of something else than the one
 * before, by the names of its values: those of waits for locks and of all waits but for a CPU are
 * alike; -ENOMEM.
 */
int difference_add(struct difference *difference, enum difference_side side,
		   const Pprof__Profile *profile);

/*
 * Appends how much there is of both, whose names are @names, and the DIFFERENCE_FUNCTIONS functions
 * that have changed most in themselves, and those with what they call: per second, so that profiles
 * of different lengths can be compared. Of CPU time there are samples, the number of which varies
 * by chance: a change that is less than twice what is to be expected of it has a mark. A function
 * is known by its name and the name of its file. No byte of a name reaches a terminal that is no
 * character there. 0 or the error of @out.
 */
int difference_write(struct difference *difference, const char *const names[DIFFERENCE_SIDES],
		     struct buffer *out);

#endif
