/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ledger_seats.h"

#include <stdlib.h>

#include "abi/shares.h"
#include "base/cleanup.h"

#define SLOT_BITS 8 /* of a handle; the rest numbers the workloads that were made */

_Static_assert(LEDGER_WORKLOADS_MAX <= 1 << SLOT_BITS, "a handle cannot hold every slot");

struct workload *seats_at(const struct ledger_seats *seats, ledger_handle handle)
{
	struct workload *workload = seats->slots[handle % LEDGER_WORKLOADS_MAX];

	return workload && workload->owner.id == handle ? workload : NULL;
}

struct workload *seats_find(struct ledger_seats *seats, ledger_handle handle)
{
	struct workload *workload = seats_at(seats, handle);

	if (workload)
		return workload;
	seats->full++;
	return seats->slots[LEDGER_OTHER];
}

struct workload *seats_named(const struct ledger_seats *seats, const char *name)
{
	struct workload *workload;

	HASH_FIND_STR(seats->by_name, name, workload);
	return workload;
}

static uint32_t seats_free_slot(const struct ledger_seats *seats)
{
	uint32_t slot = 0;

	while (slot < LEDGER_WORKLOADS_MAX && seats->slots[slot])
		slot++;
	return slot;
}

bool seats_are_taken(const struct ledger_seats *seats)
{
	return seats_free_slot(seats) == LEDGER_WORKLOADS_MAX;
}

struct workload *seats_take(struct ledger_seats *seats, const struct identity *identity,
			    uint32_t user)
{
	_cleanup_(cleanup_free) struct workload *workload = NULL;
	uint32_t slot = seats_free_slot(seats);

	if (slot == LEDGER_WORKLOADS_MAX)
		return NULL;
	workload = calloc(1, sizeof(*workload));
	if (!workload)
		return NULL;
	workload->identity = *identity;
	workload->user = user;
	workload->owner.id = (ledger_handle)(seats->made << SLOT_BITS) | slot;
	workload->owner.name = workload->identity.name;
	HASH_ADD_STR(seats->by_name, identity.name, workload);
	if (!workload->hh.tbl)
		return NULL;
	seats->made++;
	seats->slots[slot] = workload;
	return TAKE_PTR(workload);
}

void seats_free(struct ledger_seats *seats, struct workload *workload)
{
	seats->slots[workload->owner.id % LEDGER_WORKLOADS_MAX] = NULL;
	HASH_DEL(seats->by_name, workload);
	free(workload);
}

struct workload *seats_left(const struct ledger_seats *seats)
{
	struct workload *last = NULL;

	for (uint32_t slot = LEDGER_OTHER + 1; slot < LEDGER_WORKLOADS_MAX; slot++) {
		struct workload *workload = seats->slots[slot];

		if (workload && !workload->trees && workload->left &&
		    (!last || workload->left > last->left))
			last = workload;
	}
	return last;
}

bool seats_refuse(const struct ledger_seats *seats, uint32_t user)
{
	uint32_t mine = 0, used = 0;

	for (uint32_t slot = LEDGER_OTHER + 1; slot < LEDGER_WORKLOADS_MAX; slot++) {
		const struct workload *workload = seats->slots[slot];

		used += workload && workload->trees;
		mine += workload && workload->trees && workload->user == user;
	}
	return share_refused(user, mine, used, LEDGER_WORKLOADS_MAX);
}
