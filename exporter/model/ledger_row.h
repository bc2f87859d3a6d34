/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of the ledger, as the array of words that ledger_rows.h explains. Used by ledger_rows.c
 * only; no function here knows of other rows.
 */
#ifndef WORKLOAD_MODEL_LEDGER_ROW_H
#define WORKLOAD_MODEL_LEDGER_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1 /* an element that could not be added has hh.tbl == NULL */
#include <uthash.h>

#include "model/ledger.h"
#include "model/ledger_rows.h"

struct ledger_row_kind {
	size_t words; /* of the whole row */
	size_t texts; /* that begin it: workload, label and, with numbers, one of those, or another
		       * label */
	const char *const *numbers; /* what the number of a key means, if that is a label */
	bool two_labels;
	size_t counters; /* first ledger_word */
	size_t counters_len;
	size_t gauges;
	size_t gauges_len;
	size_t maxima; /* gauges whose maximum counts */
	size_t maxima_len; /* 0: none */
	size_t times; /* counters of threads' time by state; the gauges count the threads */
	size_t times_len; /* 0: none */
	size_t exited; /* counter of threads that are gone */
	unsigned int rows_max; /* of the table */
	unsigned int share_max; /* of one workload, beside its rows `other` */
	unsigned int index; /* in ledger_owner.shares */
};

struct ledger_row_key { /* compared as bytes: no hole, zeros behind the labels */
	uint32_t owner; /* its id */
	uint32_t number; /* port; of pools the role */
	char label[LEDGER_LABEL_LEN];
	char second[LEDGER_LABEL_LEN]; /* "" of a kind that has one */
};

#define LEDGER_NOT_SHOWN SIZE_MAX

struct ledger_row {
	struct ledger_row_key key;
	struct ledger_owner *owner;
	ledger_word *base; /* kind->counters_len words, may be negative; owned; NULL: all are 0 */
	size_t shown_at; /* index among the rows shown, or LEDGER_NOT_SHOWN */
	struct ledger_idle idle;
	unsigned int detours; /* that lead here */
	bool used;
	bool doubted; /* the times of the last scrape were refused */
	uint64_t taken_ns; /* scrape whose times are shown; 0: none are */
	UT_hash_handle hh;
	ledger_word sum[]; /* kind->words */
};

struct ledger_row_key ledger_row_key(const struct ledger_row_kind *kind,
				     const struct ledger_owner *owner,
				     const struct ledger_labels *labels);

/* A row of zeros, never shown; it wants ledger_row_free. NULL if there is no memory. */
struct ledger_row *ledger_row_new(const struct ledger_row_kind *kind, struct ledger_owner *owner,
				  const struct ledger_row_key *key);
void ledger_row_free(struct ledger_row *row);
static inline void ledger_row_freep(struct ledger_row **row)
{
	ledger_row_free(*row);
}

/* Adds counters and gauges to the sum; the row is live. */
void ledger_row_add(const struct ledger_row_kind *kind, struct ledger_row *row,
		    const ledger_word *part);

/* Adds counters to base and sum; its grace begins anew. -ENOMEM: nothing was added. */
int ledger_row_fold(const struct ledger_row_kind *kind, struct ledger_row *row,
		    const ledger_word *part);

/*
 * @own, a new row, has the sum of parts that were added to @from as well, in this scrape and those
 * before: what they have counted so far stays in @from, and @own counts from 0. -ENOMEM: nothing
 * was changed.
 */
int ledger_row_split(const struct ledger_row_kind *kind, struct ledger_row *from,
		     struct ledger_row *own);

/* Sets the sum to the base, all gauges to 0; the row is not live. */
void ledger_row_begin(const struct ledger_row_kind *kind, struct ledger_row *row);

/*
 * Looks whether threads can have spent the times of the sum since @shown was: no state can have
 * gained more than all threads times the time between. If not, a shard was torn when it was read,
 * and the times of @shown stay for this scrape; what the next one finds again is believed. Returns
 * true if the times were refused.
 */
bool ledger_row_doubt(const struct ledger_row_kind *kind, struct ledger_row *row,
		      const ledger_word *shown, uint64_t now_ns);

/*
 * Lifts every counter of the sum to at least that of @shown; to 0, where it fell below what its
 * parts had counted before the row was theirs, if that is NULL.
 */
void ledger_row_lift(const struct ledger_row_kind *kind, struct ledger_row *row,
		     const ledger_word *shown);

/* By workload (bytes), number, labels (bytes), for sorting. */
int ledger_row_compare(const struct ledger_row *a, const struct ledger_row *b);

#endif
