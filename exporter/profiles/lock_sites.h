/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the threads of each workload wait for locks, as counters: what the exact time of all its
 * waits (workload_mutex_wait_seconds) has grown by since the scrape before is shared out over the
 * places at which waits were sampled since then, in proportion to how long those were. So they
 * always grow by as much together, and are as right among themselves as the samples. Waits for a
 * worker's turn, which the exact time leaves out, are among these until they are known to be such.
 *
 * The LOCK_SITES_SHOWN places of a workload (lock_places.h) at which its threads wait longest are
 * shown; another one takes the place of one of them once it has LOCK_SITES_MORE times the time
 * of the last minutes. What goes is not shown any more, nor is what it has counted; what comes
 * begins at 0. All else, and what was sampled but has no place, is "other".
 *
 * One thread. Times are CLOCK_MONOTONIC.
 */
#ifndef WORKLOAD_PROFILES_LOCK_SITES_H
#define WORKLOAD_PROFILES_LOCK_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/profiles.h"
#include "model/ledger.h"
#include "model/snapshot.h"
#include "profiles/contended.h"
#include "profiles/files.h"
#include "profiles/survey.h"

struct lock_sites;

struct lock_sites *lock_sites_new(void); /* NULL without memory */
void lock_sites_free(struct lock_sites *sites); /* NULL is nothing */

/* What was sampled of waits for locks by threads of @workload. */
void lock_sites_add(struct lock_sites *sites, const struct files *files, const char *workload,
		    const struct stack_key *key, const struct stack *stack);

/* Whether there are places without a name; as call_sites_ask(), and what has become of that. */
bool lock_sites_lack(const struct lock_sites *sites);
bool lock_sites_ask(struct lock_sites *sites, const struct files *files, struct survey_wish *wish);
void lock_sites_named(struct lock_sites *sites, struct survey_wish *wish);

/*
 * A scrape, of @pools, of those workloads that @ledger has; without pools it has not read any, and
 * all is as it was.
 */
void lock_sites_share(struct lock_sites *sites, const struct ledger *ledger,
		      const struct pool_row *pools, size_t len, uint64_t now_ns);

/* By workload and place; good until the next lock_sites_share(). */
const struct lock_site_row *lock_sites_rows(const struct lock_sites *sites, size_t *len);

#endif
