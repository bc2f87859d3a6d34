/* SPDX-License-Identifier: Apache-2.0 */
/* The look at waits that last. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "features/features.h"
#include "plain_profiles.h"
#include "profiles/waits.h"

struct looking {
	struct loader *loader;
	struct waits waits;
	int walk; /* what comes of it */
	struct stack_key keys[8]; /* that were taken */
	struct stack stacks[8];
	size_t len;
};

static int looking_walk(void *arg, enum walk walk)
{
	const struct looking *looking = arg;

	return walk == WALK_LASTING ? looking->walk : 0;
}

static void looking_start(struct looking *looking)
{
	unsigned int wanted = 1U << (unsigned int)features_find("profiles");

	*looking = (struct looking){ 0 };
	looking->loader = plain_loader_new(wanted, looking_walk, looking);
	cr_assert_eq(waits_open(&looking->waits, looking->loader), 0);
	waits_look(&looking->waits, true);
}

static void looking_stop(struct looking *looking)
{
	waits_close(&looking->waits);
	plain_loader_free(looking->loader);
}

static const struct look *tree_look(struct looking *looking, size_t tree)
{
	return plain_at(looking->loader, "looked_at", tree);
}

static bool looks(struct looking *looking)
{
	return ((const struct profiling *)plain_at(looking->loader, "profiling", 0))->looks;
}

static void row_keep(void *arg, const void *key, const void *value)
{
	struct looking *looking = arg;

	if (looking->len < 8) {
		memcpy(&looking->keys[looking->len], key, sizeof(struct stack_key));
		memcpy(&looking->stacks[looking->len], value, sizeof(struct stack));
	}
	looking->len++;
}

#define LOCKS (1ULL << STATE_LOCK)
#define DISKS (1ULL << STATE_DISK)

/* So that what was noted of a thread is not taken for what belongs to another look. */
Test(waits, each_look_at_a_tree_begins_at_a_time_of_its_own)
{
	struct looking looking;
	uint64_t first, second;

	looking_start(&looking);
	cr_expect(looks(&looking));
	cr_expect(waits_want(&looking.waits, 3, LOCKS));
	cr_expect_not(waits_want(&looking.waits, 4, 0));
	first = tree_look(&looking, 3)->since_ns;
	cr_expect_neq(first, 0);
	cr_expect_eq(tree_look(&looking, 3)->states, LOCKS);
	cr_expect_eq(tree_look(&looking, 4)->since_ns, 0);
	cr_expect_not(waits_want(&looking.waits, 3, LOCKS));
	cr_expect_eq(tree_look(&looking, 3)->since_ns, first, "it goes on");
	cr_expect(waits_want(&looking.waits, 4, DISKS));
	cr_expect_gt(tree_look(&looking, 4)->since_ns, first);
	cr_expect_not(waits_want(&looking.waits, 3, 0));
	cr_expect_eq(tree_look(&looking, 3)->since_ns, 0);
	looking.waits.last_ns += 1ULL << 40; /* as if the clock stood still */
	second = looking.waits.last_ns;
	cr_expect(waits_want(&looking.waits, 3, LOCKS));
	cr_expect_eq(tree_look(&looking, 3)->since_ns, second + 1);
	waits_look(&looking.waits, false);
	cr_expect_not(looks(&looking));
	cr_expect_eq(tree_look(&looking, 3)->since_ns, 0);
	looking_stop(&looking);
}

/* What lasts in a state that was not looked at is met by a look that begins. */
Test(waits, a_look_begins_anew_with_a_state_more_and_goes_on_with_one_less)
{
	struct looking looking;
	uint64_t first, second;

	looking_start(&looking);
	cr_expect(waits_want(&looking.waits, 3, LOCKS));
	first = tree_look(&looking, 3)->since_ns;
	cr_expect(waits_want(&looking.waits, 3, LOCKS | DISKS));
	second = tree_look(&looking, 3)->since_ns;
	cr_expect_gt(second, first);
	cr_expect_not(waits_want(&looking.waits, 3, LOCKS));
	cr_expect_eq(tree_look(&looking, 3)->since_ns, second);
	cr_expect_eq(tree_look(&looking, 3)->states, LOCKS);
	looking_stop(&looking);
}

/* Of these nothing lasts. */
Test(waits, page_faults_begin_and_end_no_look_at_waits)
{
	const uint64_t faults = STATES_OF_FAULTS;
	struct looking looking;
	uint64_t first;

	looking_start(&looking);
	cr_expect_not(waits_want(&looking.waits, 3, faults));
	cr_expect_eq(tree_look(&looking, 3)->since_ns, 0);
	cr_expect(waits_want(&looking.waits, 3, LOCKS | faults));
	first = tree_look(&looking, 3)->since_ns;
	cr_expect_not(waits_want(&looking.waits, 3, LOCKS));
	cr_expect_not(waits_want(&looking.waits, 3, LOCKS | faults));
	cr_expect_eq(tree_look(&looking, 3)->since_ns, first);
	waits_look(&looking.waits, false);
	cr_expect_eq(tree_look(&looking, 3)->since_ns, 0);
	cr_expect_eq(tree_look(&looking, 3)->states, faults, "they are still looked at");
	looking_stop(&looking);
}

/* They are told by the next walk. */
Test(waits, that_cannot_be_walked_are_said_to_be_lost)
{
	struct looking looking;

	looking_start(&looking);
	looking.walk = -ENOMEM;
	waits_read(&looking.waits);
	cr_expect_eq(looking.waits.lost, 1);
	looking_stop(&looking);
}

/* Of the last look, for a profile that was given up. */
Test(waits, of_another_look_are_not_taken)
{
	const struct wait_told told = { .ns = 5 };
	struct looking looking;

	looking_start(&looking);
	plain_waits(looking.loader, &told, 1);
	waits_read(&looking.waits);
	waits_look(&looking.waits, false);
	waits_look(&looking.waits, true);
	waits_take(&looking.waits, row_keep, &looking);
	cr_expect_eq(looking.len, 0);
	looking_stop(&looking);
}

Test(waits, are_told_once_as_stacks_without_frames)
{
	struct wait_told told[2] = {
		{ .key = { .hash = 10, .tree = 3, .state = STATE_LOCK },
		  .ns = 7,
		  .pool = { 1, 2 } },
		{ .key = { .tree = 4, .state = STATE_IDLE }, .ns = 9, .woken = 1 },
	};
	struct looking looking;

	looking_start(&looking);
	plain_waits(looking.loader, told, 2);
	waits_read(&looking.waits);
	plain_waits(looking.loader, told, 1);
	waits_read(&looking.waits);
	waits_take(&looking.waits, row_keep, &looking);
	cr_assert_eq(looking.len, 3, "what was read twice has gone on");
	cr_expect(!memcmp(&looking.keys[0], &told[0].key, sizeof(struct stack_key)));
	cr_expect(!memcmp(&looking.keys[1], &told[1].key, sizeof(struct stack_key)));
	cr_expect_eq(looking.stacks[0].ns, 7);
	cr_expect_eq(looking.stacks[0].queued_ns, 0);
	cr_expect_eq(looking.stacks[0].pool[1], 2);
	cr_expect_eq(looking.stacks[1].ns, 0);
	cr_expect_eq(looking.stacks[1].queued_ns, 9);
	for (size_t i = 0; i < 3; i++) {
		cr_expect_eq(looking.stacks[i].end, STACK_BEGAN_BEFORE);
		cr_expect_eq(looking.stacks[i].len, 0);
		cr_expect_eq(looking.stacks[i].samples, 0);
	}
	waits_take(&looking.waits, row_keep, &looking);
	cr_expect_eq(looking.len, 3);
	looking_stop(&looking);
}

Test(waits, are_bounded_and_lost_ones_are_counted)
{
	_cleanup_(cleanup_free) struct wait_told *told = calloc(WAITS_TOLD_MAX + 3, sizeof(*told));
	struct looking looking;

	cr_assert_not_null(told);
	looking_start(&looking);
	plain_waits(looking.loader, told, WAITS_TOLD_MAX + 3);
	waits_read(&looking.waits);
	cr_expect_eq(looking.waits.lost, 3);
	waits_take(&looking.waits, row_keep, &looking);
	cr_expect_eq(looking.len, WAITS_TOLD_MAX);
	looking_stop(&looking);
}

Test(waits, are_none_without_the_feature)
{
	struct loader *loader = plain_loader_new(0, NULL, NULL);
	struct waits waits;

	cr_expect_eq(waits_open(&waits, loader), -ENOENT);
	waits_close(&waits);
	plain_loader_free(loader);
}
