/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts, workloads and scrapes for the tests of the ledger.
 */
#ifndef TESTS_LEDGER_PARTS_H
#define TESTS_LEDGER_PARTS_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/ledger_kinds.h"

#define SECOND 1000000000ULL
#define GRACE (300 * SECOND)

static inline ledger_handle workload(struct ledger *ledger, const char *name, const char *exe)
{
	struct identity identity = { .runtime = "native" };

	snprintf(identity.name, sizeof(identity.name), "%s", name);
	snprintf(identity.exe, sizeof(identity.exe), "%s", exe);
	return ledger_join(ledger, &identity, 0);
}

static inline struct endpoint_row endpoint(uint64_t requests)
{
	struct endpoint_row row = { .received_bytes = 100 * requests,
				    .accepted[IO_EPOLL] = requests };

	row.queue.bucket[3] = requests;
	row.queue.sum_ns = 1000 * requests;
	row.duration.bucket[HIST_BUCKETS - 1] = requests;
	row.accept_queue_overflows = requests / 2;
	return row;
}

static inline struct pool_row pool(uint64_t idle_ns)
{
	struct pool_row row = { .started = 4, .exited = 1 };

	row.threads[STATE_IDLE] = 3;
	row.thread_ns[STATE_IDLE] = idle_ns;
	row.mutex.bucket[HIST_BUCKETS - 1] = 5;
	return row;
}

/* Begins a scrape that reads everything. */
static inline void scrape_begin(struct ledger *ledger)
{
	ledger_begin(ledger);
	ledger_begin_kind(ledger, LEDGER_ENDPOINTS);
	ledger_begin_kind(ledger, LEDGER_POOLS);
	ledger_begin_kind(ledger, LEDGER_BLOCKED);
}

/* One scrape with one live tree. */
static inline void scrape(struct ledger *ledger, ledger_handle handle, uint64_t requests,
			  uint64_t now_ns)
{
	struct endpoint_row part = endpoint(requests);

	scrape_begin(ledger);
	ledger_add_processes(ledger, handle, 1);
	ledger_add_endpoint(ledger, handle, 80, &part);
	cr_assert_eq(ledger_end(ledger, now_ns), 0);
}

static inline void scrape_nothing(struct ledger *ledger, uint64_t now_ns)
{
	scrape_begin(ledger);
	cr_assert_eq(ledger_end(ledger, now_ns), 0);
}

static inline const struct endpoint_row *only_endpoint(const struct ledger *ledger)
{
	size_t len;
	const struct endpoint_row *rows = ledger_endpoints(ledger, &len);

	cr_assert_eq(len, 1);
	return rows;
}

static inline const struct pool_row *only_pool(const struct ledger *ledger)
{
	size_t len;
	const struct pool_row *rows = ledger_pools(ledger, &len);

	cr_assert_eq(len, 1);
	return rows;
}

static inline size_t workloads_len(const struct ledger *ledger)
{
	size_t len;

	ledger_workloads(ledger, &len);
	return len;
}

#endif
