/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in its code a thread waits for a lock, told by its stack: the innermost frame that is no
 * lock's own. Of a C or C++ library no frame is one, for such a library may have no names; whether
 * a function of another file wraps locks is known once it has its name.
 *
 * What is told of a wait when it ends is told by the hash of its stack, which is remembered here.
 *
 * One thread.
 */
#ifndef WORKLOAD_PROFILES_LOCK_PLACES_H
#define WORKLOAD_PROFILES_LOCK_PLACES_H

#include <stdbool.h>

#include "abi/profiles.h"
#include "profiles/call_sites.h"

#define LOCK_FRAMES 6U /* of a stack that may be the place */
#define LOCK_STACKS_MAX 8192U /* that are remembered */

struct lock_place {
	struct place frames[LOCK_FRAMES]; /* innermost first; those that are not there are zeros */
};

struct lock_places {
	struct call_sites code;
	struct lock_stack *stacks; /* in the order in which they were met */
};

void lock_places_free(struct lock_places *places);

/* The place of the wait; false: it is not known. */
bool lock_places_meet(struct lock_places *places, const struct files *files,
		      const struct stack_key *key, const struct stack *stack,
		      struct lock_place *place);

/* Whether a wait is told that is not over; else some are, of @stack. */
static inline bool lock_wait_lasts(const struct stack *stack)
{
	return stack->end == STACK_BEGAN_BEFORE && !stack->woken && !stack->queued_ns;
}

/*
 * Waits with the stack of @key last, and so long have done so by now: kept until some are over, as
 * the exact time tells of them only then. What could not be kept; what was, and is not any more.
 */
uint64_t lock_places_hold(struct lock_places *places, const struct stack_key *key, uint64_t ns);
uint64_t lock_places_release(struct lock_places *places, const struct stack_key *key);

enum lock_place_name { LOCK_PLACE_NAMED, LOCK_PLACE_ASKED, LOCK_PLACE_FORGOTTEN };

/* Writes what it is called, as call_site_text(); or why that is not known. */
enum lock_place_name lock_place_text(const struct lock_places *places,
				     const struct lock_place *place,
				     char out[static CALL_SITE_BYTES]);

#endif
