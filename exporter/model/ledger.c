/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ledger.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/ledger_rows.h"
#include "model/ledger_seats.h"

struct ledger {
	uint64_t grace_ns;
	struct ledger_seats seats;
	struct ledger_rows tables[LEDGER_KINDS];
	struct workload_row shown[LEDGER_WORKLOADS_MAX];
	size_t shown_len;
	bool other_used; /* workload `other` had processes */
	bool reads[LEDGER_KINDS]; /* which tables the scrape at hand reads */
};

/* --- workloads ----------------------------------------------------------------------------- */

/* Whether there was one that could be removed before its grace is over. */
static bool ledger_make_room(struct ledger *ledger)
{
	struct workload *workload = seats_left(&ledger->seats);

	if (!workload)
		return false;
	/* What was shown last speaks of it. */
	ledger->shown_len = 0;
	workload->owner.removed = true;
	for (unsigned int kind = 0; kind < LEDGER_KINDS; kind++) {
		ledger_owner_end(&workload->owner, kind, false, 0, 0);
		ledger_rows_remove(&ledger->tables[kind], false, 0, 0);
		ledger_rows_hide(&ledger->tables[kind]);
	}
	seats_free(&ledger->seats, workload);
	return true;
}

/* Decides whether @workload outlives this scrape. `other` always does. */
static void workload_close(const struct ledger *ledger, struct workload *workload, uint64_t now_ns)
{
	uint64_t grace_ns = ledger->grace_ns;

	workload->vacant = workload->processes == 0;
	workload->idle.live = workload->processes > 0;
	for (unsigned int kind = 0; kind < LEDGER_KINDS; kind++)
		workload->idle.live |= workload->has[kind];
	workload->owner.removed = ledger_idle_over(&workload->idle, now_ns, grace_ns) &&
				  workload->owner.id != LEDGER_OTHER;
	for (unsigned int kind = 0; kind < LEDGER_KINDS; kind++)
		ledger_owner_end(&workload->owner, kind, ledger->reads[kind], now_ns, grace_ns);
}

/* Once there was something in it. */
static bool ledger_shows_other(const struct ledger *ledger)
{
	bool used = ledger->other_used;

	for (unsigned int kind = 0; kind < LEDGER_KINDS; kind++)
		used |= ledger_rows_other_used(&ledger->tables[kind]);
	return used;
}

static void ledger_show_workloads(struct ledger *ledger)
{
	struct workload *workload, *next;

	ledger->shown_len = 0;
	HASH_ITER (hh, ledger->seats.by_name, workload, next) {
		if (workload->owner.id == LEDGER_OTHER && !ledger_shows_other(ledger))
			continue;
		workload->shown = workload->identity;
		ledger->shown[ledger->shown_len++] = (struct workload_row){
			.workload = workload->identity.name,
			.exe = workload->shown.exe,
			.runtime = workload->shown.runtime,
			.unit = workload->shown.unit,
			.container = workload->shown.container,
			.user = workload->shown.user,
			.processes = workload->processes,
		};
		memcpy(ledger->shown[ledger->shown_len - 1].dropped, workload->dropped_now,
		       sizeof(workload->dropped_now));
	}
}

static int workload_compare(const struct workload *a, const struct workload *b)
{
	return strcmp(a->identity.name, b->identity.name);
}

/* --- interface ----------------------------------------------------------------------------- */

static int ledger_init(struct ledger *ledger, uint64_t grace_ns)
{
	const struct identity identity = { .name = LEDGER_OTHER_TEXT };
	struct workload *other = seats_take(&ledger->seats, &identity, 0);
	int r = 0;

	if (!other)
		return -ENOMEM;
	ledger->grace_ns = grace_ns;
	for (unsigned int kind = 0; !r && kind < LEDGER_KINDS; kind++)
		r = ledger_rows_init(&ledger->tables[kind], ledger_kinds[kind], &other->owner);
	return r;
}

struct ledger *ledger_new(uint64_t grace_ns)
{
	_cleanup_(ledger_freep) struct ledger *ledger = calloc(1, sizeof(*ledger));

	if (!ledger || ledger_init(ledger, grace_ns) < 0)
		return NULL;
	return TAKE_PTR(ledger);
}

void ledger_free(struct ledger *ledger)
{
	struct workload *workload, *next;

	if (!ledger)
		return;
	for (unsigned int kind = 0; kind < LEDGER_KINDS; kind++)
		ledger_rows_free(&ledger->tables[kind]);
	HASH_ITER (hh, ledger->seats.by_name, workload, next)
		seats_free(&ledger->seats, workload);
	free(ledger);
}

/* Whether @identity tells more than what was known first, or that may be of none that lives. */
static bool workload_is_better_known(const struct workload *workload,
				     const struct identity *identity)
{
	return workload->owner.id != LEDGER_OTHER &&
	       (workload->vacant || (!workload->identity.exe[0] && identity->exe[0]));
}

/* NULL, and counted, if @user has its share, or there is none that could give way. */
static struct workload *workload_new(struct ledger *ledger, const struct identity *identity,
				     uint32_t user)
{
	struct workload *workload = NULL;

	if (!seats_refuse(&ledger->seats, user)) {
		workload = seats_take(&ledger->seats, identity, user);
		if (!workload && ledger_make_room(ledger))
			workload = seats_take(&ledger->seats, identity, user);
	}
	ledger->seats.full += !workload;
	return workload;
}

ledger_handle ledger_join(struct ledger *ledger, const struct identity *identity, uint32_t user)
{
	struct workload *workload = seats_named(&ledger->seats, identity->name);

	if (!workload) {
		workload = workload_new(ledger, identity, user);
	} else if (workload_is_better_known(workload, identity)) {
		workload->identity = *identity;
		workload->vacant = false;
	}
	if (!workload)
		return LEDGER_OTHER;
	workload->trees++;
	workload->idle.since_ns = 0;
	return workload->owner.id;
}

const char *ledger_name(const struct ledger *ledger, ledger_handle handle)
{
	const struct workload *workload = seats_at(&ledger->seats, handle);

	return workload ? workload->identity.name : NULL;
}

bool ledger_has(const struct ledger *ledger, const char *name)
{
	return seats_named(&ledger->seats, name) != NULL;
}

void ledger_leave(struct ledger *ledger, ledger_handle handle)
{
	struct workload *workload = seats_at(&ledger->seats, handle);

	if (workload && workload->owner.id != LEDGER_OTHER && !--workload->trees)
		workload->left = ++ledger->seats.left;
}

bool ledger_has_room(const struct ledger *ledger, uint32_t user)
{
	return (!seats_are_taken(&ledger->seats) || seats_left(&ledger->seats)) &&
	       !seats_refuse(&ledger->seats, user);
}

void ledger_begin(struct ledger *ledger)
{
	struct workload *workload, *next;

	HASH_ITER (hh, ledger->seats.by_name, workload, next) {
		workload->processes = 0;
		memcpy(workload->dropped_now, workload->dropped, sizeof(workload->dropped));
	}
	memset(ledger->reads, 0, sizeof(ledger->reads));
}

void ledger_begin_kind(struct ledger *ledger, unsigned int kind)
{
	struct workload *workload, *next;

	HASH_ITER (hh, ledger->seats.by_name, workload, next) {
		workload->has[kind] = false;
		ledger_owner_begin(&workload->owner, kind);
	}
	while (ledger_rows_crowded(&ledger->tables[kind]) && ledger_make_room(ledger))
		;
	ledger_rows_begin(&ledger->tables[kind]);
	ledger->reads[kind] = true;
}

void ledger_add_processes(struct ledger *ledger, ledger_handle handle, uint64_t processes)
{
	struct workload *workload = seats_find(&ledger->seats, handle);

	workload->processes += processes;
	ledger->other_used |= processes > 0 && workload->owner.id == LEDGER_OTHER;
}

static void drops_add(uint64_t sums[static DROP_REASONS], const uint64_t drops[static DROP_REASONS])
{
	for (int reason = 0; reason < DROP_REASONS; reason++)
		sums[reason] += drops[reason];
}

void ledger_add_drops(struct ledger *ledger, ledger_handle handle,
		      const uint64_t drops[static DROP_REASONS])
{
	drops_add(seats_find(&ledger->seats, handle)->dropped_now, drops);
}

/* Shows in the next scrape: in the one at hand the tree may have been added. */
void ledger_fold_drops(struct ledger *ledger, ledger_handle handle,
		       const uint64_t drops[static DROP_REASONS])
{
	drops_add(seats_find(&ledger->seats, handle)->dropped, drops);
}

void ledger_add(struct ledger *ledger, unsigned int kind, ledger_handle handle,
		const struct ledger_labels *labels, const void *part)
{
	struct workload *workload = seats_find(&ledger->seats, handle);

	ledger_rows_add(&ledger->tables[kind], &workload->owner, labels, part);
	workload->has[kind] = true;
}

void ledger_fold(struct ledger *ledger, unsigned int kind, ledger_handle handle,
		 const struct ledger_labels *labels, const void *part)
{
	struct workload *workload = seats_find(&ledger->seats, handle);

	ledger_rows_fold(&ledger->tables[kind], &workload->owner, labels, part);
	workload->has[kind] = false; /* the next scrape that reads them tells */
	workload->vacant = true;
	workload->idle.since_ns = 0;
}

static void ledger_remove_gone(struct ledger *ledger, uint64_t now_ns)
{
	struct workload *workload, *next;

	HASH_ITER (hh, ledger->seats.by_name, workload, next)
		workload_close(ledger, workload, now_ns);
	for (unsigned int kind = 0; kind < LEDGER_KINDS; kind++)
		ledger_rows_remove(&ledger->tables[kind], ledger->reads[kind], now_ns,
				   ledger->grace_ns);
	HASH_ITER (hh, ledger->seats.by_name, workload, next) {
		if (workload->owner.removed)
			seats_free(&ledger->seats, workload);
	}
}

static int ledger_reserve(struct ledger *ledger)
{
	int r = 0;

	for (unsigned int kind = 0; !r && kind < LEDGER_KINDS; kind++)
		r = ledger_rows_reserve(&ledger->tables[kind]);
	return r;
}

int ledger_end(struct ledger *ledger, uint64_t now_ns)
{
	int r = ledger_reserve(ledger);

	if (r < 0)
		return r;
	for (unsigned int kind = 0; kind < LEDGER_KINDS; kind++)
		ledger_rows_clamp(&ledger->tables[kind], ledger->reads[kind], now_ns);
	ledger_remove_gone(ledger, now_ns);
	HASH_SRT(hh, ledger->seats.by_name, workload_compare);
	ledger_show_workloads(ledger);
	for (unsigned int kind = 0; kind < LEDGER_KINDS; kind++) {
		if (ledger->reads[kind])
			ledger_rows_show(&ledger->tables[kind]);
		else
			ledger_rows_hide(&ledger->tables[kind]);
	}
	return 0;
}

const struct workload_row *ledger_workloads(const struct ledger *ledger, size_t *len)
{
	*len = ledger->shown_len;
	return ledger->shown;
}

const void *ledger_rows_of(const struct ledger *ledger, unsigned int kind, size_t *len)
{
	*len = ledger->tables[kind].shown_len;
	return ledger->tables[kind].shown;
}

uint64_t ledger_workloads_full(const struct ledger *ledger)
{
	return ledger->seats.full;
}

uint64_t ledger_rows_full(const struct ledger *ledger)
{
	uint64_t full = 0;

	for (unsigned int kind = 0; kind < LEDGER_KINDS; kind++)
		full += ledger->tables[kind].full;
	return full;
}

uint64_t ledger_torn(const struct ledger *ledger)
{
	uint64_t torn = 0;

	for (unsigned int kind = 0; kind < LEDGER_KINDS; kind++)
		torn += ledger->tables[kind].torn;
	return torn;
}
