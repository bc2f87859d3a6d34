/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks are read in turns, while programs count them. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "features/features.h"
#include "plain_profiles.h"
#include "profiles/sets.h"

#define HASHES 8

#define ROWS (PLAIN_CPUS * PROFILED_ROWS)

struct reading {
	struct loader *loader;
	struct sets sets;
	uint64_t samples[HASHES]; /* that were read, by hash */
	uint64_t rows;
};

static void reading_start(struct reading *reading)
{
	unsigned int wanted = 1U << (unsigned int)features_find("profiles");

	*reading = (struct reading){ .loader = plain_loader_new(wanted, NULL, NULL) };
	cr_assert_eq(sets_open(&reading->sets, reading->loader), 0);
}

static void reading_stop(struct reading *reading)
{
	sets_close(&reading->sets);
	plain_loader_free(reading->loader);
}

static struct plain_sample sample_of(uint64_t hash, uint64_t samples)
{
	return (struct plain_sample){ .key = { .hash = hash, .tree = 3 },
				      .stack = { .samples = samples, .len = (uint32_t)hash } };
}

static void count(struct reading *reading, uint64_t hash, uint64_t samples)
{
	const struct plain_sample sample = sample_of(hash, samples);

	plain_sample(reading->loader, &sample);
}

static void row_read(void *arg, const void *key, const void *value)
{
	struct reading *reading = arg;
	const struct stack_key *stack_key = key;
	const struct stack *stack = value;

	cr_assert_lt(stack_key->hash, HASHES);
	cr_expect_eq(stack_key->tree, 3);
	cr_expect_eq(stack->len, stack_key->hash, "a stack goes with its key");
	reading->samples[stack_key->hash] += stack->samples;
	reading->rows++;
}

static int take(struct reading *reading)
{
	return sets_take(&reading->sets, row_read, reading);
}

Test(sets, what_is_counted_is_read_once)
{
	struct reading reading;

	reading_start(&reading);
	cr_expect_eq(take(&reading), 0);
	cr_expect_eq(reading.rows, 0);
	count(&reading, 1, 5);
	count(&reading, 2, 7);
	cr_expect_eq(take(&reading), 0);
	cr_expect_eq(reading.samples[1], 5);
	cr_expect_eq(reading.samples[2], 7);
	cr_expect_eq(take(&reading), 0);
	cr_expect_eq(take(&reading), 0);
	cr_expect_eq(reading.rows, 2);
	reading_stop(&reading);
}

/* More is counted between turns than a set has rows; by each CPU, in no regular way. */
Test(sets, nothing_is_lost_or_counted_twice_over_many_turns)
{
	struct reading reading;
	uint64_t counted[HASHES] = { 0 };

	reading_start(&reading);
	srand(7);
	for (int turn = 0; turn < 1000; turn++) {
		for (int i = rand() % 20; i > 0; i--) {
			const struct plain_sample sample = sample_of((uint64_t)rand() % HASHES,
								     1 + (uint64_t)rand() % 3);
			size_t cpu = (size_t)rand() % ROWS;
			uint64_t set = plain_enter(reading.loader, cpu);

			plain_count(reading.loader, cpu, set, &sample);
			plain_leave(reading.loader, cpu, set);
			counted[sample.key.hash] += sample.stack.samples;
		}
		cr_assert_eq(take(&reading), 0);
		cr_assert_arr_eq(reading.samples, counted, sizeof(counted), "turn %d", turn);
	}
	cr_expect_eq(sets_lost(&reading.sets, false), 0);
	reading_stop(&reading);
}

/* In the last row: all of them are looked at. */
Test(sets, a_set_that_a_program_is_in_is_read_once_it_has_left)
{
	const struct plain_sample late = sample_of(1, 2), early = sample_of(1, 3);
	struct reading reading;
	uint64_t set;

	reading_start(&reading);
	plain_sample(reading.loader, &early);
	set = plain_enter(reading.loader, ROWS - 1);
	cr_expect_eq(take(&reading), -EAGAIN);
	cr_expect_eq(take(&reading), -EAGAIN);
	cr_expect_eq(reading.rows, 0);
	count(&reading, 2, 7); /* meanwhile others go on with the other set */
	plain_count(reading.loader, ROWS - 1, set, &late);
	plain_leave(reading.loader, ROWS - 1, set);
	cr_expect_eq(take(&reading), 0, "both");
	cr_expect_eq(reading.samples[1], 5);
	cr_expect_eq(reading.samples[2], 7);
	cr_expect_eq(take(&reading), 0);
	cr_expect_eq(reading.rows, 2);
	reading_stop(&reading);
}

/* As one that looked which set it is just before the turn. */
Test(sets, a_program_that_is_late_to_enter_counts_in_the_next_turn)
{
	const struct plain_sample late = sample_of(1, 2);
	struct profiled *profiled;
	struct reading reading;

	reading_start(&reading);
	profiled = plain_at(reading.loader, "profiled", 0);
	cr_expect_eq(take(&reading), 0);
	profiled->entered[0]++; /* the set that was just read */
	plain_count(reading.loader, 0, 0, &late);
	profiled->left[0]++;
	cr_expect_eq(take(&reading), 0);
	cr_expect_eq(take(&reading), 0);
	cr_expect_eq(reading.samples[1], 2);
	reading_stop(&reading);
}

Test(sets, what_cannot_be_read_is_read_later)
{
	struct reading reading;

	reading_start(&reading);
	for (uint64_t hash = 1; hash <= 5; hash++)
		count(&reading, hash, hash);
	plain_set_breaks(reading.loader, 0, 2);
	cr_expect_eq(take(&reading), -EINTR);
	cr_expect_eq(reading.rows, 2);
	count(&reading, 6, 6);
	plain_set_breaks(reading.loader, 0, -1);
	cr_expect_eq(take(&reading), 0);
	cr_expect_eq(take(&reading), 0);
	for (uint64_t hash = 1; hash <= 6; hash++)
		cr_expect_eq(reading.samples[hash], hash, "%lu: %lu", hash, reading.samples[hash]);
	reading_stop(&reading);
}

/* Of both sets and all CPUs, ever: turns do not set it back. */
Test(sets, what_finds_no_room_is_counted)
{
	struct reading reading;

	reading_start(&reading);
	for (uint64_t set = 0; set < STACK_SETS; set++) {
		const struct plain_sample more = { .key.hash = PLAIN_STACKS, .stack.samples = 3 };

		for (uint64_t hash = 0; hash < PLAIN_STACKS; hash++) {
			const struct plain_sample sample = { .key.hash = hash };

			plain_count(reading.loader, 0, set, &sample);
		}
		plain_count(reading.loader, 0, set, &more);
		plain_count(reading.loader, ROWS - 2, set, &more);
		plain_count(reading.loader, ROWS - 1, set, &more);
	}
	cr_expect_eq(sets_lost(&reading.sets, false), 12);
	cr_expect_eq(sets_lost(&reading.sets, true), 6, "of faults");
	cr_expect_eq(sets_lost(&reading.sets, false), 12);
	reading_stop(&reading);
}

Test(sets, are_not_there_without_the_feature)
{
	struct loader *loader = plain_loader_new(0, NULL, NULL);
	struct sets sets;

	cr_expect_eq(sets_open(&sets, loader), -ENOENT);
	sets_close(&sets);
	plain_loader_free(loader);
}
