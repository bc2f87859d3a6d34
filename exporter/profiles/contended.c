/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/contended.h"

#include <stdlib.h>
#include <string.h>

#define UNNAMED_MAX 1024U /* places that wait for their names */

/* What was sampled at a place that has no name yet. */
struct unnamed {
	struct lock_place place;
	uint64_t ns;
	UT_hash_handle hh;
};

/* --- what was sampled ----------------------------------------------------------------------- */

static uint64_t sampled_ns(const struct sampled *sampled)
{
	return sampled->fresh_ns + sampled->old_ns;
}

/* Up to @ns of it is shared out. */
static void sampled_take(struct sampled *sampled, uint64_t ns)
{
	uint64_t old_ns = ns < sampled->old_ns ? ns : sampled->old_ns;

	sampled->old_ns -= old_ns;
	ns -= old_ns;
	sampled->fresh_ns -= ns < sampled->fresh_ns ? ns : sampled->fresh_ns;
}

static void sampled_turn(struct sampled *sampled)
{
	sampled->old_ns = sampled->fresh_ns;
	sampled->fresh_ns = 0;
}

/* --- sites ---------------------------------------------------------------------------------- */

/* How long was waited there lately. */
static double site_rank(const struct lock_site *site)
{
	return site->recent_ns + (double)sampled_ns(&site->sampled);
}

/* Of those that are @shown, or are not, the one with the highest or the @least rank; NULL: none. */
static struct lock_site *site_pick(struct contended *contended, bool shown, bool least)
{
	struct lock_site *picked = NULL;

	for (size_t i = 0; i < contended->len; i++) {
		struct lock_site *site = &contended->sites[i];

		if (site->shown == shown &&
		    (!picked || (site_rank(site) < site_rank(picked)) == least))
			picked = site;
	}
	return picked;
}

/* A place for one more: where there is none that of the least. */
static struct lock_site *site_make_room(struct contended *contended)
{
	struct lock_site *site;

	if (contended->len < LOCK_SITES_KNOWN)
		return &contended->sites[contended->len++];
	site = site_pick(contended, false, true);
	contended->elsewhere.fresh_ns += sampled_ns(&site->sampled);
	free(site->text);
	return site;
}
_Static_assert(LOCK_SITES_SHOWN < LOCK_SITES_KNOWN, "no site can come to be shown");

/* NULL without memory. */
static struct lock_site *site_at(struct contended *contended, const char *text)
{
	struct lock_site *site;
	char *own;

	for (size_t i = 0; i < contended->len; i++)
		if (!strcmp(contended->sites[i].text, text))
			return &contended->sites[i];
	own = strdup(text);
	if (!own)
		return NULL;
	site = site_make_room(contended);
	*site = (struct lock_site){ .text = own };
	return site;
}

/* --- samples come --------------------------------------------------------------------------- */

static bool unnamed_add(struct contended *contended, const struct lock_place *place, uint64_t ns)
{
	struct unnamed *unnamed;

	HASH_FIND(hh, contended->unnamed, place, sizeof(*place), unnamed);
	if (!unnamed && HASH_COUNT(contended->unnamed) < UNNAMED_MAX) {
		unnamed = calloc(1, sizeof(*unnamed));
		if (!unnamed)
			return false;
		unnamed->place = *place;
		HASH_ADD(hh, contended->unnamed, place, sizeof(unnamed->place), unnamed);
		if (!unnamed->hh.tbl) {
			free(unnamed);
			return false;
		}
	}
	if (unnamed)
		unnamed->ns += ns;
	return unnamed;
}

/* False: the place has no name yet. */
static bool place_add(struct contended *contended, const struct lock_places *places,
		      const struct lock_place *place, uint64_t ns)
{
	char text[CALL_SITE_BYTES];
	enum lock_place_name name = lock_place_text(places, place, text);
	struct lock_site *site = name == LOCK_PLACE_NAMED ? site_at(contended, text) : NULL;

	if (site)
		site->sampled.fresh_ns += ns;
	else if (name != LOCK_PLACE_ASKED)
		contended->elsewhere.fresh_ns += ns;
	return name != LOCK_PLACE_ASKED;
}

void contended_add(struct contended *contended, const struct lock_places *places,
		   const struct lock_place *place, uint64_t ns)
{
	if (!place ||
	    (!place_add(contended, places, place, ns) && !unnamed_add(contended, place, ns)))
		contended->elsewhere.fresh_ns += ns;
}

void contended_named(struct contended *contended, const struct lock_places *places)
{
	struct unnamed *unnamed, *next;

	HASH_ITER (hh, contended->unnamed, unnamed, next) {
		if (!place_add(contended, places, &unnamed->place, unnamed->ns))
			continue;
		HASH_DEL(contended->unnamed, unnamed);
		free(unnamed);
	}
}

static void unnamed_free(struct contended *contended)
{
	struct unnamed *unnamed, *next;

	HASH_ITER (hh, contended->unnamed, unnamed, next) {
		HASH_DEL(contended->unnamed, unnamed);
		free(unnamed);
	}
}

/* --- a scrape ------------------------------------------------------------------------------- */

static void site_show(struct lock_site *site, bool shown)
{
	site->shown = shown;
	site->wait_ns = 0;
}

/* Which are shown from now on. */
static void sites_choose(struct contended *contended)
{
	size_t shown = 0;

	for (size_t i = 0; i < contended->len; i++)
		shown += contended->sites[i].shown;
	for (size_t i = 0; i < LOCK_SITES_SHOWN; i++) {
		struct lock_site *best = site_pick(contended, false, false);
		struct lock_site *least = site_pick(contended, true, true);

		if (!best || site_rank(best) <= 0)
			return;
		if (shown == LOCK_SITES_SHOWN) {
			if (site_rank(best) <= LOCK_SITES_MORE * site_rank(least))
				return;
			site_show(least, false);
			shown--;
		}
		site_show(best, true);
		shown++;
	}
}

/* What is to be shared out does not wait for names. */
static void unnamed_give_up(struct contended *contended)
{
	struct unnamed *unnamed, *next;

	HASH_ITER (hh, contended->unnamed, unnamed, next) {
		contended->elsewhere.fresh_ns += unnamed->ns;
	}
	unnamed_free(contended);
}

static uint64_t part_of(uint64_t growth_ns, const struct sampled *sampled, uint64_t sum_ns)
{
	return sum_ns ? (uint64_t)((unsigned __int128)growth_ns * sampled_ns(sampled) / sum_ns) : 0;
}

/* Shares the growth out. What no site has is that of `other`. */
static void growth_share(struct contended *contended)
{
	uint64_t growth_ns = contended->growth_ns, sum_ns = sampled_ns(&contended->elsewhere);

	for (size_t i = 0; i < contended->len; i++)
		sum_ns += sampled_ns(&contended->sites[i].sampled);
	sampled_take(&contended->elsewhere, part_of(growth_ns, &contended->elsewhere, sum_ns));
	contended->other_ns += growth_ns;
	contended->growth_ns = 0;
	for (size_t i = 0; i < contended->len; i++) {
		struct lock_site *site = &contended->sites[i];
		uint64_t part_ns = part_of(growth_ns, &site->sampled, sum_ns);

		sampled_take(&site->sampled, part_ns);
		site->recent_ns += (double)part_ns;
		if (!site->shown)
			continue;
		site->wait_ns += part_ns;
		contended->other_ns -= part_ns;
	}
}

static void sites_age(struct contended *contended, uint64_t passed_ns)
{
	double left = passed_ns < LOCK_SITES_TAU_NS
			      ? 1.0 - (double)passed_ns / (double)LOCK_SITES_TAU_NS
			      : 0;

	for (size_t i = 0; i < contended->len; i++)
		contended->sites[i].recent_ns *= left;
}

static void contended_turn(struct contended *contended)
{
	for (size_t i = 0; i < contended->len; i++)
		sampled_turn(&contended->sites[i].sampled);
	sampled_turn(&contended->elsewhere);
}

void contended_share(struct contended *contended, const struct lock_places *places,
		     uint64_t passed_ns, bool turn)
{
	contended_named(contended, places);
	if (contended->growth_ns)
		unnamed_give_up(contended);
	sites_age(contended, passed_ns);
	growth_share(contended);
	sites_choose(contended); /* last: a counter begins at 0 */
	if (turn)
		contended_turn(contended);
}

void contended_clear(struct contended *contended)
{
	unnamed_free(contended);
	for (size_t i = 0; i < contended->len; i++)
		free(contended->sites[i].text);
	*contended = (struct contended){ 0 };
}
