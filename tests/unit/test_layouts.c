/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts and lists that both sides share. The numbers are written out: a developer that changes a
 * layout meets them here and looks after the other side.
 */
#include <criterion/criterion.h>

#include <stddef.h>
#include <string.h>

#include "abi/discovery.h"
#include "abi/shares.h"
#include "abi/drops.h"
#include "abi/histogram.h"
#include "abi/limits.h"
#include "abi/quotas.h"
#include "abi/requests.h"
#include "abi/threads.h"
#include "machine/threads.h"

struct entry {
	const char *label, *help;
};

#define DROP(id, label, help) { label, help },
static const struct entry drops[] = { DROP_LIST(DROP) };
#undef DROP

#define STATE(id, label) { label, "" },
static const struct entry states[] = { STATE_LIST(STATE) };
#undef STATE

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

/* [a-z_]+, which needs no escaping in any format and reads well in a query. */
static int label_is_plain(const char *label)
{
	return *label && strspn(label, "abcdefghijklmnopqrstuvwxyz_") == strlen(label);
}

static void expect_good_labels(const struct entry *entries, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		cr_expect(label_is_plain(entries[i].label), "`%s`", entries[i].label);
		for (size_t j = 0; j < i; j++)
			cr_expect_str_neq(entries[i].label, entries[j].label);
	}
}

/* @size is the sum of the members' sizes: keys are compared as bytes, holes are not. */
#define EXPECT_SIZE(type, size) cr_expect_eq(sizeof(struct type), size, "%zu", sizeof(struct type))

Test(layouts, every_drop_reason_has_a_label_of_its_own)
{
	expect_good_labels(drops, LEN(drops));
}

Test(layouts, every_drop_reason_says_what_was_lost)
{
	for (size_t i = 0; i < LEN(drops); i++) {
		cr_expect_gt(strlen(drops[i].help), 10, "%s", drops[i].label);
		for (size_t j = 0; j < i; j++)
			cr_expect_str_neq(drops[i].help, drops[j].help);
	}
}

/* Dashboards and alerts name them. */
Test(layouts, the_eight_states_have_the_promised_labels)
{
	static const char *const labels[] = { "running", "runnable", "lock",  "disk",
					      "network", "wait",     "sleep", "idle" };

	cr_assert_eq(STATES, LEN(labels));
	for (size_t i = 0; i < LEN(labels); i++)
		cr_expect_str_eq(states[i].label, labels[i]);
}

Test(layouts, keys_have_no_holes)
{
	EXPECT_SIZE(endpoint_key, 4 + 4);
	EXPECT_SIZE(pool_key, 4 + 4 + 16);
	cr_expect_eq(offsetof(struct pool_key, name), 8);
}

Test(layouts, values_have_no_holes)
{
	EXPECT_SIZE(tree, 4 + 4 + 3 * 8 + 4 * 4 + 16 + 4 + 4);
	EXPECT_SIZE(user_share, 4 * 4);
	EXPECT_SIZE(endpoint_info, 6 * 4);
	EXPECT_SIZE(endpoint_gauges, 2 * 8 + 6 * 4);
	EXPECT_SIZE(quota, 5 * 8);
	EXPECT_SIZE(pool_info, 4 * 4 + 16);
	EXPECT_SIZE(hist, 8 + 110 * 8);
	EXPECT_SIZE(endpoint_shard, 4 + 4 + 2 * 8 + 4 * 8 + 8 * 8 + 3 * 888 + 880);
	EXPECT_SIZE(pool_waits, 3 * 888 + 8);
}

/* Writers on different CPUs must not share a cache line. */
Test(layouts, a_pool_shard_is_whole_cache_lines)
{
	EXPECT_SIZE(pool_shard, 3 * 64);
	cr_expect_eq(offsetof(struct pool_shard, seq), 0);
	cr_expect_eq(offsetof(struct pool_shard, pad) + sizeof((struct pool_shard){ 0 }.pad), 192);
}

/* User space maps the arrays: what is read or swapped in one piece must be aligned. */
Test(layouts, words_are_aligned)
{
	cr_expect_eq(sizeof(struct endpoint_shard) % 8, 0);
	cr_expect_eq(sizeof(struct pool_waits) % 8, 0);
	cr_expect_eq(offsetof(struct endpoint_shard, queue) % 8, 0);
	cr_expect_eq(offsetof(struct tree, start_ns) % 8, 0);
	cr_expect_eq(offsetof(struct tree, threads) % 4, 0);
}

Test(layouts, names_of_the_kernel_fit)
{
	cr_expect_eq(COMM_LEN, 16, "TASK_COMM_LEN");
	cr_expect_eq(sizeof((struct tree){ 0 }.comm), COMM_LEN);
	cr_expect_eq(sizeof((struct pool_info){ 0 }.name), COMM_LEN);
	cr_expect_eq(sizeof((struct pool_key){ 0 }.name), COMM_LEN);
}

Test(layouts, limits_leave_room_for_other)
{
	cr_expect_eq(SLOT_OTHER, 0);
	cr_expect_eq(SHARDS_MAX & (SHARDS_MAX - 1), 0, "a mask is made of it");
	cr_expect_gt(TREES_MAX, 1);
	cr_expect_gt(ENDPOINTS_MAX, 1);
	cr_expect_gt(POOLS_PER_TREE, 1, "one of them is the tree's own `other`");
	cr_expect_lt(POOLS_PER_TREE, POOLS_MAX, "one tree must not starve the others");
}

Test(layouts, pool_and_state_share_a_word_without_loss)
{
	static const __u32 pools[] = { SLOT_OTHER, 1, 255, 256, POOLS_MAX - 1, 0xffffffff };

	for (size_t i = 0; i < LEN(pools); i++) {
		for (__u32 state = 0; state <= STATE_NONE; state++) {
			__u64 where = thread_where(pools[i], state);

			cr_expect_eq(where_pool(where), pools[i]);
			cr_expect_eq(where_state(where), state);
		}
	}
}

/* A classic bound 2^e s is the upper bound of cell 4 * (e + 20), for every e that may be chosen. */
Test(layouts, every_power_of_two_is_the_upper_bound_of_a_native_bucket)
{
	for (int exp = HIST_MIN_EXP; exp <= HIST_MAX_EXP; exp++) {
		int cell = HIST_PER_OCTAVE * exp - HIST_MIN_INDEX + 1;

		cr_expect_eq(cell, 4 * (exp + 20));
		cr_expect_lt(cell, HIST_BUCKETS - 1, "the overflow bucket has no bound");
	}
}
