/* SPDX-License-Identifier: Apache-2.0 */
#include "features/features.h"

#include "base/units.h"

extern const struct feature feature_discovery, feature_requests, feature_threads, feature_mutex,
	feature_profiles;

/* In this order they are loaded, collected and shown: what needs another one comes after it. */
const struct feature *const features_table[] = {
	&feature_discovery, &feature_requests, &feature_threads, &feature_mutex, &feature_profiles,
};
const size_t features_len = COUNT(features_table);
_Static_assert(COUNT(features_table) <= LOADER_FEATURES_MAX,
	       "the loader has no room for more features");
