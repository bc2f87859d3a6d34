/* SPDX-License-Identifier: Apache-2.0 */
/* What the exporter needs of its descriptors, before it opens the first one. */
#ifndef WORKLOAD_BASE_DESCRIPTORS_H
#define WORKLOAD_BASE_DESCRIPTORS_H

#include <stdint.h>

/*
 * Programs, maps, links and the like (about 110), and as many connections as may be open. Features
 * may need more.
 */
#define DESCRIPTORS_NEEDED 384U

/*
 * Opens what is closed of standard input, output and error: else a socket would get such a number,
 * and log lines would go to it. 0 or -errno.
 */
int descriptors_fill_standard(void);

/*
 * Raises the soft limit to @needed. 0; -EMFILE if the hard limit, which is then in @limit, is lower
 * and may not be raised.
 */
int descriptors_reserve(unsigned int needed, uint64_t *limit);

#endif
