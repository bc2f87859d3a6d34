/* SPDX-License-Identifier: Apache-2.0 */
/* A profile of one workload for people, at a terminal. */
#ifndef WORKLOAD_PROFILES_REPORT_H
#define WORKLOAD_PROFILES_REPORT_H

#include "base/buffer.h"
#include "profiles/profile.h"

#define REPORT_FUNCTIONS 20U
#define REPORT_COLUMNS_MIN 40U
#define REPORT_COLUMNS_MAX 500U

/*
 * Appends what was taken; the REPORT_FUNCTIONS functions that were met most often innermost, with
 * the share of samples in themselves, and in them and what they call; and a flame graph upside
 * down, @columns wide: a box for each frame, as wide as its share, below the one that called it;
 * above all of them the thread pools. The widest are on the left; what is narrower than a column is
 * left out. No byte of a name reaches the terminal that is no character there.
 *
 * 0; -ENOMEM; the error of @out.
 */
int report_write(const struct profile *profile, const char *workload, unsigned int columns,
		 struct buffer *out);

#endif
