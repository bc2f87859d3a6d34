/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a word tells a lock from a park, where a wait alone does not. */
#include <criterion/criterion.h>

#include <stddef.h>
#include <stdint.h>

#include "machine/futex.h"
#include "machine/words.h"

#define LEN(array) (sizeof(array) / sizeof((array)[0]))
#define WORD 0x7f0000001000ULL

static uint64_t judged(uint64_t known, uint32_t expected, uint32_t now, int times)
{
	while (times--)
		known = word_judge(known, expected, now);
	return known;
}

Test(words, a_word_that_comes_back_is_a_lock_and_one_that_counts_never_is)
{
	cr_expect(!word_is_lock(judged(0, 2, 2, 1)));
	cr_expect(word_is_lock(judged(0, 2, 2, 2)));
	cr_expect(word_is_lock(judged(0, 2, 0, 100)));
	cr_expect(!word_is_lock(judged(0, 2, 3, 1)));
	cr_expect(!word_is_lock(judged(judged(0, 2, 3, 1), 2, 2, 100)));
	cr_expect(!word_is_lock(judged(judged(0, 2, 2, 100), 2, 3, 1)));
}

Test(words, however_often_a_word_comes_back_it_is_a_lock)
{
	for (int times = 2; times < 40; times++) {
		cr_expect(word_is_lock(judged(0, 2, 2, times)), "%d times", times);
		cr_expect(word_is_lock(judged(0, ~0U, 2, times)), "%d times", times);
	}
}

Test(words, what_speaks_against_a_rwlock_is_forgotten_as_what_speaks_for_it)
{
	uint64_t known = judged(judged(0, ~0U, 0, 9), ~0U, 2, 1);

	cr_expect(!word_is_lock(known));
	cr_expect(word_is_lock(judged(known, ~0U, 2, 1)));
	cr_expect(!word_is_lock(judged(judged(known, ~0U, 0, 1), ~0U, 2, 1)));
}

/* As recorded: -1 of both, then 0x40000000 and numbers of readers, or 0 and 1. */
Test(words, a_rwlock_has_an_owner_and_a_parked_thread_has_none)
{
	cr_expect(word_is_lock(judged(0, ~0U, 0x40000000, 2)));
	cr_expect(word_is_lock(judged(0, ~0U, 2, 2)));
	cr_expect(!word_is_lock(judged(0, ~0U, 0, 100)));
	cr_expect(!word_is_lock(judged(0, ~0U, 1, 100)));
	cr_expect(!word_is_lock(judged(0, ~0U, ~0U, 100)));
	cr_expect(!word_is_lock(judged(judged(0, ~0U, 2, 100), ~0U, 0, 7)), "memory used anew");
}

Test(words, what_is_known_of_a_word_is_found_again)
{
	struct word_set set = { 0 };
	uint64_t hashes[WORDS_PER_SET + 1];
	size_t known;

	for (size_t i = 0; i < LEN(hashes); i++)
		hashes[i] = word_hash(12345, WORD + 64 * i);
	for (size_t i = 0; i < WORDS_PER_SET; i++)
		cr_expect_eq(word_remember(&set, hashes[i], i, 0), 0);
	for (size_t i = 0; i < WORDS_PER_SET; i++)
		cr_expect_eq(word_known(&set, hashes[i]) & 0xff, i);
	for (size_t i = 0; i < WORDS_PER_SET; i++)
		cr_expect_eq(word_remember(&set, hashes[i], i, 0), 0, "it has a place");
	cr_expect_eq(word_remember(&set, hashes[1], 7, 0), 0);
	cr_expect_eq(word_known(&set, hashes[1]) & 0xff, 7);
	cr_expect_eq(word_known(&set, hashes[WORDS_PER_SET]), 0);
	cr_expect_eq(word_remember(&set, hashes[WORDS_PER_SET], 5, 2), 1, "one is forgotten");
	cr_expect_eq(word_known(&set, hashes[WORDS_PER_SET]) & 0xff, 5);
	known = 0;
	for (size_t i = 0; i < WORDS_PER_SET; i++)
		known += word_known(&set, hashes[i]) != 0;
	cr_expect_eq(known, WORDS_PER_SET - 1);
}

static struct word_set set_of(size_t first)
{
	struct word_set set = { 0 };

	for (size_t i = 0; i < WORDS_PER_SET; i++)
		word_remember(&set, word_hash(12345, WORD + 64 * (first + i)), 7, 0);
	return set;
}

Test(words, a_set_ends_where_the_next_one_begins)
{
	struct word_set sets[2] = { [1] = set_of(0) };

	for (size_t i = 0; i < WORDS_PER_SET; i++)
		cr_expect_eq(word_known(&sets[0], word_hash(12345, WORD + 64 * i)), 0);
	sets[0] = set_of(100);
	for (size_t i = 0; i < WORDS_PER_SET; i++)
		cr_expect_eq(word_remember(&sets[0], word_hash(12345, WORD + 64 * i), 7, i), 1);
	sets[1] = (struct word_set){ 0 };
	cr_expect_eq(word_remember(&sets[0], word_hash(12345, WORD + 64 * 99), 7, 1), 1);
	cr_expect_eq(word_known(&sets[0], word_hash(12345, WORD)) & 0xff, 7, "another one");
}

Test(words, one_address_in_two_processes_is_two_words)
{
	struct word_set set = { 0 };

	word_remember(&set, word_hash(1, WORD), 7, 0);
	cr_expect_eq(word_known(&set, word_hash(2, WORD)), 0);
}

/* Rust, as recorded: what is waited for, and the word before. */
static uint32_t rust(uint32_t expected, uint32_t state)
{
	struct futex_wait wait = { .word = WORD, .op = 137, .expected = expected };
	struct futex_sight sight = { .before = { 0, 0, 0, (uint64_t)state << 32 } };

	cr_expect_eq(futex_ask(&wait), FUTEX_ASK_WORD);
	return futex_word_kind(&wait, &sight);
}

Test(words, a_rwlock_of_rust_tells_by_its_state_who_has_it)
{
	cr_expect_eq(rust(0x7fffffff, 0), WORD_IS_LOCK);
	cr_expect_eq(rust(0xc0000002, 0), WORD_IS_LOCK);
	cr_expect_eq(rust(0x88, 0xbfffffff), WORD_IS_STATE);
	cr_expect_eq(rust(0, 0x80000001), WORD_IS_STATE);
	cr_expect_eq(rust(0x88, ~0U), WORD_MAY_BE_STATE);
	cr_expect_eq(rust(0x88, 0x40000001), WORD_IS_PARK);
	cr_expect_eq(rust(2, 0), WORD_MAY_BE);
	cr_expect_eq(rust(~0U, 0), WORD_MAY_BE);
	cr_expect_eq(rust(0, 0), WORD_IS_PARK);
	cr_expect_eq(rust(3, 7), WORD_IS_PARK);
}
