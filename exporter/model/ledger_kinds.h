/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of rows that the ledger keeps, and its functions for each of them with their types. A
 * new kind is a line in the list, its shape in ledger_kinds.c, and the functions that its feature
 * wants; ledger.h has the contract, and ledger_row.h says what a shape is.
 */
#ifndef WORKLOAD_MODEL_LEDGER_KINDS_H
#define WORKLOAD_MODEL_LEDGER_KINDS_H

#include <stddef.h>
#include <stdint.h>

#include "model/ledger.h"
#include "model/snapshot.h"

/* The index of a kind, and its shape. */
#define LEDGER_KIND_LIST(KIND)                 \
	KIND(ENDPOINTS, ledger_endpoint_shape) \
	KIND(POOLS, ledger_pool_shape)         \
	KIND(BLOCKED, ledger_blocked_shape)

enum ledger_kind {
#define KIND(id, shape) LEDGER_##id,
	LEDGER_KIND_LIST(KIND)
#undef KIND
		LEDGER_KINDS
};

extern const struct ledger_row_kind *const ledger_kinds[LEDGER_KINDS];

/*
 * Bounds, `other` included; of one workload without it: endless ports or pool names of one must not
 * starve the others.
 */
#define LEDGER_ENDPOINTS_MAX 1024
#define LEDGER_WORKLOAD_PORTS_MAX 64
#define LEDGER_POOLS_MAX 2048
#define LEDGER_WORKLOAD_POOLS_MAX 128 /* 64 names, each in both roles */
#define LEDGER_BLOCKED_MAX 2048
#define LEDGER_WORKLOAD_BLOCKED_MAX 128

/* Endpoints: row (workload, @port); port 0 is `other`, and the first in order. */
void ledger_add_endpoint(struct ledger *ledger, ledger_handle handle, uint16_t port,
			 const struct endpoint_row *part);
void ledger_fold_endpoint(struct ledger *ledger, ledger_handle handle, uint16_t port,
			  const struct endpoint_row *part);
const struct endpoint_row *ledger_endpoints(const struct ledger *ledger, size_t *len);

/* Pools: row (workload, @role, @pool); what has no room goes to `other` of its role. */
void ledger_add_pool(struct ledger *ledger, ledger_handle handle, enum pool_role role,
		     const char *pool, const struct pool_row *part);
void ledger_fold_pool(struct ledger *ledger, ledger_handle handle, enum pool_role role,
		      const char *pool, const struct pool_row *part);
const struct pool_row *ledger_pools(const struct ledger *ledger, size_t *len);

/* Waits for locks: row (workload, @pool, @holder); what has no room goes to (other, other). */
void ledger_add_blocked(struct ledger *ledger, ledger_handle handle, const char *pool,
			const char *holder, const struct blocked_row *part);
void ledger_fold_blocked(struct ledger *ledger, ledger_handle handle, const char *pool,
			 const char *holder, const struct blocked_row *part);
const struct blocked_row *ledger_blocked(const struct ledger *ledger, size_t *len);

#endif
