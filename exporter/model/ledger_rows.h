/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of the ledger's rows, all of one kind: the base, this scrape's sum and what was shown
 * last of each. ledger.h has the contract; this is its machinery, used by ledger.c only.
 *
 * For newcomers. The ledger does three things with a row: it adds a part to it, it copies it, and
 * it lifts what fell back. None of them depends on what a member means, and struct endpoint_row has
 * some 450 of them (most are buckets), so no member is named here. snapshot.h keeps those of all
 *kinds in one shape: texts, then one run of counters and one run of gauges (in either order), all
 *64 bits wide. So a row is an array of words, and a struct ledger_row_kind says where its two runs
 * are:
 *
 *	                   |  texts        |  counters              |  gauges
 *	endpoint_row       |  workload port|  queue.sum_ns queue... |  queued in_service...
 *
 *	                   |  texts        |  gauges                |  counters
 *	pool_row           |  ...pool role |  threads[0]...         |  thread_ns[0]...
 *
 * To add a member, put it into its run in snapshot.h and correct the length of the run at the top
 * of ledger_kinds.c; the _Static_asserts there fail until both agree. A part is a row as well, and
 * `shown` is an array of them, which ledger_endpoints() gives out as struct endpoint_row: that is
 * why ledger_word may alias.
 *
 * Of each row there is a sum, one place in `shown` and, only once something was folded to it, a
 * base (counters only): an ordinary service that never restarted has no base.
 */
#ifndef WORKLOAD_MODEL_LEDGER_ROWS_H
#define WORKLOAD_MODEL_LEDGER_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/ledger_kinds.h"

typedef uint64_t __attribute__((may_alias)) ledger_word;

struct ledger_row;
struct ledger_row_kind;

/* For how long nothing live was added to a thing: what decides when it is forgotten. */
struct ledger_idle {
	bool live; /* something was added in this scrape */
	uint64_t since_ns; /* first scrape without; 0: not idle, or folded to since */
};

/* To be asked once at the end of each scrape: whether it was idle for longer than @grace_ns. */
bool ledger_idle_over(struct ledger_idle *idle, uint64_t now_ns, uint64_t grace_ns);

/*
 * Parts that had no room in a row of their own and are measured in another one. As parts come
 * without an identity, what is on a detour is a key, as (workload, port), with all
 * its parts.
 */
struct ledger_detour {
	struct ledger_row *row; /* the other one, which stays meanwhile; NULL: no detour */
	unsigned int parts; /* added in this scrape */
	unsigned int counted; /* living parts that ledger_rows.full has counted */
	struct ledger_idle idle;
	struct ledger_row *own; /* there is room for it in this scrape: its parts go here too */
};

/* What a workload has of one table. */
struct ledger_share {
	unsigned int rows; /* beside its rows `other` */
	struct ledger_detour crowd; /* of all keys that were not remembered one by one */
};

/* The workload of a row; outlives its rows. */
struct ledger_owner {
	const char *name; /* not owned, constant */
	uint32_t id; /* never used again */
	bool removed; /* ledger_rows_remove() takes its rows */
	struct ledger_share shares[LEDGER_KINDS];
};

struct ledger_detoured; /* a key that is on a detour */

struct ledger_rows {
	const struct ledger_row_kind *kind;
	struct ledger_row *rows; /* uthash */
	struct ledger_row *other; /* one of rows, always there: (other, other) */
	struct ledger_detoured *detoured; /* uthash */
	uint64_t full; /* parts that were put into `other`, or lost, since init */
	uint64_t torn; /* scrapes of a row whose times were refused, since init */
	ledger_word *shown; /* array of rows as snapshot.h has them */
	size_t shown_len;
	size_t shown_capacity;
};

/* @table is all zeros. -ENOMEM: it still wants ledger_rows_free. */
int ledger_rows_init(struct ledger_rows *table, const struct ledger_row_kind *kind,
		     struct ledger_owner *other);
void ledger_rows_free(struct ledger_rows *table);

/*
 * Adds @part, counters and gauges, to the sum of row (@owner, @labels), or of the row that stands
 * in for it; labels are cut to LEDGER_LABEL_LEN - 1 bytes. The key stays on a detour until nothing
 * of it was added for longer than the grace.
 */
void ledger_rows_add(struct ledger_rows *table, struct ledger_owner *owner,
		     const struct ledger_labels *labels, const void *part);

/*
 * Adds the counters of @part to both base and sum. A key that was never added needs no detour: its
 * part does not come again. Without memory for the base the part is lost and counted.
 */
void ledger_rows_fold(struct ledger_rows *table, struct ledger_owner *owner,
		      const struct ledger_labels *labels, const void *part);

/* Whether few rows are free. */
bool ledger_rows_crowded(const struct ledger_rows *table);

/* Starts a scrape that reads them: sets every sum to its base, and nothing is live. */
void ledger_rows_begin(struct ledger_rows *table);
void ledger_owner_begin(struct ledger_owner *owner, unsigned int kind);

/* Makes room to show all rows, so that the steps after it cannot fail. 0 or -ENOMEM. */
int ledger_rows_reserve(struct ledger_rows *table);

/*
 * Lifts every counter of a sum to what was shown last. Before that, of rows that the scrape has
 * @read: refuses times that cannot be.
 */
void ledger_rows_clamp(struct ledger_rows *table, bool read, uint64_t now_ns);

/*
 * Ends the crowd of @owner in table @kind if it is over, which only a scrape that has @read the
 * table can tell. Before ledger_rows_remove(): it frees rows for it.
 */
void ledger_owner_end(struct ledger_owner *owner, unsigned int kind, bool read, uint64_t now_ns,
		      uint64_t grace_ns);

/*
 * Frees the rows, and forgets the detours, of removed owners and, if the scrape has @read the
 * table, those idle for too long.
 */
void ledger_rows_remove(struct ledger_rows *table, bool read, uint64_t now_ns, uint64_t grace_ns);

/* Sorts the rows and copies their sums to table->shown; or shows none of them. */
void ledger_rows_show(struct ledger_rows *table);
void ledger_rows_hide(struct ledger_rows *table);

/* Whether there ever was anything in row (other, other). */
bool ledger_rows_other_used(const struct ledger_rows *table);

#endif
