/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ledger_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define LATE_NS 1000000000ULL /* by which two readings may be further apart than they say */

static void label_copy(char out[LEDGER_LABEL_LEN], const char *label)
{
	text_copy(out, LEDGER_LABEL_LEN, label && *label ? label : LEDGER_OTHER_TEXT);
}

struct ledger_row_key ledger_row_key(const struct ledger_row_kind *kind,
				     const struct ledger_owner *owner,
				     const struct ledger_labels *labels)
{
	struct ledger_row_key key = { .owner = owner->id, .number = labels->number };

	label_copy(key.label, labels->label);
	if (kind->two_labels)
		label_copy(key.second, labels->second);
	return key;
}

struct ledger_row *ledger_row_new(const struct ledger_row_kind *kind, struct ledger_owner *owner,
				  const struct ledger_row_key *key)
{
	struct ledger_row *row = calloc(1, sizeof(*row) + kind->words * sizeof(row->sum[0]));
	const char *texts[3] = { owner->name };

	if (!row)
		return NULL;
	row->key = *key;
	row->owner = owner;
	row->shown_at = LEDGER_NOT_SHOWN;
	texts[1] = row->key.label;
	texts[2] = kind->numbers ? kind->numbers[key->number] : row->key.second;
	memcpy(row->sum, texts, kind->texts * sizeof(*texts));
	return row;
}

void ledger_row_free(struct ledger_row *row)
{
	if (row)
		free(row->base);
	free(row);
}

static void words_add(ledger_word *into, const ledger_word *part, size_t len)
{
	for (size_t i = 0; i < len; i++)
		into[i] += part[i];
}

/* A sum may be below 0 for a moment (ledger_row_split()), and no counter ever is above INT64_MAX.
 */
static void word_lift(ledger_word *into, ledger_word least)
{
	if ((int64_t)(*into - least) < 0)
		*into = least;
}

static void row_add_gauges(const struct ledger_row_kind *kind, struct ledger_row *row,
			   const ledger_word *part)
{
	for (size_t i = kind->gauges; i < kind->gauges + kind->gauges_len; i++) {
		if (i - kind->maxima < kind->maxima_len)
			word_lift(&row->sum[i], part[i]);
		else
			row->sum[i] += part[i];
	}
}

void ledger_row_add(const struct ledger_row_kind *kind, struct ledger_row *row,
		    const ledger_word *part)
{
	words_add(row->sum + kind->counters, part + kind->counters, kind->counters_len);
	row_add_gauges(kind, row, part);
	row->idle.live = true;
	row->used = true;
}

static int row_need_base(const struct ledger_row_kind *kind, struct ledger_row *row)
{
	if (!row->base)
		row->base = calloc(kind->counters_len, sizeof(*row->base));
	return row->base ? 0 : -ENOMEM;
}

/* Into the sum as well: the scrape that may be under way has copied the base already. */
int ledger_row_fold(const struct ledger_row_kind *kind, struct ledger_row *row,
		    const ledger_word *part)
{
	if (row_need_base(kind, row))
		return -ENOMEM;
	words_add(row->base, part + kind->counters, kind->counters_len);
	words_add(row->sum + kind->counters, part + kind->counters, kind->counters_len);
	row->idle.since_ns = 0;
	row->used = true;
	return 0;
}

int ledger_row_split(const struct ledger_row_kind *kind, struct ledger_row *from,
		     struct ledger_row *own)
{
	const ledger_word *counted = own->sum + kind->counters;

	if (row_need_base(kind, from) || row_need_base(kind, own))
		return -ENOMEM;
	words_add(from->base, counted, kind->counters_len);
	for (size_t i = 0; i < kind->counters_len; i++)
		own->base[i] = 0 - counted[i];
	memset(own->sum + kind->counters, 0, kind->counters_len * sizeof(*own->sum));
	memset(own->sum + kind->gauges, 0, kind->gauges_len * sizeof(*own->sum));
	return 0;
}

void ledger_row_begin(const struct ledger_row_kind *kind, struct ledger_row *row)
{
	ledger_word *counters = row->sum + kind->counters;

	row->idle.live = false;
	memset(row->sum + kind->gauges, 0, kind->gauges_len * sizeof(*row->sum));
	if (row->base)
		memcpy(counters, row->base, kind->counters_len * sizeof(*counters));
	else
		memset(counters, 0, kind->counters_len * sizeof(*counters));
}

/* Time that the threads of @row can have spent since @shown was read, those included that are gone.
 */
static uint64_t row_spent_max(const struct ledger_row_kind *kind, const struct ledger_row *row,
			      const ledger_word *shown, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns > row->taken_ns ? now_ns - row->taken_ns : 0, threads = 1;

	for (size_t i = kind->gauges; i < kind->gauges + kind->gauges_len; i++)
		threads += row->sum[i];
	if (row->sum[kind->exited] > shown[kind->exited])
		threads += row->sum[kind->exited] - shown[kind->exited];
	return threads * (elapsed_ns + LATE_NS);
}

bool ledger_row_doubt(const struct ledger_row_kind *kind, struct ledger_row *row,
		      const ledger_word *shown, uint64_t now_ns)
{
	ledger_word *times = row->sum + kind->times;
	uint64_t most;
	bool torn = false, back = false;

	if (!kind->times_len)
		return false;
	shown += kind->times;
	most = row_spent_max(kind, row, shown - kind->times, now_ns);
	for (size_t i = 0; i < kind->times_len; i++) {
		torn |= times[i] > shown[i] && times[i] - shown[i] > most;
		back |= times[i] < shown[i];
	}
	row->doubted = torn && row->taken_ns && !row->doubted;
	if (row->doubted)
		memcpy(times, shown, kind->times_len * sizeof(*times));
	else if (!back)
		row->taken_ns = now_ns;
	return row->doubted;
}

void ledger_row_lift(const struct ledger_row_kind *kind, struct ledger_row *row,
		     const ledger_word *shown)
{
	for (size_t i = kind->counters; i < kind->counters + kind->counters_len; i++)
		word_lift(&row->sum[i], shown ? shown[i] : 0);
}

int ledger_row_compare(const struct ledger_row *a, const struct ledger_row *b)
{
	int r = strcmp(a->owner->name, b->owner->name);

	if (r == 0 && a->key.number != b->key.number)
		r = a->key.number < b->key.number ? -1 : 1;
	if (r == 0)
		r = strcmp(a->key.label, b->key.label);
	return r ? r : strcmp(a->key.second, b->key.second);
}
