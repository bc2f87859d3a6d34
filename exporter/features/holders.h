/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools that released the locks for which the threads of a pool have waited
 * (bpf/threads/holders.h): the table beside that of pools, slot by slot.
 */
#ifndef WORKLOAD_FEATURES_HOLDERS_H
#define WORKLOAD_FEATURES_HOLDERS_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/view.h"
#include "model/ledger.h"

/* Of @loader, whose feature is on. 0 or -errno; view_close() releases. */
int holders_open(struct view *holders, const struct loader *loader);

/* Adds what slot @slot has to the ledger, or folds it, as the waits of the workload's @pool. */
void holders_add(struct view *holders, uint32_t slot, struct ledger *ledger, ledger_handle handle,
		 const char *pool);
void holders_fold(struct view *holders, uint32_t slot, struct ledger *ledger, ledger_handle handle,
		  const char *pool);

/* Nothing is in it any more. */
void holders_clear(struct view *holders, uint32_t slot);

#endif
