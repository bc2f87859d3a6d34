/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of features, and those that are open. A set of features is a mask with bit 1 << index.
 */
#ifndef WORKLOAD_FEATURES_FEATURES_H
#define WORKLOAD_FEATURES_FEATURES_H

#include <stdbool.h>
#include <stddef.h>

#include "features/feature.h"

/* In features.c. */
extern const struct feature *const features_table[];
extern const size_t features_len;

/* The index of the feature with this name; -ENOENT. */
int features_find(const char *name);

/* All that scrapes may ask for, which users call collectors; and those that measure by themselves.
 */
unsigned int features_collectors(void);
unsigned int features_measuring(void);

/* Of the collectors those that are on unless a flag says otherwise. */
unsigned int features_defaults(void);

/* Those that no flag turns off: what collects for each scrape, and what is neither a collector nor
 * optional. */
unsigned int features_always(void);

/* Their names, "discovery, requests, threads", for messages. Returns @out. */
char *features_names(unsigned int mask, char *out, size_t size);
#define FEATURES_NAMES_BYTES (LOADER_FEATURES_MAX * 32)

/* What the loader is told: fills all but privileges and the root of /proc. */
void features_plan(struct loader_options *options, unsigned int wanted);

struct features {
	const struct loader *loader; /* borrowed */
	bool open[LOADER_FEATURES_MAX]; /* those that are asked for anything */
	void *states[LOADER_FEATURES_MAX]; /* owned; what open has made of those */
	/* Owned; of those that are wanted, as their kinds are in the table. */
	struct helper *helpers[LOADER_FEATURES_MAX][FEATURE_HELPERS_MAX];
};

/* A helper that has not started. */
struct features_failure {
	const struct feature *feature;
	const struct helper_kind *kind;
};

/*
 * Starts the helpers of the features in @wanted, into zeroed @features: before anything is loaded.
 * @options: all but the kind; @settings: of each feature. 0; -errno with @failure: then some may
 * run, which close ends.
 */
int features_help(struct features *features, unsigned int wanted,
		  const struct helper_options *options, void *const *settings,
		  struct features_failure *failure);

/*
 * Opens those that are on, and those whose tables are there; @settings is that of each. 0 or
 * -errno; then some may be open all the same.
 */
int features_open(struct features *features, const struct feature_env *env, void *const *settings);
/* Zeroed ones are nothing. */
void features_close(struct features *features);

/* Kernel memory that each socket and thread (QUOTA_) takes, with those that are on. */
void features_bytes(const struct features *features, uint32_t bytes[static QUOTAS]);

/* Whether the feature has all its hooks and is open. */
bool features_on(const struct features *features, size_t feature);

/* Of all that are open: fold and retire of feature.h. 0; -EAGAIN: not all of the tree yet. */
void features_fold(const struct features *features, const struct retirement *retirement);
int features_retire(const struct features *features, const struct retirement *retirement);

/* Whether a feature has a page of this path, be it on or off. */
bool features_have_page(const char *path);

/* Adds the pages of those that are on. 0; as http_routes_add(). */
int features_routes(const struct features *features, struct http_routes *routes);

/* How many descriptors the features of @wanted may have open, if they are many. */
unsigned int features_descriptors(unsigned int wanted);

/* What the feature needs after the start, if it is on; NULL: nothing. */
const struct needs *features_needs(const struct features *features, size_t feature);

/* Whether that works with the capabilities that are effective now. 0 or -errno. */
int features_try(const struct features *features, size_t feature);

#endif
