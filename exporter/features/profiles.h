/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles, for the command that takes one without a client. */
#ifndef WORKLOAD_FEATURES_PROFILES_H
#define WORKLOAD_FEATURES_PROFILES_H

#include "features/features.h"
#include "profiles/profiler.h"

/* Borrowed from @features; NULL: the feature is off. */
struct profiler *profiles_profiler(const struct features *features);

#endif
