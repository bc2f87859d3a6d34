/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a slot of a table goes back to the kernel side while its tree lives, in one order for all
 * tables: its key is taken away, so that nothing begins to name it; nothing names it any more; and
 * events that another CPU has begun before are over. Then what it has counted is folded, and the
 * slot is zeroed and free.
 *
 * What came to name it just when its key was taken away goes on counting in it, for as long as it
 * lives, and what comes later under that key counts in another slot: the ledger adds both to one
 * row.
 */
#ifndef WORKLOAD_FEATURES_LEAVING_H
#define WORKLOAD_FEATURES_LEAVING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * An event that has found a slot is added to it within microseconds, or once a virtual CPU that
 * stands still runs again.
 */
#define EVENTS_END_NS 50000000ULL

/* Of a slot; zeros: it is not on its way. */
struct leaving {
	uint64_t hidden_ns; /* when its key was taken away */
	uint64_t closed_ns; /* when its tree had ended, and all that names it was made stale */
	uint64_t visits; /* those that were over when nothing was found in it last, and one */
};

enum leaving_step { LEAVING_NOT, LEAVING_HIDE, LEAVING_FREE };

/*
 * What is to be done with a slot, looked at from @looked_ns on; @rests: nothing names it, nor has
 * anything since it was looked at before.
 */
static inline enum leaving_step leaving_next(const struct leaving *leaving, bool rests,
					     uint64_t looked_ns)
{
	if (!rests)
		return LEAVING_NOT;
	if (!leaving->hidden_ns)
		return LEAVING_HIDE;
	return looked_ns >= leaving->hidden_ns + EVENTS_END_NS ? LEAVING_FREE : LEAVING_NOT;
}

/*
 * Whether a slot rests that is looked at now, and was before: @empty, nothing is in it; @visits,
 * how many have been in it and have left.
 */
static inline bool leaving_rests(struct leaving *leaving, bool empty, uint64_t visits)
{
	bool rests = empty && leaving->visits == visits + 1;

	leaving->visits = empty ? visits + 1 : 0;
	return rests;
}

#endif
