/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a scrape, which users call collectors: in flags, in URLs and in the label
 * `collector`. A set of them is a mask with bit 1 << part.
 */
#ifndef WORKLOAD_PARTS_H
#define WORKLOAD_PARTS_H

enum part { PART_DISCOVERY, PART_REQUESTS, PART_THREADS, PARTS };

#define PARTS_ALL ((1U << PARTS) - 1)
#define PARTS_NAMES "discovery, requests, threads" /* for messages */

const char *part_name(enum part part);

/* The part with this name, or -ENOENT. */
int part_find(const char *name);

#endif
