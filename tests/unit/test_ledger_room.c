/* SPDX-License-Identifier: Apache-2.0 */
/* Which trees get a workload, and which workload gives way, where there are more than have room. */
#include "ledger_ports.h"

#define ALL (LEDGER_WORKLOADS_MAX - 1) /* without `other` */
#define USER 1000

TestSuite(ledger_room);

static ledger_handle join(struct ledger *ledger, const char *prefix, unsigned int i, uint32_t user)
{
	struct identity identity = { .runtime = "native" };

	snprintf(identity.name, sizeof(identity.name), "%s%04u", prefix, i);
	return ledger_join(ledger, &identity, user);
}

static void fill(struct ledger *ledger, const char *prefix, unsigned int from, bool left)
{
	for (unsigned int i = from; i < ALL; i++) {
		ledger_handle handle = join(ledger, prefix, i, 0);

		cr_assert_neq(handle, LEDGER_OTHER);
		if (left)
			ledger_leave(ledger, handle);
	}
}

Test(ledger_room, what_has_ended_gives_way_the_last_first)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle lives = join(ledger, "lives", 0, 0), ended = join(ledger, "ended", 0, 0);
	struct endpoint_row part = endpoint(5);
	const struct endpoint_row *rows;
	size_t len;

	scrape_begin(ledger);
	ledger_add_endpoint(ledger, lives, 80, &part);
	ledger_fold_endpoint(ledger, ended, 80, &part);
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	ledger_leave(ledger, ended);
	fill(ledger, "flood", 2, true);
	for (unsigned int i = 0; i < 2 * ALL; i++)
		ledger_leave(ledger, join(ledger, "more", i, 0));
	cr_expect_eq(workloads_len(ledger), 0, "what was shown speaks of those that are gone");
	cr_expect_neq(join(ledger, "new", 0, 0), LEDGER_OTHER);
	cr_expect_eq(ledger_workloads_full(ledger), 0);
	scrape_begin(ledger);
	ledger_add_endpoint(ledger, lives, 80, &part);
	cr_assert_eq(ledger_end(ledger, 2 * SECOND), 0);
	rows = ledger_endpoints(ledger, &len);
	cr_assert_eq(len, 2);
	cr_expect_str_eq(rows[0].workload, "ended0000");
	cr_expect_str_eq(rows[1].workload, "lives0000");
}

Test(ledger_room, what_has_ended_goes_after_its_grace_where_there_is_room)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle ended = join(ledger, "ended", 0, 0);

	scrape(ledger, ended, 1, SECOND);
	ledger_leave(ledger, ended);
	scrape_nothing(ledger, 2 * SECOND);
	cr_expect_eq(workloads_len(ledger), 1);
	scrape_nothing(ledger, 3 * SECOND + GRACE);
	cr_expect_eq(workloads_len(ledger), 0);
}

Test(ledger_room, what_lives_does_not_give_way)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);

	fill(ledger, "live", 0, false);
	cr_expect_not(ledger_has_room(ledger, 0));
	cr_expect_eq(join(ledger, "new", 0, 0), LEDGER_OTHER);
	ledger_leave(ledger, join(ledger, "live", 7, 0)); /* one of its two trees */
	cr_expect_not(ledger_has_room(ledger, 0));
	ledger_leave(ledger, join(ledger, "live", 7, 0));
	cr_expect_not(ledger_has_room(ledger, 0));
}

Test(ledger_room, a_workload_without_trees_is_room)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle first = join(ledger, "first", 0, 0);

	fill(ledger, "live", 1, false);
	cr_expect_not(ledger_has_room(ledger, 0));
	ledger_leave(ledger, first);
	cr_expect(ledger_has_room(ledger, 0));
	ledger_leave(ledger, LEDGER_OTHER);
	cr_expect_neq(join(ledger, "new", 0, 0), LEDGER_OTHER);
	cr_expect_not(ledger_has_room(ledger, 0));
}

Test(ledger_room, a_user_gets_its_share_and_root_the_rest)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	unsigned int refused = 0;

	cr_assert_eq(workload(ledger, "other", ""), LEDGER_OTHER);
	for (unsigned int i = 0; i < ALL; i++)
		refused += join(ledger, "user", i, USER) == LEDGER_OTHER;
	cr_expect_eq(refused, ALL - LEDGER_WORKLOADS_MAX / 2);
	cr_expect_not(ledger_has_room(ledger, USER));
	cr_expect(ledger_has_room(ledger, USER + 1));
	for (unsigned int i = 0; i < ALL - LEDGER_WORKLOADS_MAX / 2; i++)
		cr_expect_neq(join(ledger, "root", i, 0), LEDGER_OTHER);
}

Test(ledger_room, rows_of_what_has_ended_give_way_to_those_of_what_lives)
{
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle live = join(ledger, "lives", 0, 0);
	struct endpoint_row part = endpoint(1);
	const struct endpoint_row *rows;
	size_t len;

	scrape_begin(ledger);
	for (unsigned int i = 0; i < LEDGER_ENDPOINTS_MAX / LEDGER_WORKLOAD_PORTS_MAX; i++) {
		ledger_handle ended = join(ledger, "ended", i, 0);

		for (unsigned int port = 1; port <= LEDGER_WORKLOAD_PORTS_MAX; port++)
			ledger_fold_endpoint(ledger, ended, (uint16_t)port, &part);
		ledger_leave(ledger, ended);
	}
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	scrape_begin(ledger);
	ledger_add_endpoint(ledger, live, 80, &part);
	cr_assert_eq(ledger_end(ledger, 2 * SECOND), 0);
	rows = ledger_endpoints(ledger, &len);
	while (len && strcmp(rows[len - 1].workload, "lives0000") != 0)
		len--;
	cr_expect(len, "it has a row");
}

/* abi/shares.h: a quarter for one user once half is taken, and the last eighth is root's. */
Test(ledger_room, users_that_come_later_get_a_quarter_and_leave_some_to_root)
{
	static const unsigned int shares[] = { LEDGER_WORKLOADS_MAX / 2, LEDGER_WORKLOADS_MAX / 4,
					       LEDGER_WORKLOADS_MAX / 8, 0 };
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);

	for (unsigned int user = 0; user < sizeof(shares) / sizeof(*shares); user++) {
		char prefix[] = { (char)('a' + user), '\0' };
		unsigned int got = 0;

		for (unsigned int i = 0; i < ALL; i++)
			got += join(ledger, prefix, i, USER + user) != LEDGER_OTHER;
		cr_expect_eq(got, shares[user], "user %u: %u", user, got);
	}
}

Test(ledger_room, what_has_ended_gives_way_once_seven_eighths_of_the_rows_are_taken)
{
	enum { MOST = LEDGER_ENDPOINTS_MAX / 8 * 7 - 1 }; /* row `other` of all is one */
	_cleanup_(ledger_freep) struct ledger *ledger = ledger_new(GRACE);
	ledger_handle live = join(ledger, "lives", 0, 0);

	scrape_begin(ledger);
	for (unsigned int left = MOST, i = 0; left; i++) {
		ledger_handle ended = join(ledger, "ended", i, 0);
		unsigned int ports = left < PORTS ? left : PORTS;

		for (unsigned int port = 1; port <= ports; port++)
			fold(ledger, ended, port, 1);
		ledger_leave(ledger, ended);
		left -= ports;
	}
	cr_assert_eq(ledger_end(ledger, SECOND), 0);
	cr_expect_eq(endpoints_len(ledger), MOST);
	scrape_ports(ledger, live, 80, 80, 2 * SECOND);
	cr_expect_eq(endpoints_len(ledger), MOST + 1);
	scrape_ports(ledger, live, 80, 80, 3 * SECOND);
	cr_expect_eq(endpoints_len(ledger), MOST + 1 - MOST % PORTS, "the last one has gone");
}
