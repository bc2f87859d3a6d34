/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workloads of the ledger: each has a seat, of which there are LEDGER_WORKLOADS_MAX. Used by
 * ledger.c only, which owns their rows.
 */
#ifndef WORKLOAD_MODEL_LEDGER_SEATS_H
#define WORKLOAD_MODEL_LEDGER_SEATS_H

#include <stdbool.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1 /* an element that could not be added has hh.tbl == NULL */
#include <uthash.h>

#include "model/ledger.h"
#include "model/ledger_rows.h"

struct workload {
	struct identity identity; /* of the next ledger_end; the name never changes */
	struct identity shown;
	uint64_t processes;
	uint64_t dropped[DROP_REASONS]; /* of trees that have ended, */
	uint64_t dropped_now[DROP_REASONS]; /* and with those that the scrape at hand has added */
	struct ledger_idle idle;
	struct ledger_owner owner; /* its id is the handle */
	uint32_t user; /* of the tree that it was made for */
	uint32_t trees; /* that are part of it */
	uint64_t left; /* the number of the moment at which the last one left; 0: none has */
	bool has[LEDGER_KINDS]; /* parts that live, as far as the last scrape of them knew */
	bool vacant; /* the tree that gave the identity may be gone */
	UT_hash_handle hh; /* by identity.name */
};

struct ledger_seats {
	struct workload *slots[LEDGER_WORKLOADS_MAX]; /* slot 0 is that of `other` */
	struct workload *by_name; /* uthash */
	uint64_t made; /* workloads ever, for handles */
	uint64_t left; /* moments ever at which the last tree left a workload */
	uint64_t full; /* workloads that had no seat, ever */
};

/* NULL if it was removed. */
struct workload *seats_at(const struct ledger_seats *seats, ledger_handle handle);

/* `other`, and counted, if it was removed. */
struct workload *seats_find(struct ledger_seats *seats, ledger_handle handle);

/* NULL if there is none of that name. */
struct workload *seats_named(const struct ledger_seats *seats, const char *name);

/* A new workload; the first is `other`. NULL if all seats are taken or there is no memory. */
struct workload *seats_take(struct ledger_seats *seats, const struct identity *identity,
			    uint32_t user);
bool seats_are_taken(const struct ledger_seats *seats);
void seats_free(struct ledger_seats *seats, struct workload *workload);

/* Of the workloads that no tree is part of the one left last, or NULL: a flood gives way first. */
struct workload *seats_left(const struct ledger_seats *seats);

/* Whether @user has its share of those that trees are part of. */
bool seats_refuse(const struct ledger_seats *seats, uint32_t user);

#endif
