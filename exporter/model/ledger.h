/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: rows of workloads, endpoints and pools that outlive the processes behind them, so
 * that counters never go backwards.
 *
 * The kernel side counts per tree (a listening process and its descendants). Several trees can be
 * one workload: workers that share a port, a service that was restarted. Each row here has a base,
 * to which trees that ended, and their ports and pools that are gone, were folded, and per scrape
 * the sum of the base and what lives:
 *
 *	handle = ledger_join(ledger, &identity, user);	when a tree is found
 *
 *	ledger_begin(ledger);					a scrape
 *	ledger_add_processes(ledger, handle, 3);		for each live tree
 *	ledger_begin_kind(ledger, LEDGER_ENDPOINTS);		if it reads endpoints
 *	ledger_add_endpoint(ledger, handle, 8080, &part);
 *	ledger_end(ledger, now);
 *	rows = ledger_endpoints(ledger, &len);
 *
 *	ledger_fold_endpoint(ledger, handle, 8080, &part);	it is gone: its last values
 *
 * ledger_kinds.h has the kinds of rows, and these functions for each of them.
 *
 * A part's values are those since there is that port or pool of the tree, so they are either added
 * (it is there) or folded (it is gone), never both in one scrape, and never added again after they
 * were folded. A fold may come between scrapes or inside one and shows in the next ledger_end.
 *
 * Counters and histograms of parts are added; gauges too, except ages, of which the maximum
 * counts. Gauges of folded parts are ignored. In a part the names are ignored.
 *
 * What is shown as a counter never decreases while its row exists: if a sum falls back (the shards
 * of a pool are read at different instants) the earlier value is shown until the sum is past it. So
 * that one wrong reading does not show for days, times that the threads of a pool cannot have spent
 * since the scrape before are refused, once: that scrape shows the earlier ones.
 *
 * A row without live parts stays, its gauges 0, for grace_ns from the first ledger_end that finds
 * it so; then ledger_end removes it, its history with it, although its workload may live: its place
 * is free, and if it comes back it starts from 0. Row (other, other) always stays. A workload
 * without processes and parts goes in the same way. So everything is shown once at least.
 *
 * Not thread-safe: the caller serialises. Times are CLOCK_MONOTONIC.
 */
#ifndef WORKLOAD_MODEL_LEDGER_H
#define WORKLOAD_MODEL_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "identity/identity.h"
#include "model/snapshot.h"

/*
 * Bounds, `other` included. A row costs twice its size (its sum and what is shown: 7.4 KB for an
 * endpoint, 5.6 KB for a pool) and half of that again once something was folded to it. So ten
 * services of two ports and five pools have 0.4 MB, and a ledger full of rows with history 30 MB.
 */
#define LEDGER_WORKLOADS_MAX 256
#define LEDGER_DETOURS_MAX 2048 /* ports, and pools, that are known one by one to be in `other` */
#define LEDGER_LABEL_LEN 48 /* longer pool names are cut; the longest are in features/threads.c */

/*
 * A workload. Stays good as long as the workload is not removed, so a tree can keep it: each
 * scrape that adds something to it keeps the workload. Used after that, it stands for `other`,
 * counted in ledger_workloads_full().
 */
typedef uint32_t ledger_handle;
#define LEDGER_OTHER 0U /* workload `other`: always there, shown once something was added */
#define LEDGER_OTHER_TEXT "other" /* as workload, port and pool */

struct ledger;

/* NULL if there is no memory. */
struct ledger *ledger_new(uint64_t grace_ns);
void ledger_free(struct ledger *ledger);
static inline void ledger_freep(struct ledger **ledger)
{
	ledger_free(*ledger);
}

/*
 * A tree of @user (an id in the initial user namespace) becomes part of the workload
 * identity->name, which is made if there is none. The first identity whose executable is known
 * stays until a process of the workload may have gone: it is replaced if the last scrape found no
 * process, or if a tree was folded since. Where the table is full, the workload that no tree is
 * part of, and was left last, is removed with its rows before its grace is over. LEDGER_OTHER for
 * the name "other", and, counted in ledger_workloads_full(), if there is no room, the user has its
 * share (abi/shares.h), or there is no memory. In workload `other` every port and pool is
 * "other".
 */
ledger_handle ledger_join(struct ledger *ledger, const struct identity *identity, uint32_t user);

/* What it is called; NULL: it was removed. Valid until the next call that changes the ledger. */
const char *ledger_name(const struct ledger *ledger, ledger_handle handle);

/* Whether there is a workload of this name. */
bool ledger_has(const struct ledger *ledger, const char *name);

/* A tree is no part of it any more: to be called once for each join. */
void ledger_leave(struct ledger *ledger, ledger_handle handle);

/* Whether a tree of @user that was put into `other` would get a workload of its own now. */
bool ledger_has_room(const struct ledger *ledger, uint32_t user);

/* Starts a scrape. */
void ledger_begin(struct ledger *ledger);

/*
 * Says that this scrape adds all rows of @kind (LEDGER_ENDPOINTS, ...: ledger_kinds.h) that live:
 * their values become those of the base, their gauges 0. Those that a scrape does not read are not
 * shown after it, and grow no older by it: a scrape that asks for threads only must not end the
 * counters of requests.
 */
void ledger_begin_kind(struct ledger *ledger, unsigned int kind);

void ledger_add_processes(struct ledger *ledger, ledger_handle handle, uint64_t processes);

/*
 * What a tree has lost, by reason: added while it lives, folded once when it ends or becomes
 * another workload. So each loss is one workload's.
 */
void ledger_add_drops(struct ledger *ledger, ledger_handle handle,
		      const uint64_t drops[static DROP_REASONS]);
void ledger_fold_drops(struct ledger *ledger, ledger_handle handle,
		       const uint64_t drops[static DROP_REASONS]);

/* Which row of a workload it is; the typed functions of ledger_kinds.h say what each is. */
struct ledger_labels {
	uint32_t number;
	const char *label; /* "" or NULL is `other` */
	const char *second; /* the same, of a kind that has two labels */
};

/*
 * Adds or folds @part, a row of @kind, to row (workload, @labels). A part for which there is no
 * room goes to the row of that number that is `other`, or, if there is no room even for that, to
 * (other, other); ledger_rows_full() counts each part once.
 *
 * What is added to `other` gets a row of its own once there is room, a few in each scrape, and
 * counts from 0 there: what it has counted stays in `other`, which neither falls nor counts it
 * again. "It" is the port or pool of the workload, as parts have no other identity: all parts of
 * it, whichever tree they are of, share its fate, and a scrape that has not found all of them
 * changes nothing.
 *
 * Which ones are in `other` is remembered for LEDGER_DETOURS_MAX of each kind. A workload that has
 * more is crowded: all its new ports (or pools) go to `other`, until nothing that went there
 * unremembered was added for longer than grace_ns.
 */
void ledger_add(struct ledger *ledger, unsigned int kind, ledger_handle handle,
		const struct ledger_labels *labels, const void *part);
void ledger_fold(struct ledger *ledger, unsigned int kind, ledger_handle handle,
		 const struct ledger_labels *labels, const void *part);

/*
 * Ends a scrape: clamps counters, removes what is past its grace, sorts. -ENOMEM: the arrays of the
 * scrape before are still shown, and nothing was removed.
 */
int ledger_end(struct ledger *ledger, uint64_t now_ns);

/*
 * The rows of the last ledger_end, of what its scrape has read, sorted by workload (bytes), then by
 * number and labels (bytes). The arrays and the texts in them are good until the next ledger_join
 * or ledger_begin_kind.
 */
const struct workload_row *ledger_workloads(const struct ledger *ledger, size_t *len);
const void *ledger_rows_of(const struct ledger *ledger, unsigned int kind, size_t *len);

/*
 * Since ledger_new: how often a workload did not fit; how many parts were put into `other` for want
 * of a row, each of them once, or lost for want of memory.
 */
uint64_t ledger_workloads_full(const struct ledger *ledger);
uint64_t ledger_rows_full(const struct ledger *ledger);

/* Since ledger_new: how often the times of a pool were refused. */
uint64_t ledger_torn(const struct ledger *ledger);

#endif
