/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of the ledger's rows, endpoints or pools: the base, this scrape's sum and what was shown
 * last of each. ledger.h has the contract; this is its machinery, used by ledger.c only.
 */
#ifndef WORKLOAD_LEDGER_ROWS_H
#define WORKLOAD_LEDGER_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of a row. Rows are added and compared word by word, whatever their members are. */
typedef uint64_t __attribute__((may_alias)) ledger_word;

/* Where the counters and gauges of struct endpoint_row and struct pool_row lie. */
struct ledger_row_kind;
extern const struct ledger_row_kind ledger_endpoint_rows;
extern const struct ledger_row_kind ledger_pool_rows;

/* The workload of a row; outlives its rows. */
struct ledger_owner {
	const char *name; /* not owned, constant */
	uint32_t id; /* never used again */
	unsigned int crowded; /* bits of the tables that had no room for a row of it */
	bool removed; /* rows_remove() takes its rows */
};

struct ledger_row;

struct ledger_rows {
	const struct ledger_row_kind *kind;
	struct ledger_row *rows; /* uthash */
	struct ledger_row *other; /* one of rows, always there */
	ledger_word *shown; /* array of rows as snapshot.h has them */
	size_t shown_len;
	size_t shown_capacity;
};

/* @table is all zeros. -ENOMEM: it still wants ledger_rows_free. */
int ledger_rows_init(struct ledger_rows *table, const struct ledger_row_kind *kind,
		     struct ledger_owner *other);
void ledger_rows_free(struct ledger_rows *table);

/*
 * Finds or makes row (@owner, @port, @label); labels are cut to LEDGER_LABEL_LEN - 1 bytes. NULL if
 * it does not fit now, or if a row of this owner did not fit before.
 */
struct ledger_row *ledger_rows_get(struct ledger_rows *table, struct ledger_owner *owner,
				   uint16_t port, const char *label);

/* Adds counters and gauges to the sum, or counters to both base and sum. */
void ledger_rows_add(struct ledger_rows *table, struct ledger_row *row, const void *part);
void ledger_rows_fold(struct ledger_rows *table, struct ledger_row *row, const void *part);

/* Sets every sum to its base. */
void ledger_rows_begin(struct ledger_rows *table);

/* Makes room to show all rows, so that the steps after it cannot fail. 0 or -ENOMEM. */
int ledger_rows_reserve(struct ledger_rows *table);

/* Lifts every counter of a sum to what was shown last. */
void ledger_rows_clamp(struct ledger_rows *table);

/* Frees the rows of removed owners. */
void ledger_rows_remove(struct ledger_rows *table);

/* Sorts the rows and copies their sums to table->shown. */
void ledger_rows_show(struct ledger_rows *table);

#endif
