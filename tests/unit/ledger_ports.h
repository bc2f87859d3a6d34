/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of a workload, as parts that are added to a ledger, and what it shows of them. */
#ifndef WORKLOAD_TESTS_LEDGER_PORTS_H
#define WORKLOAD_TESTS_LEDGER_PORTS_H

#include <criterion/criterion.h>
#include <string.h>

#include "ledger_parts.h"

#define PORTS LEDGER_WORKLOAD_PORTS_MAX
#define NO_ROW UINT64_MAX

/* Requests in a row as it was shown last, or NO_ROW. */
static inline uint64_t requests(const struct ledger *ledger, const char *name, const char *port)
{
	size_t len;
	const struct endpoint_row *rows = ledger_endpoints(ledger, &len);

	for (size_t i = 0; i < len; i++) {
		if (!strcmp(rows[i].workload, name) && !strcmp(rows[i].port, port))
			return rows[i].queue.bucket[3];
	}
	return NO_ROW;
}

static inline uint64_t all_requests(const struct ledger *ledger)
{
	size_t len;
	const struct endpoint_row *rows = ledger_endpoints(ledger, &len);
	uint64_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += rows[i].queue.bucket[3];
	return sum;
}

static inline size_t endpoints_len(const struct ledger *ledger)
{
	size_t len;

	ledger_endpoints(ledger, &len);
	return len;
}

static inline void add(struct ledger *ledger, ledger_handle handle, unsigned int port,
		       uint64_t count)
{
	const struct endpoint_row part = endpoint(count);

	ledger_add_endpoint(ledger, handle, (uint16_t)port, &part);
}

static inline void fold(struct ledger *ledger, ledger_handle handle, unsigned int port,
			uint64_t count)
{
	const struct endpoint_row part = endpoint(count);

	ledger_fold_endpoint(ledger, handle, (uint16_t)port, &part);
}

static inline void add_ports(struct ledger *ledger, ledger_handle handle, unsigned int from,
			     unsigned int to)
{
	for (unsigned int port = from; port <= to; port++)
		add(ledger, handle, port, 1);
}

/* One scrape in which ports @from to @to live, with one request each. */
static inline void scrape_ports(struct ledger *ledger, ledger_handle handle, unsigned int from,
				unsigned int to, uint64_t now_ns)
{
	scrape_begin(ledger);
	add_ports(ledger, handle, from, to);
	cr_assert_eq(ledger_end(ledger, now_ns), 0);
}

#endif
