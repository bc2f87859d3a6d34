/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of features as the unit tests know it: those of the exporter, and two that bring
 * nothing but a name, so that each test shows that nothing is asked of what is not there.
 */
#include "features/features.h"

extern const struct feature feature_discovery, feature_requests, feature_threads, feature_mutex;

static const struct feature feature_nothing = {
	.plan = { .name = "nothing", .optional = true },
};
static const struct feature feature_nothing_to_scrape = {
	.plan = { .name = "nothing_to_scrape", .supports = true },
	.collector = true,
};

const struct feature *const features_table[] = {
	&feature_discovery, &feature_requests, &feature_threads,
	&feature_mutex,     &feature_nothing,  &feature_nothing_to_scrape,
};
const size_t features_len = sizeof(features_table) / sizeof(features_table[0]);
