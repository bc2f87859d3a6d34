/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a feature is: something to be measured, with its BPF object, its tables, and the rows that
 * it fills. One file each, and a line in features.c; all others go through that table and know none
 * of them by name. README.md beside it tells how to add one.
 */
#ifndef WORKLOAD_FEATURES_FEATURE_H
#define WORKLOAD_FEATURES_FEATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"
#include "base/command.h"
#include "base/flag.h"
#include "base/log.h"
#include "base/loop.h"
#include "helpers/helper.h"
#include "http/routes.h"
#include "kernel/kernel.h"
#include "kernel/loader.h"
#include "model/ledger.h"
#include "model/snapshot.h"
#include "registry/registry.h"
#include "security/needs.h"

#define FEATURE_MAPS_MAX 2U
#define FEATURE_HELPERS_MAX 2U

/* What a feature is opened with. All is borrowed, and outlives its state. */
struct feature_env {
	struct kernel *kernel;
	const char *proc_root;
	const struct log *log;
	const struct registry *registry; /* which tree is which workload, once it has begun */
	const struct ledger *ledger; /* what workloads are called */
	const void *settings; /* what its flags have set; NULL if it keeps nothing */
	struct loop *loop; /* for what it waits for: descriptors, and dates of its own */
	struct helper *helpers[FEATURE_HELPERS_MAX]; /* its processes, if it is wanted; or NULL */
	bool on; /* all hooks of the feature that is opened are there */
};

/* A scrape in progress. */
struct collection {
	struct kernel *kernel;
	struct ledger *ledger;
	const struct registry *registry; /* which tree is which workload */
	int refreshed; /* 0: it is up to date; -ETIME, -errno: it may not be */
	struct budget budget; /* of each step that can take long */
};

/* A tree that has ended: nothing of it happens any more; or one that leaves `other`. */
struct retirement {
	struct ledger *ledger;
	ledger_handle handle; /* the workload that it was */
	uint32_t tree;
	uint64_t now_ns;
};

/*
 * Functions that are NULL have nothing to do. @state is what open has made. All of them are called
 * by the one thread of the exporter.
 */
struct feature {
	struct feature_plan plan;
	/* --collector.NAME and scrapes may name it; others go along with what they need. One that
	 * is optional is off unless the flag is given. */
	bool collector;
	bool always; /* collects for each scrape: the others rely on it */
	const char *hint; /* what --help adds to the name of a collector; NULL: nothing */
	const char *off; /* of --NAME.backend: the value that leaves an optional feature off */

	const struct flag *flags; /* in the order of --help; names begin with that of the feature */
	size_t flags_len;
	size_t settings_bytes; /* of the struct that they set, which begins as zeros */
	const struct command *commands;
	size_t commands_len;
	const struct http_route *routes; /* pages, while it is on; their arg is its state */
	size_t routes_len;
	/*
	 * Started in this order, before anything is loaded; arg: root of /proc. NULL behind the
	 * last, where it is not full.
	 */
	const struct helper_kind *helpers[FEATURE_HELPERS_MAX];
	/* Capabilities that one of @kind holds besides (helper_options), as @settings want. */
	uint64_t (*helper_holds)(const struct helper_kind *kind, const void *settings);

	/*
	 * Also called where the feature is off: another one may have made its tables. 0; then
	 * *@state NULL is as good as off; -ENOENT: there are no tables; -errno.
	 * Where it fails it has released what it took. Without it a feature that is on is asked
	 * with @state NULL.
	 */
	int (*open)(const struct feature_env *env, void **state);
	void (*close)(void *state);

	/* Adds what it measures to the ledger; 0 or -errno: its part of the scrape has failed. */
	int (*collect)(void *state, struct collection *collection);
	/* Points the snapshot to its rows, once the ledger has ended the scrape, and those that it
	 * needs have. */
	void (*show)(void *state, const struct ledger *ledger, struct snapshot *snapshot);
	/* The same for what it tells of itself, as a part of the exporter. */
	void (*show_self)(void *state, struct snapshot *snapshot);
	/* How full its tables are, a row each. Returns how many. */
	size_t (*maps)(void *state, struct map_row rows[static FEATURE_MAPS_MAX]);

	/* Folds what it has counted so far of a tree that was in `other` and gets a name. */
	void (*fold)(void *state, const struct retirement *retirement);
	/* Folds what it keeps of a tree into the ledger and frees it. 0; -EAGAIN: not all yet. */
	int (*retire)(void *state, const struct retirement *retirement);

	/*
	 * What it does after the start beyond reading maps, and whether that works with the
	 * capabilities that are effective now: 0 or -errno.
	 */
	const struct needs *needs;
	int (*try)(void *state);
};

/*
 * The workload that @row, read from a slot of @tree, belongs to. Rows of no tree (0) are those of
 * `other`, and shown once something is in them.
 */
bool collection_find(const struct collection *collection, uint32_t tree, const void *row,
		     size_t row_bytes, ledger_handle *handle);

#endif
