/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for locks of one workload: at which sites they were sampled, and how its exact time is
 * shared out over those (profiles/lock_sites.h has the rules).
 *
 * One thread.
 */
#ifndef WORKLOAD_PROFILES_CONTENDED_H
#define WORKLOAD_PROFILES_CONTENDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/units.h"
#include "profiles/lock_places.h"

#define LOCK_SITES_SHOWN 8U
#define LOCK_SITES_KNOWN 32U /* of a workload: those that are shown, and that may come to be */
#define LOCK_SITES_MORE 1.5
#define LOCK_SITES_TAU_NS (300 * NS_PER_S) /* time that has passed counts for less and less */

/*
 * Time that was sampled and is not shared out: since the last turn, and in the one before. A wait
 * is told when it ends, and what it adds to the exact time when the thread sleeps again: one turn
 * later at most, if that is to be told at all.
 */
struct sampled {
	uint64_t fresh_ns, old_ns;
};

struct lock_site {
	char *text; /* owned */
	struct sampled sampled;
	uint64_t wait_ns; /* since it is shown */
	double recent_ns; /* of the last minutes */
	bool shown;
};

struct contended {
	struct lock_site sites[LOCK_SITES_KNOWN];
	size_t len;
	struct unnamed *unnamed; /* owned */
	struct sampled elsewhere; /* at no place that is known */
	uint64_t growth_ns; /* of the exact time, since the last scrape */
	uint64_t other_ns;
};

/* What it has is released; it can be used again. */
void contended_clear(struct contended *contended);

/* So much was sampled at @place; NULL: it is not known where. */
void contended_add(struct contended *contended, const struct lock_places *places,
		   const struct lock_place *place, uint64_t ns);

/* Some places have names by now. */
void contended_named(struct contended *contended, const struct lock_places *places);

/* A scrape, @passed_ns after the one before: shares growth_ns out. @turn: after it begins another.
 */
void contended_share(struct contended *contended, const struct lock_places *places,
		     uint64_t passed_ns, bool turn);

#endif
