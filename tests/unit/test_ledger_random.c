/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that come and go at random. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "ledger_ports.h"
#include "model/ledger_kinds.h"

enum { LIVES = 150, RANDOM_PORTS = 250, SCRAPES = 400 };

struct life {
	ledger_handle handle;
	unsigned int port;
	uint64_t count; /* requests so far; 0: not born */
};

struct lives {
	struct ledger *ledger;
	struct life life[LIVES];
	uint64_t random;
	uint64_t truth; /* requests that there ever were */
};

static unsigned int random_below(struct lives *lives, unsigned int bound)
{
	lives->random = lives->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned int)(lives->random >> 33) % bound;
}

static void lives_go_on(struct lives *lives)
{
	static const char *const names[] = { "a", "b", "c" };
	unsigned int more;

	for (struct life *life = lives->life; life < lives->life + LIVES; life++) {
		if (!life->count) {
			life->handle = workload(lives->ledger, names[random_below(lives, 3)], "");
			life->port = random_below(lives, RANDOM_PORTS);
		}
		more = 1 + random_below(lives, 5);
		life->count += more;
		lives->truth += more;
		if (random_below(lives, 4))
			continue;
		fold(lives->ledger, life->handle, life->port, life->count);
		life->count = 0;
	}
}

static void lives_scrape(struct lives *lives, uint64_t now_ns)
{
	scrape_begin(lives->ledger);
	for (const struct life *life = lives->life; life < lives->life + LIVES; life++) {
		if (life->count)
			add(lives->ledger, life->handle, life->port, life->count);
	}
	cr_assert_eq(ledger_end(lives->ledger, now_ns), 0);
}

Test(ledger_random, whatever_comes_and_goes_within_the_grace_is_shown_exactly_once)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	struct lives lives = { .ledger = ledger, .random = 1 };

	for (uint64_t i = 0; i < SCRAPES; i++) {
		lives_go_on(&lives);
		lives_scrape(&lives, SECOND + i);
		cr_assert_eq(all_requests(ledger), lives.truth);
		cr_assert_leq(endpoints_len(ledger), 3 * (PORTS + 1));
	}
	cr_expect_eq(endpoints_len(ledger), 3 * (PORTS + 1));
	cr_expect_gt(ledger_rows_full(ledger), 0);
}

/* What a reader that sums the growth of every row, as Prometheus does, would have seen in all. */
static uint64_t growth(struct ledger *ledger, uint64_t before[3][RANDOM_PORTS])
{
	size_t len;
	const struct endpoint_row *rows = ledger_endpoints(ledger, &len);
	uint64_t sum = 0, after[3][RANDOM_PORTS] = { { 0 } };

	for (size_t i = 0; i < len; i++) {
		unsigned int port = 0, name = (unsigned int)(rows[i].workload[0] - 'a');
		uint64_t count = rows[i].queue.bucket[3];

		sscanf(rows[i].port, "%u", &port);
		cr_assert_geq(count, before[name][port], "%s %s went backwards", rows[i].workload,
			      rows[i].port);
		sum += count - before[name][port];
		after[name][port] = count;
	}
	memcpy(before, after, sizeof(after));
	return sum;
}

Test(ledger_random, rows_that_are_freed_and_taken_again_neither_double_nor_lose)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(2);
	struct lives lives = { .ledger = ledger, .random = 7 };
	uint64_t before[3][RANDOM_PORTS] = { { 0 } }, seen = 0;
	size_t least = SIZE_MAX;

	for (uint64_t i = 0; i < SCRAPES; i++) {
		lives_go_on(&lives);
		lives_scrape(&lives, SECOND + i);
		seen += growth(ledger, before);
		cr_assert_eq(seen, lives.truth);
		if (i > 10 && endpoints_len(ledger) < least)
			least = endpoints_len(ledger);
	}
	cr_expect_lt(least, 3 * (PORTS + 1), "rows were freed");
	cr_expect_gt(ledger_rows_full(ledger), 0);
}
