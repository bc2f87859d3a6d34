/* SPDX-License-Identifier: Apache-2.0 */
/* All flags: those of the exporter, and where these have a place for them, those of its features.
 */
#ifndef WORKLOAD_CONFIG_FLAGS_H
#define WORKLOAD_CONFIG_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/flag.h"

#define FLAG_OWN (-1)
#define FLAG_COLLECTORS "@COLLECTORS@" /* in a help text: where their names go */

/* A walk through all of them in the order of --help. Zeroed: before the first. */
struct flags_walk {
	const struct flag *flag; /* at hand */
	int feature; /* the index of the one that it belongs to; FLAG_OWN: the exporter itself */
	size_t own, next_feature, next; /* where to go on */
};

/* Goes on to the next flag; false: there is none. */
bool flags_next(struct flags_walk *walk);

/*
 * Whether @flag stands for two of each collector, --collector.NAME and --no-collector.NAME, which
 * are made of the names of features.
 */
static inline bool flag_is_per_collector(const struct flag *flag)
{
	return !flag->set && !flag->show && !flag->backend;
}

#endif
