/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ledger_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "model/ledger_row.h"

#define SHOWN_STEP 8 /* rows by which the array that is shown grows and shrinks */
#define LEAVE_AT_ONCE 8 /* keys that end their detour in one scrape */

struct ledger_detoured {
	struct ledger_row_key key;
	struct ledger_owner *owner; /* of the key */
	struct ledger_detour detour;
	UT_hash_handle hh;
};

/* --- rows ---------------------------------------------------------------------------------- */

/* There is one row `other` of each role; of rows with two labels both are. */
static bool key_is_other(const struct ledger_row_key *key)
{
	return !strcmp(key->label, LEDGER_OTHER_TEXT) &&
	       (!*key->second || !strcmp(key->second, LEDGER_OTHER_TEXT));
}

static bool rows_fit(const struct ledger_rows *table, const struct ledger_owner *owner,
		     const struct ledger_row_key *key)
{
	return HASH_COUNT(table->rows) < table->kind->rows_max &&
	       (key_is_other(key) ||
		owner->shares[table->kind->index].rows < table->kind->share_max);
}

/* @row, which fits, is one of the table; false without memory. */
static bool rows_enter(struct ledger_rows *table, struct ledger_row *row)
{
	HASH_ADD(hh, table->rows, key, sizeof(row->key), row);
	if (!row->hh.tbl)
		return false;
	row->owner->shares[table->kind->index].rows += !key_is_other(&row->key);
	return true;
}

/* NULL if it does not fit or there is no memory. */
static struct ledger_row *rows_insert(struct ledger_rows *table, struct ledger_owner *owner,
				      const struct ledger_row_key *key)
{
	_cleanup_(ledger_row_freep) struct ledger_row *row = NULL;

	if (!rows_fit(table, owner, key))
		return NULL;
	row = ledger_row_new(table->kind, owner, key);
	if (!row || !rows_enter(table, row))
		return NULL;
	return TAKE_PTR(row);
}

static void rows_delete(struct ledger_rows *table, struct ledger_row *row)
{
	row->owner->shares[table->kind->index].rows -= !key_is_other(&row->key);
	HASH_DEL(table->rows, row);
	ledger_row_free(row);
}

/* In workload `other` all are one. */
static struct ledger_row_key rows_key(const struct ledger_rows *table,
				      const struct ledger_owner *owner,
				      const struct ledger_labels *labels)
{
	if (owner == table->other->owner)
		return table->other->key;
	return ledger_row_key(table->kind, owner, labels);
}

/* --- detours ------------------------------------------------------------------------------- */

/* More parts in one scrape than were counted and still live: one of them is new. */
static void detour_add(struct ledger_rows *table, struct ledger_detour *detour)
{
	detour->idle.live = true;
	if (++detour->parts <= detour->counted)
		return;
	detour->counted = detour->parts;
	table->full++;
}

static void detour_fold(struct ledger_rows *table, struct ledger_detour *detour)
{
	detour->idle.since_ns = 0;
	if (detour->counted)
		detour->counted--;
	else
		table->full++;
}

static void detour_begin(struct ledger_detour *detour)
{
	ledger_row_free(detour->own);
	detour->own = NULL;
	detour->idle.live = false;
	detour->parts = 0;
}

/* NULL if too many are remembered or there is no memory. */
static struct ledger_detour *detour_remember(struct ledger_rows *table, struct ledger_owner *owner,
					     const struct ledger_row_key *key)
{
	_cleanup_(cleanup_free) struct ledger_detoured *detoured = NULL;

	if (HASH_COUNT(table->detoured) >= LEDGER_DETOURS_MAX)
		return NULL;
	detoured = calloc(1, sizeof(*detoured));
	if (!detoured)
		return NULL;
	detoured->key = *key;
	detoured->owner = owner;
	HASH_ADD(hh, table->detoured, key, sizeof(detoured->key), detoured);
	return detoured->hh.tbl ? &TAKE_PTR(detoured)->detour : NULL;
}

static void detour_forget(struct ledger_rows *table, struct ledger_detoured *detoured)
{
	detoured->detour.row->detours--;
	ledger_row_free(detoured->detour.own);
	HASH_DEL(table->detoured, detoured);
	free(detoured);
}

/* The detour that @key is on, by itself or with all that is new in a crowded workload, or NULL. */
static struct ledger_detour *detour_find(struct ledger_rows *table, struct ledger_owner *owner,
					 const struct ledger_row_key *key)
{
	struct ledger_detour *crowd = &owner->shares[table->kind->index].crowd;
	struct ledger_detoured *detoured;

	HASH_FIND(hh, table->detoured, key, sizeof(*key), detoured);
	if (detoured)
		return &detoured->detour;
	return crowd->row ? crowd : NULL;
}

/*
 * Where @full, which does not fit, goes: row `other` of its workload (and role) or, if that has no
 * room, of all.
 */
static struct ledger_row *rows_overflow(struct ledger_rows *table, struct ledger_owner *owner,
					const struct ledger_row_key *full)
{
	const struct ledger_labels other = { .number = table->kind->numbers ? full->number : 0 };
	const struct ledger_row_key key = rows_key(table, owner, &other);
	struct ledger_row *row;
	struct ledger_detour *detour;

	HASH_FIND(hh, table->rows, &key, sizeof(key), row);
	if (row)
		return row;
	detour = detour_find(table, owner, &key);
	row = detour ? detour->row : rows_insert(table, owner, &key);
	return row ? row : table->other;
}

static struct ledger_detour *rows_divert(struct ledger_rows *table, struct ledger_owner *owner,
					 const struct ledger_row_key *key)
{
	struct ledger_row *row = rows_overflow(table, owner, key);
	struct ledger_detour *detour = detour_remember(table, owner, key);

	if (!detour)
		detour = &owner->shares[table->kind->index].crowd;
	detour->row = row;
	row->detours++;
	return detour;
}

/* --- interface ----------------------------------------------------------------------------- */

bool ledger_idle_over(struct ledger_idle *idle, uint64_t now_ns, uint64_t grace_ns)
{
	if (idle->live)
		idle->since_ns = 0;
	else if (idle->since_ns == 0)
		idle->since_ns = now_ns ? now_ns : 1;
	else
		return now_ns > idle->since_ns && now_ns - idle->since_ns > grace_ns;
	return false;
}

/* The row of @key, made if there is room, or the one it is diverted to; NULL if neither. */
static struct ledger_row *rows_find(struct ledger_rows *table, struct ledger_owner *owner,
				    const struct ledger_row_key *key, struct ledger_detour **detour)
{
	struct ledger_row *row;

	*detour = NULL;
	HASH_FIND(hh, table->rows, key, sizeof(*key), row);
	if (row)
		return row;
	*detour = detour_find(table, owner, key);
	return *detour ? (*detour)->row : rows_insert(table, owner, key);
}

void ledger_rows_add(struct ledger_rows *table, struct ledger_owner *owner,
		     const struct ledger_labels *labels, const void *part)
{
	const struct ledger_row_key key = rows_key(table, owner, labels);
	struct ledger_detour *detour;
	struct ledger_row *row = rows_find(table, owner, &key, &detour);

	if (!row) {
		detour = rows_divert(table, owner, &key);
		row = detour->row;
	}
	if (detour)
		detour_add(table, detour);
	if (detour && detour->own)
		ledger_row_add(table->kind, detour->own, part);
	ledger_row_add(table->kind, row, part);
}

void ledger_rows_fold(struct ledger_rows *table, struct ledger_owner *owner,
		      const struct ledger_labels *labels, const void *part)
{
	const struct ledger_row_key key = rows_key(table, owner, labels);
	struct ledger_detour *detour;
	struct ledger_row *row = rows_find(table, owner, &key, &detour);

	if (detour)
		detour_fold(table, detour);
	if (!row) {
		row = rows_overflow(table, owner, &key);
		table->full++;
	}
	if (ledger_row_fold(table->kind, row, part) < 0)
		table->full++;
}

bool ledger_rows_crowded(const struct ledger_rows *table)
{
	return HASH_COUNT(table->rows) > table->kind->rows_max - table->kind->rows_max / 8;
}

/* --- the end of a detour -------------------------------------------------------------------- */

/*
 * What lives and is on a detour gets a row of its own once there is room. Its values are those
 * since its trees were founded, and have been shown in the row `other`: they stay there, and the
 * new row counts from 0. For that a scrape adds the parts to both.
 */
static void detours_prepare(struct ledger_rows *table)
{
	struct ledger_detoured *detoured, *next;
	unsigned int left = LEAVE_AT_ONCE;

	HASH_ITER (hh, table->detoured, detoured, next) {
		struct ledger_detour *detour = &detoured->detour;

		detour_begin(detour);
		if (!left || !detour->counted || key_is_other(&detoured->key) ||
		    !rows_fit(table, detoured->owner, &detoured->key))
			continue;
		detour->own = ledger_row_new(table->kind, detoured->owner, &detoured->key);
		left -= detour->own != NULL;
	}
}

/* Whether it is over: only if the scrape has found all its parts, or one would count in both. */
static bool detour_leave(struct ledger_rows *table, struct ledger_detoured *detoured)
{
	struct ledger_detour *detour = &detoured->detour;
	struct ledger_row *own;
	int r;

	if (!detour->own || !detour->parts || detour->parts != detour->counted ||
	    !rows_fit(table, detoured->owner, &detoured->key) || !rows_enter(table, detour->own))
		return false;
	own = detour->own;
	detour->own = NULL;
	r = ledger_row_split(table->kind, detour->row, own);
	if (r)
		rows_delete(table, own);
	return !r;
}

void ledger_rows_begin(struct ledger_rows *table)
{
	struct ledger_row *row, *next;

	HASH_ITER (hh, table->rows, row, next)
		ledger_row_begin(table->kind, row);
	detours_prepare(table);
}

void ledger_owner_begin(struct ledger_owner *owner, unsigned int kind)
{
	detour_begin(&owner->shares[kind].crowd);
}

static ledger_word *rows_shown(const struct ledger_rows *table, size_t index)
{
	return table->shown + index * table->kind->words;
}

void ledger_rows_clamp(struct ledger_rows *table, bool read, uint64_t now_ns)
{
	struct ledger_row *row, *next;

	HASH_ITER (hh, table->rows, row, next) {
		const ledger_word *shown;

		if (row->shown_at == LEDGER_NOT_SHOWN) {
			row->taken_ns = now_ns;
			ledger_row_lift(table->kind, row, NULL);
			continue;
		}
		shown = rows_shown(table, row->shown_at);
		if (read)
			table->torn += ledger_row_doubt(table->kind, row, shown, now_ns);
		ledger_row_lift(table->kind, row, shown);
	}
}

static int shown_resize(struct ledger_rows *table, size_t capacity)
{
	ledger_word *shown;

	if (capacity == table->shown_capacity)
		return 0;
	shown = reallocarray(table->shown, capacity, table->kind->words * sizeof(*shown));
	if (!shown)
		return -ENOMEM;
	table->shown = shown;
	table->shown_capacity = capacity;
	return 0;
}

static size_t shown_wanted(const struct ledger_rows *table)
{
	return (HASH_COUNT(table->rows) + LEAVE_AT_ONCE + SHOWN_STEP - 1) / SHOWN_STEP * SHOWN_STEP;
}

int ledger_rows_reserve(struct ledger_rows *table)
{
	size_t wanted = shown_wanted(table);

	return wanted > table->shown_capacity ? shown_resize(table, wanted) : 0;
}

void ledger_owner_end(struct ledger_owner *owner, unsigned int kind, bool read, uint64_t now_ns,
		      uint64_t grace_ns)
{
	struct ledger_detour *crowd = &owner->shares[kind].crowd;
	bool over = crowd->row && read && ledger_idle_over(&crowd->idle, now_ns, grace_ns);

	if (!crowd->row || !(over || owner->removed))
		return;
	crowd->row->detours--;
	*crowd = (struct ledger_detour){ 0 };
}

/* Detours first: the row that one leads to stays until it is over. */
void ledger_rows_remove(struct ledger_rows *table, bool read, uint64_t now_ns, uint64_t grace_ns)
{
	struct ledger_detoured *detoured, *next_detoured;
	struct ledger_row *row, *next;

	HASH_ITER (hh, table->detoured, detoured, next_detoured) {
		if ((read && (ledger_idle_over(&detoured->detour.idle, now_ns, grace_ns) ||
			      detour_leave(table, detoured))) ||
		    detoured->owner->removed)
			detour_forget(table, detoured);
	}
	HASH_ITER (hh, table->rows, row, next) {
		bool over = read && ledger_idle_over(&row->idle, now_ns, grace_ns) &&
			    !row->detours && row != table->other;

		if (over || row->owner->removed)
			rows_delete(table, row);
	}
}

void ledger_rows_show(struct ledger_rows *table)
{
	struct ledger_row *row, *next;

	table->shown_len = 0;
	HASH_SRT(hh, table->rows, ledger_row_compare);
	HASH_ITER (hh, table->rows, row, next) {
		if (!row->used)
			continue;
		row->shown_at = table->shown_len++;
		memcpy(rows_shown(table, row->shown_at), row->sum,
		       table->kind->words * sizeof(row->sum[0]));
	}
	(void)shown_resize(table, shown_wanted(table)); /* too large does no harm */
}

void ledger_rows_hide(struct ledger_rows *table)
{
	table->shown_len = 0; /* what was shown stays behind it: counters are held against that */
}

bool ledger_rows_other_used(const struct ledger_rows *table)
{
	return table->other->used;
}

int ledger_rows_init(struct ledger_rows *table, const struct ledger_row_kind *kind,
		     struct ledger_owner *other)
{
	const struct ledger_labels labels = { 0 };
	const struct ledger_row_key key = ledger_row_key(kind, other, &labels);

	table->kind = kind;
	table->other = rows_insert(table, other, &key);
	return table->other ? ledger_rows_reserve(table) : -ENOMEM;
}

void ledger_rows_free(struct ledger_rows *table)
{
	struct ledger_detoured *detoured, *next_detoured;
	struct ledger_row *row, *next;

	HASH_ITER (hh, table->detoured, detoured, next_detoured)
		detour_forget(table, detoured);
	HASH_ITER (hh, table->rows, row, next)
		rows_delete(table, row);
	free(table->shown);
}
