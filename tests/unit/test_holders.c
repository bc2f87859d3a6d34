/* SPDX-License-Identifier: Apache-2.0 */
/* The pools that released the locks for which another has waited: from the table to a scrape. */
#include "core.h"

#include "base/utf8.h"

#define ALL features_collectors()

static struct pool_holders *holders_of(struct core *core, uint32_t slot)
{
	return plain_at(core->loader, "pool_holders", slot);
}

static void hold(struct core *core, uint32_t slot, size_t i, const char *name, uint64_t ns)
{
	struct lock_holder *holder = &holders_of(core, slot)->holders[i];

	memset(holder->name, 0, sizeof(holder->name));
	memcpy(holder->name, name, strlen(name));
	holder->ns = ns;
	holder->state = HOLDER_NAMED;
}

/* UINT64_MAX: there is none. */
static uint64_t blocked(const struct core *core, const char *pool, const char *holder)
{
	for (size_t i = 0; i < core->snapshot.blocked_len; i++) {
		const struct blocked_row *row = &core->snapshot.blocked[i];

		if (!strcmp(row->pool, pool) && !strcmp(row->holder_pool, holder))
			return row->blocked_ns;
	}
	return UINT64_MAX;
}

Test(holders, are_rows_of_their_pool)
{
	struct core *core = core_start(ALL);

	core_found(core, 1);
	core_idle(core, 1, 1, "worker", 2, 1000);
	core_idle(core, 2, 1, "io", 1, 1000);
	hold(core, 1, 0, "io", 7);
	hold(core, 1, 1, "worker", 8);
	hold(core, 1, 2, "none", 0);
	holders_of(core, 1)->holders[3] = (struct lock_holder){ .state = HOLDER_TAKEN, .ns = 99 };
	holders_of(core, 1)->other_ns = 9;
	hold(core, 2, 0, "worker", 10);
	cr_assert(core_scrape(core));
	cr_expect_eq(core->snapshot.blocked_len, 4);
	cr_expect_eq(blocked(core, "worker", "io"), 7);
	cr_expect_eq(blocked(core, "worker", "worker"), 8);
	cr_expect_eq(blocked(core, "worker", "other"), 9);
	cr_expect_eq(blocked(core, "io", "worker"), 10);
	core_stop(core);
}

/* As when two CPUs take a place for it at once. */
Test(holders, of_one_name_are_one_row)
{
	struct core *core = core_start(ALL);

	core_found(core, 1);
	core_idle(core, 1, 1, "worker", 2, 1000);
	hold(core, 1, 0, "io", 7);
	hold(core, 1, 1, "io", 8);
	cr_assert(core_scrape(core));
	cr_expect_eq(core->snapshot.blocked_len, 1);
	cr_expect_eq(blocked(core, "worker", "io"), 15);
	core_stop(core);
}

Test(holders, of_a_pool_that_ends_are_kept_once_and_its_place_is_clean)
{
	struct core *core = core_start(ALL);
	struct pool_shard *shard;

	core_found(core, 1);
	core_idle(core, 1, 1, "worker", 1, 1000);
	hold(core, 1, 0, "io", 7);
	holders_of(core, 1)->other_ns = 2;
	cr_assert(core_scrape(core));
	shard = plain_at(core->loader, "pool_states", PLAIN_CPUS + 1);
	shard->n[STATE_IDLE] = 0;
	shard->a[STATE_IDLE] = 5000;
	shard->exited = 1;
	core_end(core, 1);
	for (int i = 0; i < 2; i++) {
		cr_assert(core_scrape(core));
		cr_expect_eq(blocked(core, "worker", "io"), 7);
		cr_expect_eq(blocked(core, "worker", "other"), 2);
	}
	cr_expect_eq(holders_of(core, 1)->holders[0].state, HOLDER_FREE);
	cr_expect_eq(holders_of(core, 1)->holders[0].ns, 0);
	cr_expect_eq(holders_of(core, 1)->other_ns, 0);
	core_stop(core);
}

Test(holders, whose_name_is_no_text_are_shown_as_one)
{
	struct core *core = core_start(ALL);

	core_found(core, 1);
	core_idle(core, 1, 1, "worker", 2, 1000);
	hold(core, 1, 0, "\xff\xfe\n0123456789abc", 7);
	cr_assert(core_scrape(core));
	cr_assert_eq(core->snapshot.blocked_len, 1);
	cr_expect(utf8_is_valid(core->snapshot.blocked[0].holder_pool));
	core_stop(core);
}
