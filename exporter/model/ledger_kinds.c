/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ledger_kinds.h"

#include <stdio.h>

#include "model/ledger_row.h"

/* A key, of a row with one label or two. */
#define KEY(number, label, second) (&(struct ledger_labels){ number, label, second })
#define WORD_OF(type, member) (offsetof(type, member) / sizeof(ledger_word))

#define ENDPOINT_COUNTERS \
	((sizeof(struct endpoint_counts) + sizeof(struct hist)) / sizeof(ledger_word))
#define ENDPOINT_GAUGES 7
#define POOL_COUNTERS (STATES + 2 + sizeof(struct pool_waits) / sizeof(ledger_word))

static const char *const role_names[] = {
#define ROLE(id, label) [POOL_##id] = label,
	POOL_ROLE_LIST(ROLE)
#undef ROLE
};

static const struct ledger_row_kind ledger_endpoint_shape = {
	.words = sizeof(struct endpoint_row) / sizeof(ledger_word),
	.texts = 2,
	.counters = WORD_OF(struct endpoint_row, abandoned),
	.counters_len = ENDPOINT_COUNTERS,
	.gauges = WORD_OF(struct endpoint_row, queued),
	.gauges_len = ENDPOINT_GAUGES,
	.maxima = WORD_OF(struct endpoint_row, oldest_queued_ns),
	.maxima_len = 2,
	.rows_max = LEDGER_ENDPOINTS_MAX,
	.share_max = LEDGER_WORKLOAD_PORTS_MAX,
	.index = LEDGER_ENDPOINTS,
};

static const struct ledger_row_kind ledger_pool_shape = {
	.words = sizeof(struct pool_row) / sizeof(ledger_word),
	.texts = 3,
	.numbers = role_names,
	.counters = WORD_OF(struct pool_row, thread_ns),
	.counters_len = POOL_COUNTERS,
	.gauges = WORD_OF(struct pool_row, threads),
	.gauges_len = STATES,
	.times = WORD_OF(struct pool_row, thread_ns),
	.times_len = STATES,
	.exited = WORD_OF(struct pool_row, exited),
	.rows_max = LEDGER_POOLS_MAX,
	.share_max = LEDGER_WORKLOAD_POOLS_MAX,
	.index = LEDGER_POOLS,
};

static const struct ledger_row_kind ledger_blocked_shape = {
	.words = sizeof(struct blocked_row) / sizeof(ledger_word),
	.texts = 3,
	.two_labels = true,
	.counters = WORD_OF(struct blocked_row, blocked_ns),
	.counters_len = 1,
	.rows_max = LEDGER_BLOCKED_MAX,
	.share_max = LEDGER_WORKLOAD_BLOCKED_MAX,
	.index = LEDGER_BLOCKED,
};

_Static_assert(WORD_OF(struct endpoint_row, abandoned) == 2 &&
		       offsetof(struct endpoint_row, port) == 8,
	       "two texts begin struct endpoint_row");
_Static_assert(WORD_OF(struct endpoint_row, queued) == 2 + ENDPOINT_COUNTERS,
	       "a member was added between or behind the counters of struct endpoint_row");
_Static_assert(sizeof(struct endpoint_row) == 8 * (2 + ENDPOINT_COUNTERS + ENDPOINT_GAUGES),
	       "a member was added to the gauges of struct endpoint_row");
_Static_assert(WORD_OF(struct pool_row, threads) == 3 && offsetof(struct pool_row, pool) == 8 &&
		       offsetof(struct pool_row, role) == 16,
	       "three texts begin struct pool_row");
_Static_assert(WORD_OF(struct pool_row, thread_ns) == 3 + STATES,
	       "a member was added to the gauges of struct pool_row");
_Static_assert(sizeof(struct pool_row) == 8 * (3 + STATES + POOL_COUNTERS),
	       "a member was added to the counters of struct pool_row");

_Static_assert(WORD_OF(struct blocked_row, blocked_ns) == 3 &&
		       offsetof(struct blocked_row, pool) == 8 &&
		       offsetof(struct blocked_row, holder_pool) == 16,
	       "three texts begin struct blocked_row");
_Static_assert(sizeof(struct blocked_row) == 8 * (3 + 1),
	       "a member was added to the counters of struct blocked_row");

const struct ledger_row_kind *const ledger_kinds[LEDGER_KINDS] = {
#define KIND(id, shape) [LEDGER_##id] = &(shape),
	LEDGER_KIND_LIST(KIND)
#undef KIND
};

/* --- endpoints ------------------------------------------------------------------------------ */

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

void ledger_add_endpoint(struct ledger *ledger, ledger_handle handle, uint16_t port,
			 const struct endpoint_row *part)
{
	ledger_add(ledger, LEDGER_ENDPOINTS, handle, KEY(port, port_label(port).text, NULL), part);
}

void ledger_fold_endpoint(struct ledger *ledger, ledger_handle handle, uint16_t port,
			  const struct endpoint_row *part)
{
	ledger_fold(ledger, LEDGER_ENDPOINTS, handle, KEY(port, port_label(port).text, NULL), part);
}

const struct endpoint_row *ledger_endpoints(const struct ledger *ledger, size_t *len)
{
	return ledger_rows_of(ledger, LEDGER_ENDPOINTS, len);
}

/* --- pools ---------------------------------------------------------------------------------- */

void ledger_add_pool(struct ledger *ledger, ledger_handle handle, enum pool_role role,
		     const char *pool, const struct pool_row *part)
{
	ledger_add(ledger, LEDGER_POOLS, handle, KEY(role, pool, NULL), part);
}

void ledger_fold_pool(struct ledger *ledger, ledger_handle handle, enum pool_role role,
		      const char *pool, const struct pool_row *part)
{
	ledger_fold(ledger, LEDGER_POOLS, handle, KEY(role, pool, NULL), part);
}

const struct pool_row *ledger_pools(const struct ledger *ledger, size_t *len)
{
	return ledger_rows_of(ledger, LEDGER_POOLS, len);
}

/* --- waits for locks ------------------------------------------------------------------------ */

void ledger_add_blocked(struct ledger *ledger, ledger_handle handle, const char *pool,
			const char *holder, const struct blocked_row *part)
{
	ledger_add(ledger, LEDGER_BLOCKED, handle, KEY(0, pool, holder), part);
}

void ledger_fold_blocked(struct ledger *ledger, ledger_handle handle, const char *pool,
			 const char *holder, const struct blocked_row *part)
{
	ledger_fold(ledger, LEDGER_BLOCKED, handle, KEY(0, pool, holder), part);
}

const struct blocked_row *ledger_blocked(const struct ledger *ledger, size_t *len)
{
	return ledger_rows_of(ledger, LEDGER_BLOCKED, len);
}
