/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* an element that could not be added has hh.tbl == NULL */
#include <uthash.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ledger.h"

#define NOT_SHOWN SIZE_MAX

/*
 * Endpoint and pool rows are handled alike: two texts, then words, of which one run is counters and
 * one is gauges. Words are added and compared one by one, so a counter that is added to a row in
 * snapshot.h is carried along once the sizes below say so.
 */
#define WORD_OF(type, member) (offsetof(type, member) / sizeof(ledger_word))

struct ledger_row_kind {
	size_t words; /* of the whole row */
	size_t counters; /* first ledger_word */
	size_t counters_len;
	size_t gauges;
	size_t gauges_len;
	size_t maximum; /* gauge whose maximum counts; 0: none */
	unsigned int rows_max;
	unsigned int bit; /* in ledger_owner.crowded */
};

#define ENDPOINT_COUNTERS (4 * sizeof(struct hist) / sizeof(ledger_word) + STAGES + IO_MODELS + 4)
#define ENDPOINT_GAUGES 6
#define POOL_COUNTERS (STATES + 2 + 3 * sizeof(struct hist) / sizeof(ledger_word))

const struct ledger_row_kind ledger_endpoint_rows = {
	.words = sizeof(struct endpoint_row) / sizeof(ledger_word),
	.counters = WORD_OF(struct endpoint_row, queue),
	.counters_len = ENDPOINT_COUNTERS,
	.gauges = WORD_OF(struct endpoint_row, queued),
	.gauges_len = ENDPOINT_GAUGES,
	.maximum = WORD_OF(struct endpoint_row, oldest_queued_ns),
	.rows_max = LEDGER_ENDPOINTS_MAX,
	.bit = 1,
};

const struct ledger_row_kind ledger_pool_rows = {
	.words = sizeof(struct pool_row) / sizeof(ledger_word),
	.counters = WORD_OF(struct pool_row, thread_ns),
	.counters_len = POOL_COUNTERS,
	.gauges = WORD_OF(struct pool_row, threads),
	.gauges_len = STATES,
	.rows_max = LEDGER_POOLS_MAX,
	.bit = 2,
};

_Static_assert(WORD_OF(struct endpoint_row, queue) == 2 && offsetof(struct endpoint_row, port) == 8,
	       "two texts begin struct endpoint_row");
_Static_assert(WORD_OF(struct endpoint_row, queued) == 2 + ENDPOINT_COUNTERS,
	       "a member was added between or behind the counters of struct endpoint_row");
_Static_assert(sizeof(struct endpoint_row) == 8 * (2 + ENDPOINT_COUNTERS + ENDPOINT_GAUGES),
	       "a member was added to the gauges of struct endpoint_row");
_Static_assert(WORD_OF(struct pool_row, threads) == 2 && offsetof(struct pool_row, pool) == 8,
	       "two texts begin struct pool_row");
_Static_assert(WORD_OF(struct pool_row, thread_ns) == 2 + STATES,
	       "a member was added to the gauges of struct pool_row");
_Static_assert(sizeof(struct pool_row) == 8 * (2 + STATES + POOL_COUNTERS),
	       "a member was added to the counters of struct pool_row");

struct row_key { /* compared as bytes: no hole, zeros behind the label */
	uint32_t owner; /* its id */
	uint32_t port; /* 0 for pools */
	char label[LEDGER_LABEL_LEN];
};

struct ledger_row {
	struct row_key key;
	const struct ledger_owner *owner;
	size_t shown_at; /* index among the rows shown, or NOT_SHOWN */
	bool used;
	UT_hash_handle hh;
	ledger_word values[]; /* twice kind->words: the base, then this scrape's sum */
};

static ledger_word *row_sum(const struct ledger_rows *table, struct ledger_row *row)
{
	return row->values + table->kind->words;
}

static ledger_word *rows_shown(const struct ledger_rows *table, size_t index)
{
	return table->shown + index * table->kind->words;
}

static void row_add_counters(const struct ledger_row_kind *kind, ledger_word *into,
			     const ledger_word *part)
{
	for (size_t i = kind->counters; i < kind->counters + kind->counters_len; i++)
		into[i] += part[i];
}

static void row_add_gauges(const struct ledger_row_kind *kind, ledger_word *into,
			   const ledger_word *part)
{
	for (size_t i = kind->gauges; i < kind->gauges + kind->gauges_len; i++) {
		if (i != kind->maximum)
			into[i] += part[i];
		else if (into[i] < part[i])
			into[i] = part[i];
	}
}

static void row_clamp(const struct ledger_row_kind *kind, ledger_word *sum,
		      const ledger_word *shown)
{
	for (size_t i = kind->counters; i < kind->counters + kind->counters_len; i++) {
		if (sum[i] < shown[i])
			sum[i] = shown[i];
	}
}

/* The base carries the texts: they come along whenever it is copied. */
static struct ledger_row *row_new(const struct ledger_rows *table, const struct ledger_owner *owner,
				  const struct row_key *key)
{
	struct ledger_row *row =
		calloc(1, sizeof(*row) + 2 * table->kind->words * sizeof(ledger_word));
	const char *texts[2];

	if (!row)
		return NULL;
	row->key = *key;
	row->owner = owner;
	row->shown_at = NOT_SHOWN;
	texts[0] = owner->name;
	texts[1] = row->key.label;
	memcpy(row->values, texts, sizeof(texts));
	memcpy(row_sum(table, row), texts, sizeof(texts));
	return row;
}

/* NULL if the table is full (a place is kept for row `other`) or there is no memory. */
static struct ledger_row *rows_insert(struct ledger_rows *table, const struct ledger_owner *owner,
				      const struct row_key *key)
{
	_cleanup_(cleanup_free) struct ledger_row *row = NULL;

	if (HASH_COUNT(table->rows) >= table->kind->rows_max)
		return NULL;
	row = row_new(table, owner, key);
	if (!row)
		return NULL;
	HASH_ADD(hh, table->rows, key, sizeof(row->key), row);
	return row->hh.tbl ? TAKE_PTR(row) : NULL;
}

struct ledger_row *ledger_rows_get(struct ledger_rows *table, struct ledger_owner *owner,
				   uint16_t port, const char *label)
{
	struct row_key key = { .owner = owner->id, .port = port };
	struct ledger_row *row;

	text_copy(key.label, sizeof(key.label), label);
	HASH_FIND(hh, table->rows, &key, sizeof(key), row);
	if (row || owner->crowded & table->kind->bit)
		return row;
	row = rows_insert(table, owner, &key);
	if (!row)
		owner->crowded |= table->kind->bit;
	return row;
}

void ledger_rows_add(struct ledger_rows *table, struct ledger_row *row, const void *part)
{
	row_add_counters(table->kind, row_sum(table, row), part);
	row_add_gauges(table->kind, row_sum(table, row), part);
	row->used = true;
}

/* Into the sum as well: the scrape that may be under way has copied the base already. */
void ledger_rows_fold(struct ledger_rows *table, struct ledger_row *row, const void *part)
{
	row_add_counters(table->kind, row->values, part);
	row_add_counters(table->kind, row_sum(table, row), part);
	row->used = true;
}

void ledger_rows_begin(struct ledger_rows *table)
{
	struct ledger_row *row, *next;

	HASH_ITER (hh, table->rows, row, next)
		memcpy(row_sum(table, row), row->values, table->kind->words * sizeof(ledger_word));
}

void ledger_rows_clamp(struct ledger_rows *table)
{
	struct ledger_row *row, *next;

	HASH_ITER (hh, table->rows, row, next) {
		if (row->shown_at != NOT_SHOWN)
			row_clamp(table->kind, row_sum(table, row),
				  rows_shown(table, row->shown_at));
	}
}

static int row_compare(const struct ledger_row *a, const struct ledger_row *b)
{
	int r = strcmp(a->owner->name, b->owner->name);

	if (r == 0 && a->key.port != b->key.port)
		r = a->key.port < b->key.port ? -1 : 1;
	return r ? r : strcmp(a->key.label, b->key.label);
}

/* Makes room for all rows, so that nothing can fail once the scrape is being closed. */
int ledger_rows_reserve(struct ledger_rows *table)
{
	size_t capacity = table->shown_capacity ? table->shown_capacity : 8;
	ledger_word *shown;

	while (capacity < HASH_COUNT(table->rows))
		capacity *= 2;
	if (capacity == table->shown_capacity)
		return 0;
	shown = reallocarray(table->shown, capacity, table->kind->words * sizeof(ledger_word));
	if (!shown)
		return -ENOMEM;
	table->shown = shown;
	table->shown_capacity = capacity;
	return 0;
}

void ledger_rows_remove(struct ledger_rows *table)
{
	struct ledger_row *row, *next;

	HASH_ITER (hh, table->rows, row, next) {
		if (!row->owner->removed)
			continue;
		HASH_DEL(table->rows, row);
		free(row);
	}
}

void ledger_rows_show(struct ledger_rows *table)
{
	struct ledger_row *row, *next;

	table->shown_len = 0;
	HASH_SRT(hh, table->rows, row_compare);
	HASH_ITER (hh, table->rows, row, next) {
		if (!row->used)
			continue;
		row->shown_at = table->shown_len++;
		memcpy(rows_shown(table, row->shown_at), row_sum(table, row),
		       table->kind->words * sizeof(ledger_word));
	}
}

int ledger_rows_init(struct ledger_rows *table, const struct ledger_row_kind *kind,
		     struct ledger_owner *other)
{
	struct row_key key = { .owner = other->id, .label = "other" };

	table->kind = kind;
	table->other = rows_insert(table, other, &key);
	return table->other ? ledger_rows_reserve(table) : -ENOMEM;
}

void ledger_rows_free(struct ledger_rows *table)
{
	struct ledger_row *row, *next;

	HASH_ITER (hh, table->rows, row, next) {
		HASH_DEL(table->rows, row);
		free(row);
	}
	free(table->shown);
}
