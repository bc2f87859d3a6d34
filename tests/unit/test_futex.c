/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "machine/futex.h"

#define LEN(array) (sizeof(array) / sizeof((array)[0]))
#define OWNER 0x80000000U /* or'ed with the id of the thread that holds the lock */
#define WORD 0x7f0000001000ULL

/* What is decided at once, as bpf/threads/futex.h asks; `learnt` is what a word's history says. */
static bool is_lock(const struct futex_wait *wait, const struct futex_sight *sight, bool learnt)
{
	switch (futex_ask(wait)) {
	case FUTEX_LOCK:
		return true;
	case FUTEX_ASK_CODE:
		return futex_code_is_lock(wait, sight);
	case FUTEX_ASK_OWNER:
		return futex_owner_is_lock(sight);
	case FUTEX_ASK_RWLOCK:
		return futex_rwlock_is_lock(wait, sight, learnt);
	case FUTEX_ASK_KEY:
		return futex_key_is_lock(wait, sight);
	case FUTEX_ASK_WORD:
		switch (futex_word_kind(wait, sight)) {
		case WORD_IS_LOCK:
		case WORD_IS_STATE:
			return true;
		case WORD_MAY_BE:
		case WORD_MAY_BE_STATE:
			return learnt;
		}
	}
	return false;
}

/* --- as recorded ------------------------------------------------------------------------------ */

/* Waits of threads of which is known whether they wait for a lock (tests/userlands/record.py). */
struct recorded {
	const char *userland, *kind;
	int lock;
	struct futex_wait wait;
	struct {
		uint64_t code[4], before[4];
		uint32_t words[10], rwlock[8];
		uint64_t key, pointer;
	} seen; /* all that struct futex_sight may have */
};

static const struct recorded recorded[] = {
#include "fixtures/futexes.def"
};

static struct futex_sight sight_of(const struct recorded *row)
{
	struct futex_sight sight = { .key = row->seen.key, .pointer = row->seen.pointer };

	memcpy(sight.words, row->seen.words, sizeof(sight.words));
	switch (futex_ask(&row->wait)) {
	case FUTEX_ASK_CODE:
	case FUTEX_ASK_OWNER:
		memcpy(sight.code, row->seen.code, sizeof(sight.code));
		break;
	case FUTEX_ASK_RWLOCK:
		memcpy(sight.rwlock, row->seen.rwlock, sizeof(sight.rwlock));
		break;
	default:
		memcpy(sight.before, row->seen.before, sizeof(sight.before));
	}
	return sight;
}

#if defined(__x86_64__)

Test(futex, every_recorded_wait_is_told_for_what_it_is)
{
	for (size_t i = 0; i < LEN(recorded); i++) {
		const struct recorded *row = &recorded[i];
		const struct futex_sight sight = sight_of(row);

		cr_expect_eq(is_lock(&row->wait, &sight, row->lock), row->lock,
			     "row %zu: %s, %s, op %u, expected %#x", i, row->userland, row->kind,
			     row->wait.op, row->wait.expected);
	}
}

#endif

Test(futex, no_recorded_wait_is_a_lock_by_its_value_alone)
{
	for (size_t i = 0; i < LEN(recorded); i++) {
		const struct futex_sight blind = { 0 };

		if (!recorded[i].lock)
			cr_expect(!is_lock(&recorded[i].wait, &blind, false), "row %zu: %s", i,
				  recorded[i].userland);
	}
}

/* --- values ----------------------------------------------------------------------------------- */

static struct futex_wait wait_for(uint32_t op, uint32_t expected)
{
	return (struct futex_wait){ .word = WORD, .op = op, .expected = expected };
}

static void expect_ask(uint32_t question, uint32_t op, uint32_t expected)
{
	struct futex_wait wait = wait_for(op, expected);

	cr_expect_eq(futex_ask(&wait), question, "op %u, expected %#x", op, expected);
}

Test(futex, a_word_that_says_who_has_the_lock_is_a_lock)
{
	static const uint32_t ops[] = { 0, 128, 393, 265 };

	for (size_t i = 0; i < LEN(ops); i++) {
		expect_ask(FUTEX_ASK_OWNER, ops[i], OWNER | 1);
		expect_ask(FUTEX_ASK_OWNER, ops[i], OWNER | 4194304);
		expect_ask(FUTEX_ASK_OWNER, ops[i], OWNER | 0x40000000 | 4711);
		expect_ask(FUTEX_ASK_OWNER, ops[i], 0x40000000 | 4711); /* musl's streams */
		expect_ask(FUTEX_PARK, ops[i], OWNER | 4194305);
		expect_ask(FUTEX_PARK, ops[i], OWNER);
		expect_ask(FUTEX_PARK, ops[i], 0);
		expect_ask(FUTEX_PARK, ops[i], 4704);
	}
}

Test(futex, locks_with_priority_inheritance_have_calls_of_their_own)
{
	static const uint32_t ops[] = { 6, 134, 13, 141 };

	for (size_t i = 0; i < LEN(ops); i++)
		expect_ask(FUTEX_LOCK, ops[i], 0);
	expect_ask(FUTEX_PARK, 139, 2); /* FUTEX_WAIT_REQUEUE_PI: a condition variable */
}

Test(futex, a_word_in_the_frame_of_who_waits_is_a_park)
{
	struct futex_wait wait = wait_for(128, 2);

	cr_expect_eq(futex_ask(&wait), FUTEX_ASK_CODE);
	wait.own_frame = 1;
	cr_expect_eq(futex_ask(&wait), FUTEX_PARK);
}

/* --- glibc ------------------------------------------------------------------------------------ */

static const struct futex_sight held = { .words = { 2, 0, 4711, 1 } };

static bool mutex_at(size_t word, uint32_t value)
{
	struct futex_wait wait = wait_for(128, 2);
	struct futex_sight sight = held;

	sight.words[word] = value;
	return is_lock(&wait, &sight, false);
}

Test(futex, a_mutex_is_told_by_its_owner_where_its_code_does_not_tell)
{
	cr_expect(mutex_at(2, 4711));
	cr_expect(mutex_at(2, 1));
	cr_expect(!mutex_at(2, 0), "no owner");
	cr_expect(!mutex_at(2, 4194305), "no thread id");
	cr_expect(!mutex_at(3, 0), "no users");
	cr_expect(!mutex_at(1, 1), "a count, and not recursive");
	cr_expect(!mutex_at(4, 1), "recursive, and no count");
	cr_expect(mutex_at(4, 2), "error checking");
	cr_expect(!mutex_at(4, 0x80), "shared, with a private wait");
	cr_expect(!mutex_at(4, 0x400), "no kind");
	cr_expect(!mutex_at(5, 7), "spins, and not adaptive");
	for (size_t i = 6; i < 10; i++)
		cr_expect(!mutex_at(i, 1), "in a list, and not robust");
}

Test(futex, a_wait_of_unknown_code_for_a_word_with_nothing_around_is_a_park)
{
	struct futex_wait wait = wait_for(128, 2);
	struct futex_sight nothing = { .words = { 2 } };

	cr_expect(!is_lock(&wait, &nothing, false));
	/* pthread_barrier_t, two threads, second round: in, current_round, count, shared, out */
	nothing.before[3] = 3ULL << 32;
	nothing.words[1] = 2;
	cr_expect(!is_lock(&wait, &nothing, false));
	wait.op = 0; /* pthread_join of thread 2 before glibc 2.34 */
	cr_expect(!is_lock(&wait, &nothing, false));
}

static bool recursive_is_lock(uint32_t spins, uint32_t list)
{
	struct futex_wait wait = wait_for(128, 2);
	struct futex_sight sight = { .words = { 2, 1, 4711, 1, 1, spins, list } };

	return is_lock(&wait, &sight, false);
}

/* Adaptive mutexes spin, and those that may be elided; a recursive one never does. */
Test(futex, only_a_mutex_that_may_spin_has_spun)
{
	static const struct {
		uint32_t kind;
		bool lock;
	} rows[] = { { 3, true }, { 0x100, true }, { 0x200, true }, { 0, false }, { 2, false } };
	struct futex_wait wait = wait_for(128, 2);

	for (size_t i = 0; i < LEN(rows); i++) {
		struct futex_sight sight = held;

		sight.words[4] = rows[i].kind;
		sight.words[5] = 100;
		cr_expect_eq(is_lock(&wait, &sight, false), rows[i].lock, "kind %#x", rows[i].kind);
	}
	cr_expect(!recursive_is_lock(100, 0), "it does not spin");
	cr_expect(!recursive_is_lock(0, 7), "it is in a list, and not robust");
	cr_expect(recursive_is_lock(0, 0));
}

/* pthread_mutexattr_setrobust: it is in a list of its owner. */
Test(futex, a_robust_mutex_is_in_a_list)
{
	struct futex_wait wait = wait_for(128, 2);
	struct futex_sight sight = held;

	sight.words[4] = 0x10;
	sight.words[6] = 0x1000;
	cr_expect(is_lock(&wait, &sight, false));
}

Test(futex, a_mutex_between_processes_is_waited_for_as_such)
{
	struct futex_wait wait = wait_for(0, 2);
	struct futex_sight sight = held;

	sight.words[4] = 0x80;
	cr_expect(is_lock(&wait, &sight, false));
	sight.words[4] = 0;
	cr_expect(!is_lock(&wait, &sight, false));
}

#if defined(__x86_64__)

static struct futex_sight sight_of_code(const uint8_t code[32])
{
	struct futex_sight sight = { 0 };

	memcpy(sight.code, code, sizeof(sight.code));
	return sight;
}

/* mov $2, %edx; nothing else is known of the code. */
Test(futex, code_that_waits_for_a_two_says_so_anywhere_before_the_system_call)
{
	static const uint8_t mov[] = { 0xba, 2, 0, 0, 0 };
	struct futex_wait wait = wait_for(128, 2);

	for (size_t at = 0; at <= 32 - sizeof(mov); at++) {
		uint8_t code[32] = { 0 };
		struct futex_sight sight;

		memcpy(code + at, mov, sizeof(mov));
		sight = sight_of_code(code);
		cr_expect(is_lock(&wait, &sight, false), "at %zu", at);
		code[at + 1] = 1;
		sight = sight_of_code(code);
		cr_expect(!is_lock(&wait, &sight, false), "one, at %zu", at);
	}
}

Test(futex, an_instruction_that_is_cut_off_is_none)
{
	struct futex_wait wait = wait_for(128, 2);
	uint8_t code[32] = { [28] = 0xba, [29] = 2 };
	struct futex_sight sight = sight_of_code(code);

	cr_expect(!is_lock(&wait, &sight, false));
}

/* mov 0x20(%rsp), %r8; mov 0x28(%rsp), %r9d; mov $SYS_futex, %eax; syscall */
Test(futex, the_code_of_go_is_known_by_all_of_its_last_instructions)
{
	static const uint64_t go[] = { 0x244c8b442024448bULL, 0x050f000000cab828ULL };
	struct futex_wait wait = wait_for(128, 2);

	cr_expect(is_lock(&wait, &(struct futex_sight){ .code = { 0, 0, go[0], go[1] } }, false));
	cr_expect(!is_lock(&wait, &(struct futex_sight){ .code = { 0, 0, 0, go[1] } }, false));
	cr_expect(!is_lock(&wait, &(struct futex_sight){ .code = { 0, 0, go[0], 0 } }, false));
}

/* mov 8(%rsp), %r9; syscall: whatever lies around, and whatever is loaded before. */
Test(futex, a_wait_by_syscall_is_a_park_although_it_looks_like_a_mutex)
{
	static const uint8_t end[] = { 0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05 };
	uint8_t code[32] = { 0xba, 2, 0, 0, 0 };
	struct futex_wait wait = wait_for(128, 2);
	struct futex_sight sight;

	memcpy(code + sizeof(code) - sizeof(end), end, sizeof(end));
	sight = sight_of_code(code);
	memcpy(sight.words, held.words, sizeof(sight.words));
	cr_expect(!is_lock(&wait, &sight, false));
	code[31] = 0x34; /* sysenter, which is none */
	sight = sight_of_code(code);
	memcpy(sight.words, held.words, sizeof(sight.words));
	cr_expect(is_lock(&wait, &sight, false));
}

/* By syscall(3) of glibc and of musl, and by code that is neither. */
Test(futex, a_program_s_own_futex_may_have_any_value)
{
	static const struct {
		uint64_t last;
		bool lock;
	} codes[] = { { 0x050f08244c8b4c00ULL, false },
		      { 0x050f18528b481072ULL, false },
		      { 0x050f000000cab800ULL, true } };
	static const uint32_t ops[] = { 0, 128, 393, 265 };

	for (size_t i = 0; i < LEN(codes) * LEN(ops); i++) {
		struct futex_wait wait = wait_for(ops[i % LEN(ops)], OWNER | 1);
		struct futex_sight sight = { .code[3] = codes[i / LEN(ops)].last };

		cr_expect_eq(is_lock(&wait, &sight, false), codes[i / LEN(ops)].lock, "%zu", i);
	}
}

#endif

/* Offset of the word in the rwlock, what is expected, and the eight words. */
static bool rwlock(uint32_t offset, uint32_t expected, struct futex_sight sight)
{
	struct futex_wait wait = wait_for(393, expected);

	wait.word = WORD + offset;
	cr_expect_eq(futex_rwlock(&wait), WORD);
	return is_lock(&wait, &sight, false);
}

#define RWLOCK(...)                       \
	(struct futex_sight)              \
	{                                 \
		.rwlock = { __VA_ARGS__ } \
	}

Test(futex, a_rwlock_is_told_by_who_has_it)
{
	cr_expect(rwlock(8, 3, RWLOCK(8 | 3, 0, 3, 1, 0, 0, 4711, 0)), "reader, written");
	cr_expect(rwlock(8, 2, RWLOCK(16 | 2, 1, 2, 1, 0, 0, 0, 0)), "writer, read");
	cr_expect(rwlock(8, 2, RWLOCK(8 | 2, 1, 2, 1, 0, 0, 0, 0)), "writer, read by one");
	cr_expect(rwlock(12, 3, RWLOCK(3, 1, 1, 3, 0, 0, 4711, 0)), "writer, written");
	cr_expect(rwlock(0, 15, RWLOCK(15, 1, 1, 1, 0, 0, 4711, 0)),
		  "reader that lets writers pass");
}

Test(futex, a_rwlock_that_is_known_may_just_have_been_given_back)
{
	struct futex_wait wait = wait_for(393, 3);
	struct futex_sight sight = RWLOCK(0, 1, 1, 0, 0, 0, 0, 0);

	wait.word = WORD + 12;
	cr_expect(!is_lock(&wait, &sight, false));
	cr_expect(is_lock(&wait, &sight, true));
	for (int other = 2; other < 8; other++) {
		if (other == 6)
			continue; /* the writer, which may be any */
		sight = RWLOCK(0, 1, 1, 0, 0, 0, 0, 0);
		sight.rwlock[other] = 4;
		cr_expect(!is_lock(&wait, &sight, true), "%d", other);
	}
}

Test(futex, what_is_not_held_or_no_rwlock_is_a_park)
{
	cr_expect(!rwlock(8, 3, RWLOCK(8 | 3, 0, 3, 1, 0, 0, 0, 0)), "nobody writes");
	cr_expect(!rwlock(8, 3, RWLOCK(8 | 1, 0, 3, 1, 0, 0, 4711, 0)), "not locked");
	cr_expect(!rwlock(8, 3, RWLOCK(8 | 3, 0, 3, 1, 0, 0, 4711, 1)), "shared");
	cr_expect(!rwlock(8, 3, RWLOCK(8 | 3, 0, 3, 0, 0, 0, 4711, 0)), "no writers' word");
	cr_expect(!rwlock(8, 2, RWLOCK(2, 1, 2, 1, 0, 0, 0, 0)), "nobody reads");
	cr_expect(!rwlock(8, 2, RWLOCK(16 | 2, 1, 2, 1, 5, 0, 0, 0)), "padding");
	cr_expect(!rwlock(8, 2, RWLOCK(16 | 2, 1, 2, 1, 0, 5, 0, 0)), "padding");
	cr_expect(!rwlock(8, 2, RWLOCK(16 | 2, 1, 4, 1, 0, 0, 0, 0)), "no readers' word");
	cr_expect(!rwlock(8, 2, RWLOCK(16 | 2, 1, 2, 5, 0, 0, 0, 0)), "no writers' word");
	cr_expect(!rwlock(12, 2, RWLOCK(3, 1, 1, 3, 0, 0, 4711, 0)), "not what writers wait for");
	cr_expect(!rwlock(12, 3, RWLOCK(3, 1, 1, 3, 0, 0, 0, 0)), "nobody has it");
	cr_expect(!rwlock(8, 2, RWLOCK(16 | 3, 1, 2, 1, 0, 0, 0, 0)), "it is the writers' turn");
	cr_expect(!rwlock(8, 3, RWLOCK(8 | 2, 0, 3, 1, 0, 0, 4711, 0)), "it is the readers' turn");
	/* glibc 2.41's condition variable: g1_orig_size, wrefs, g_signals, two unused */
	cr_expect(!rwlock(8, 2, RWLOCK(8, 16 << 3, 2, 0, 0, 0, 0, 0)));
	cr_expect(!rwlock(8, 3, RWLOCK(8, 16 << 3, 3, 1, 0, 0, 0, 0)));
	cr_expect(!rwlock(12, 3, RWLOCK(8, 16 << 3, 2, 3, 0, 0, 0, 0)));
}

/* --- parking_lot ------------------------------------------------------------------------------ */

static bool parked(uint64_t token, uint64_t state, uint64_t pointer)
{
	struct futex_wait wait = wait_for(128, 1);
	struct futex_sight sight = { .before = { 0x5622783688a0, 0, 1, token },
				     .words = { 1 },
				     .key = state,
				     .pointer = pointer };

	return is_lock(&wait, &sight, false);
}

Test(futex, a_thread_parked_for_a_lock_of_parking_lot_waits_for_a_lock)
{
	cr_expect(parked(0, 3, 0), "mutex");
	cr_expect(parked(0, 0x1122334455667703, 0), "mutex and its data");
	cr_expect(!parked(0, 0x562278364703, 1), "condition variable");
	cr_expect(!parked(0, 1, 0), "mutex for which nobody waits");
	cr_expect(!parked(0, 0, 0), "condition variable for which nobody waits");
	cr_expect(parked(16, 9, 0), "reader, written");
	cr_expect(parked(8, 0x22, 0), "writer, read by two");
	cr_expect(parked(20, 9, 0), "reader that may upgrade, written");
	cr_expect(!parked(18, 9, 0), "no token");
	cr_expect(!parked(17, 9, 0), "no token");
	cr_expect(!parked(8, 8, 0), "nobody waits");
	cr_expect(!parked(8, 3, 0), "nobody has it");
	cr_expect(!parked(8, 0x562278364703, 0), "an address");
	cr_expect(!parked(24, 9, 0), "no token");
}

/* A mutex of parking_lot is one byte, wherever that lies. */
Test(futex, what_a_thread_is_parked_for_is_told_by_the_address_of_the_lock)
{
	struct futex_wait wait = wait_for(128, 1);
	struct futex_sight sight = { .before = { 0x5622783688a3, 0x7f00, 1, 0 },
				     .words = { 1 },
				     .key = 3 };

	cr_expect_eq(futex_key(&sight), 0x5622783688a2);
	cr_expect(is_lock(&wait, &sight, false));
	sight.before[1] = 0x7f01;
	cr_expect(!is_lock(&wait, &sight, false), "no next thread in the queue");
	sight.before[1] = 0;
	sight.before[2] = 2;
	cr_expect(!is_lock(&wait, &sight, false), "no token");
}

Test(futex, a_parked_thread_says_behind_its_word_whether_it_may_give_up)
{
	struct futex_wait wait = wait_for(128, 1);
	struct futex_sight sight = { .before = { 0x5622783688a0, 0, 1, 0 },
				     .words = { 1, 0xabcd00 },
				     .key = 3 };

	cr_expect(is_lock(&wait, &sight, false));
	wait.timed = 1;
	cr_expect(!is_lock(&wait, &sight, false));
	sight.words[1] |= 1;
	cr_expect(is_lock(&wait, &sight, false));
	sight.words[1] |= 3;
	cr_expect(!is_lock(&wait, &sight, false));
}
