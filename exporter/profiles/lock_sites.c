/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/lock_sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "profiles/contended.h"

#define TURN_NS (10 * NS_PER_S) /* at least, until samples are too old to be shared out */
#define ROWS_MAX (LEDGER_WORKLOADS_MAX * (LOCK_SITES_SHOWN + 1))
#define POOL_KEY_BYTES 512U

struct workload {
	struct contended contended;
	UT_hash_handle hh;
	char name[];
};

/* The exact time of a pool, as of the last scrape that has read it. */
struct pool_time {
	uint64_t sum_ns;
	bool seen;
	UT_hash_handle hh;
	char key[];
};

struct lock_sites {
	struct lock_places places;
	struct workload *by_name;
	struct pool_time *pools;
	struct lock_site_row *rows;
	size_t rows_len, rows_size;
	uint64_t shared_ns, turned_ns; /* when that was last */
};

/* --- workloads ------------------------------------------------------------------------------ */

/* NULL: there is no room for one more. */
static struct contended *contended_at(struct lock_sites *sites, const char *name)
{
	struct workload *workload;
	size_t len = strlen(name);

	HASH_FIND(hh, sites->by_name, name, len, workload);
	if (workload)
		return &workload->contended;
	if (HASH_COUNT(sites->by_name) >= LEDGER_WORKLOADS_MAX)
		return NULL;
	workload = calloc(1, sizeof(*workload) + len + 1);
	if (!workload)
		return NULL;
	memcpy(workload->name, name, len);
	HASH_ADD(hh, sites->by_name, name, len, workload);
	if (workload->hh.tbl)
		return &workload->contended;
	free(workload);
	return NULL;
}

static void workload_free(struct lock_sites *sites, struct workload *workload)
{
	HASH_DEL(sites->by_name, workload);
	contended_clear(&workload->contended);
	free(workload);
}

/* --- samples come --------------------------------------------------------------------------- */

void lock_sites_add(struct lock_sites *sites, const struct files *files, const char *workload,
		    const struct stack_key *key, const struct stack *stack)
{
	struct contended *contended = contended_at(sites, workload);
	struct lock_place place;
	bool known = lock_places_meet(&sites->places, files, key, stack, &place);
	uint64_t ns = stack->ns + stack->queued_ns; /* as in the exact time */

	if (known && lock_wait_lasts(stack))
		ns = lock_places_hold(&sites->places, key, ns);
	else if (known)
		ns += lock_places_release(&sites->places, key);
	/* Of a wait that only begins the place is known in time. */
	if (contended && ns)
		contended_add(contended, &sites->places, known ? &place : NULL, ns);
}

bool lock_sites_lack(const struct lock_sites *sites)
{
	return sites->places.code.unnamed;
}

bool lock_sites_ask(struct lock_sites *sites, const struct files *files, struct survey_wish *wish)
{
	return call_sites_ask(&sites->places.code, files, wish);
}

void lock_sites_named(struct lock_sites *sites, struct survey_wish *wish)
{
	struct workload *workload, *next;

	call_sites_take(&sites->places.code, wish);
	HASH_ITER (hh, sites->by_name, workload, next) {
		contended_named(&workload->contended, &sites->places);
	}
}

/* --- a scrape ------------------------------------------------------------------------------- */

/* What the time of a pool has grown by. One that was not there before begins at 0. */
static uint64_t pool_growth(struct lock_sites *sites, const struct pool_row *row)
{
	struct pool_time *pool;
	char key[POOL_KEY_BYTES];
	uint64_t sum_ns = row->mutex.sum_ns, before_ns;
	int len = snprintf(key, sizeof(key), "%s\n%s\n%s", row->workload, row->role, row->pool);

	if (len >= (int)sizeof(key))
		len = sizeof(key) - 1;
	HASH_FIND(hh, sites->pools, key, (size_t)len, pool);
	if (!pool) {
		pool = calloc(1, sizeof(*pool) + (size_t)len + 1);
		if (!pool)
			return 0;
		memcpy(pool->key, key, (size_t)len);
		HASH_ADD(hh, sites->pools, key, (size_t)len, pool);
		if (!pool->hh.tbl) {
			free(pool);
			return 0;
		}
	}
	before_ns = pool->sum_ns;
	pool->sum_ns = sum_ns;
	pool->seen = true;
	return sum_ns < before_ns ? sum_ns : sum_ns - before_ns;
}

static void pools_forget(struct lock_sites *sites, bool all)
{
	struct pool_time *pool, *next;

	HASH_ITER (hh, sites->pools, pool, next) {
		if (all || !pool->seen) {
			HASH_DEL(sites->pools, pool);
			free(pool);
		} else {
			pool->seen = false;
		}
	}
}

static void pools_grow(struct lock_sites *sites, const struct pool_row *pools, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t growth_ns = pool_growth(sites, &pools[i]);
		struct contended *contended = growth_ns ? contended_at(sites, pools[i].workload)
							: NULL;

		if (contended)
			contended->growth_ns += growth_ns;
	}
	pools_forget(sites, false);
}

/* --- rows ----------------------------------------------------------------------------------- */

static void row_add(struct lock_sites *sites, const struct workload *workload, const char *text,
		    uint64_t wait_ns)
{
	struct lock_site_row *rows = array_grow(sites->rows, sites->rows_len, &sites->rows_size,
						ROWS_MAX, sizeof(*rows));

	if (!rows)
		return;
	sites->rows = rows;
	rows[sites->rows_len++] = (struct lock_site_row){ workload->name, text, wait_ns };
}

static int rows_order(const void *a, const void *b)
{
	const struct lock_site_row *one = a, *other = b;
	int order = strcmp(one->workload, other->workload);

	return order ? order : strcmp(one->site, other->site);
}

static void rows_make(struct lock_sites *sites)
{
	const struct workload *workload, *next;

	sites->rows_len = 0;
	HASH_ITER (hh, sites->by_name, workload, next) {
		const struct contended *contended = &workload->contended;
		size_t before = sites->rows_len;

		for (size_t i = 0; i < contended->len; i++)
			if (contended->sites[i].shown)
				row_add(sites, workload, contended->sites[i].text,
					contended->sites[i].wait_ns);
		if (contended->other_ns || sites->rows_len > before)
			row_add(sites, workload, LEDGER_OTHER_TEXT, contended->other_ns);
	}
	if (sites->rows_len)
		qsort(sites->rows, sites->rows_len, sizeof(*sites->rows), rows_order);
}

static void workloads_share(struct lock_sites *sites, uint64_t now_ns)
{
	bool turn = now_ns - sites->turned_ns >= TURN_NS;
	struct workload *workload, *next;

	HASH_ITER (hh, sites->by_name, workload, next) {
		contended_share(&workload->contended, &sites->places, now_ns - sites->shared_ns,
				turn);
	}
	sites->shared_ns = now_ns;
	if (turn)
		sites->turned_ns = now_ns;
}

void lock_sites_share(struct lock_sites *sites, const struct ledger *ledger,
		      const struct pool_row *pools, size_t len, uint64_t now_ns)
{
	struct workload *workload, *next;

	HASH_ITER (hh, sites->by_name, workload, next) {
		if (!ledger_has(ledger, workload->name))
			workload_free(sites, workload);
	}
	if (len) {
		pools_grow(sites, pools, len);
		workloads_share(sites, now_ns);
	}
	rows_make(sites);
}

const struct lock_site_row *lock_sites_rows(const struct lock_sites *sites, size_t *len)
{
	*len = sites->rows_len;
	return sites->rows;
}

/* --- start and end -------------------------------------------------------------------------- */

struct lock_sites *lock_sites_new(void)
{
	return calloc(1, sizeof(struct lock_sites));
}

void lock_sites_free(struct lock_sites *sites)
{
	struct workload *workload, *next;

	if (!sites)
		return;
	HASH_ITER (hh, sites->by_name, workload, next) {
		workload_free(sites, workload);
	}
	pools_forget(sites, true);
	lock_places_free(&sites->places);
	free(sites->rows);
	free(sites);
}
