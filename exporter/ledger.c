/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* an element that could not be added has hh.tbl == NULL */
#include <uthash.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ledger_rows.h"

#define SLOT_BITS 8 /* of a handle; the rest numbers the workloads that were made */

_Static_assert(LEDGER_WORKLOADS_MAX <= 1 << SLOT_BITS, "a handle cannot hold every slot");

struct workload {
	struct identity identity; /* of the next ledger_end; the name never changes */
	struct identity shown;
	uint64_t processes;
	struct ledger_idle idle;
	struct ledger_owner owner; /* its id is the handle */
	bool has[LEDGER_ROW_KINDS]; /* parts that live, as far as the last scrape of them knew */
	bool vacant; /* who gave the identity may be gone */
	UT_hash_handle hh; /* by identity.name */
};

struct ledger {
	uint64_t grace_ns;
	struct workload *slots[LEDGER_WORKLOADS_MAX];
	struct workload *by_name;
	struct ledger_rows endpoints;
	struct ledger_rows pools;
	struct workload_row shown[LEDGER_WORKLOADS_MAX];
	size_t shown_len;
	uint64_t made; /* workloads ever, for handles */
	uint64_t workloads_full;
	bool other_used; /* workload `other` had processes */
	bool reads[LEDGER_ROW_KINDS]; /* which tables the scrape at hand reads */
};

/* --- workloads ----------------------------------------------------------------------------- */

static struct workload *ledger_find(struct ledger *ledger, ledger_handle handle)
{
	struct workload *workload = ledger->slots[handle % LEDGER_WORKLOADS_MAX];

	if (workload && workload->owner.id == handle)
		return workload;
	ledger->workloads_full++;
	return ledger->slots[LEDGER_OTHER];
}

/* NULL if all slots are taken or there is no memory. Slot 0, the first, is that of `other`. */
static struct workload *workload_new(struct ledger *ledger, const struct identity *identity)
{
	_cleanup_(cleanup_free) struct workload *workload = NULL;
	uint32_t slot = 0;

	while (slot < LEDGER_WORKLOADS_MAX && ledger->slots[slot])
		slot++;
	if (slot == LEDGER_WORKLOADS_MAX)
		return NULL;
	workload = calloc(1, sizeof(*workload));
	if (!workload)
		return NULL;
	workload->identity = *identity;
	workload->owner.id = (ledger_handle)(ledger->made << SLOT_BITS) | slot;
	workload->owner.name = workload->identity.name;
	HASH_ADD_STR(ledger->by_name, identity.name, workload);
	if (!workload->hh.tbl)
		return NULL;
	ledger->made++;
	ledger->slots[slot] = workload;
	return TAKE_PTR(workload);
}

static void workload_free(struct ledger *ledger, struct workload *workload)
{
	ledger->slots[workload->owner.id % LEDGER_WORKLOADS_MAX] = NULL;
	HASH_DEL(ledger->by_name, workload);
	free(workload);
}

/* Decides whether @workload outlives this scrape. `other` always does. */
static void workload_close(const struct ledger *ledger, struct workload *workload, uint64_t now_ns)
{
	uint64_t grace_ns = ledger->grace_ns;

	workload->vacant = workload->processes == 0;
	workload->idle.live = workload->processes > 0;
	for (size_t kind = 0; kind < LEDGER_ROW_KINDS; kind++)
		workload->idle.live |= workload->has[kind];
	workload->owner.removed = ledger_idle_over(&workload->idle, now_ns, grace_ns) &&
				  workload->owner.id != LEDGER_OTHER;
	for (unsigned int kind = 0; kind < LEDGER_ROW_KINDS; kind++)
		ledger_owner_end(&workload->owner, kind, ledger->reads[kind], now_ns, grace_ns);
}

/* Once there was something in it. */
static bool ledger_shows_other(const struct ledger *ledger)
{
	return ledger->other_used || ledger_rows_other_used(&ledger->endpoints) ||
	       ledger_rows_other_used(&ledger->pools);
}

static void ledger_show_workloads(struct ledger *ledger)
{
	struct workload *workload, *next;

	ledger->shown_len = 0;
	HASH_ITER (hh, ledger->by_name, workload, next) {
		if (workload->owner.id == LEDGER_OTHER && !ledger_shows_other(ledger))
			continue;
		workload->shown = workload->identity;
		ledger->shown[ledger->shown_len++] = (struct workload_row){
			.workload = workload->identity.name,
			.exe = workload->shown.exe,
			.runtime = workload->shown.runtime,
			.unit = workload->shown.unit,
			.container = workload->shown.container,
			.processes = workload->processes,
		};
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
	struct workload *other = workload_new(ledger, &identity);
	int r;

	if (!other)
		return -ENOMEM;
	ledger->grace_ns = grace_ns;
	r = ledger_rows_init(&ledger->endpoints, &ledger_endpoint_rows, &other->owner);
	return r < 0 ? r : ledger_rows_init(&ledger->pools, &ledger_pool_rows, &other->owner);
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
	ledger_rows_free(&ledger->endpoints);
	ledger_rows_free(&ledger->pools);
	HASH_ITER (hh, ledger->by_name, workload, next)
		workload_free(ledger, workload);
	free(ledger);
}

ledger_handle ledger_workload(struct ledger *ledger, const struct identity *identity)
{
	struct workload *workload;

	HASH_FIND_STR(ledger->by_name, identity->name, workload);
	if (!workload) {
		workload = workload_new(ledger, identity);
		ledger->workloads_full += !workload;
	} else if (workload->vacant && workload->owner.id != LEDGER_OTHER) {
		workload->identity = *identity;
		workload->vacant = false;
	}
	if (!workload)
		return LEDGER_OTHER;
	workload->idle.since_ns = 0;
	return workload->owner.id;
}

void ledger_begin(struct ledger *ledger)
{
	struct workload *workload, *next;

	HASH_ITER (hh, ledger->by_name, workload, next)
		workload->processes = 0;
	memset(ledger->reads, 0, sizeof(ledger->reads));
}

static void ledger_begin_table(struct ledger *ledger, struct ledger_rows *table)
{
	unsigned int kind = ledger_rows_kind(table);
	struct workload *workload, *next;

	HASH_ITER (hh, ledger->by_name, workload, next) {
		workload->has[kind] = false;
		ledger_owner_begin(&workload->owner, kind);
	}
	ledger_rows_begin(table);
	ledger->reads[kind] = true;
}

void ledger_begin_endpoints(struct ledger *ledger)
{
	ledger_begin_table(ledger, &ledger->endpoints);
}

void ledger_begin_pools(struct ledger *ledger)
{
	ledger_begin_table(ledger, &ledger->pools);
}

void ledger_add_processes(struct ledger *ledger, ledger_handle handle, uint64_t processes)
{
	struct workload *workload = ledger_find(ledger, handle);

	workload->processes += processes;
	ledger->other_used |= processes > 0 && workload->owner.id == LEDGER_OTHER;
}

static void ledger_add(struct ledger *ledger, struct ledger_rows *table, ledger_handle handle,
		       uint16_t port, const char *label, const void *part)
{
	struct workload *workload = ledger_find(ledger, handle);

	ledger_rows_add(table, &workload->owner, port, label, part);
	workload->has[ledger_rows_kind(table)] = true;
}

static void ledger_fold(struct ledger *ledger, struct ledger_rows *table, ledger_handle handle,
			uint16_t port, const char *label, const void *part)
{
	struct workload *workload = ledger_find(ledger, handle);

	ledger_rows_fold(table, &workload->owner, port, label, part);
	workload->has[ledger_rows_kind(table)] = false; /* the next scrape that reads them tells */
	workload->vacant = true;
	workload->idle.since_ns = 0;
}

struct port_label {
	char text[8];
};

static struct port_label port_label(uint16_t port)
{
	struct port_label label = { LEDGER_OTHER_TEXT };

	if (port)
		snprintf(label.text, sizeof(label.text), "%u", (unsigned int)port);
	return label;
}

static const char *pool_label(const char *pool)
{
	return pool && pool[0] ? pool : LEDGER_OTHER_TEXT;
}

void ledger_add_endpoint(struct ledger *ledger, ledger_handle handle, uint16_t port,
			 const struct endpoint_row *part)
{
	ledger_add(ledger, &ledger->endpoints, handle, port, port_label(port).text, part);
}

void ledger_add_pool(struct ledger *ledger, ledger_handle handle, const char *pool,
		     const struct pool_row *part)
{
	ledger_add(ledger, &ledger->pools, handle, 0, pool_label(pool), part);
}

void ledger_fold_endpoint(struct ledger *ledger, ledger_handle handle, uint16_t port,
			  const struct endpoint_row *part)
{
	ledger_fold(ledger, &ledger->endpoints, handle, port, port_label(port).text, part);
}

void ledger_fold_pool(struct ledger *ledger, ledger_handle handle, const char *pool,
		      const struct pool_row *part)
{
	ledger_fold(ledger, &ledger->pools, handle, 0, pool_label(pool), part);
}

static void ledger_remove_gone(struct ledger *ledger, uint64_t now_ns)
{
	struct ledger_rows *const tables[] = { &ledger->endpoints, &ledger->pools };
	struct workload *workload, *next;

	HASH_ITER (hh, ledger->by_name, workload, next)
		workload_close(ledger, workload, now_ns);
	for (size_t i = 0; i < LEDGER_ROW_KINDS; i++)
		ledger_rows_remove(tables[i], ledger->reads[ledger_rows_kind(tables[i])], now_ns,
				   ledger->grace_ns);
	HASH_ITER (hh, ledger->by_name, workload, next) {
		if (workload->owner.removed)
			workload_free(ledger, workload);
	}
}

static void ledger_show_table(const struct ledger *ledger, struct ledger_rows *table)
{
	if (ledger->reads[ledger_rows_kind(table)])
		ledger_rows_show(table);
	else
		ledger_rows_hide(table);
}

int ledger_end(struct ledger *ledger, uint64_t now_ns)
{
	if (ledger_rows_reserve(&ledger->endpoints) < 0 || ledger_rows_reserve(&ledger->pools) < 0)
		return -ENOMEM;
	ledger_rows_clamp(&ledger->endpoints);
	ledger_rows_clamp(&ledger->pools);
	ledger_remove_gone(ledger, now_ns);
	HASH_SRT(hh, ledger->by_name, workload_compare);
	ledger_show_workloads(ledger);
	ledger_show_table(ledger, &ledger->endpoints);
	ledger_show_table(ledger, &ledger->pools);
	return 0;
}

const struct workload_row *ledger_workloads(const struct ledger *ledger, size_t *len)
{
	*len = ledger->shown_len;
	return ledger->shown;
}

const struct endpoint_row *ledger_endpoints(const struct ledger *ledger, size_t *len)
{
	*len = ledger->endpoints.shown_len;
	return (const struct endpoint_row *)ledger->endpoints.shown;
}

const struct pool_row *ledger_pools(const struct ledger *ledger, size_t *len)
{
	*len = ledger->pools.shown_len;
	return (const struct pool_row *)ledger->pools.shown;
}

uint64_t ledger_workloads_full(const struct ledger *ledger)
{
	return ledger->workloads_full;
}

uint64_t ledger_rows_full(const struct ledger *ledger)
{
	return ledger->endpoints.full + ledger->pools.full;
}
