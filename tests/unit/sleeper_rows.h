/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of system calls and the states they are expected to be, outside of a request and inside. The
 * numbers are those of the kernel's tables, written out here once more and not taken from
 * machine/syscalls.h, which is under test as well.
 */
#ifndef UNIT_SLEEPER_ROWS_H
#define UNIT_SLEEPER_ROWS_H

#include <criterion/criterion.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/classify.h"

#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define NR(x86, arm64) (arm64)
#else
#define NR(x86, arm64) (x86)
#endif
#define NONE (-2) /* not on this architecture */

#define LEN(array) (sizeof(array) / sizeof((array)[0]))
#define PAGE_FAULT (-1)
#define NR_FUTEX NR(202, 98)
#define NR_READ NR(0, 63)
#define NR_IO_URING_ENTER 426
#define JUNK (0xdeadbeefULL << 32)

/* What is a lock is told before, from what the thread can see (machine/futex.h). */
#define PRIVATE 128
#define SHARED 0
#define THE_LOCK 0x7f0000001000

struct row {
	const char *name;
	int64_t number;
	uint32_t outside, inside; /* state outside of a request, and inside */
	uint64_t args[4];
};

static inline const char *state_name(uint32_t state)
{
#define STATE(id, label) label,
	static const char *const names[] = { STATE_LIST(STATE) };
#undef STATE

	return state < STATES ? names[state] : "none";
}

static inline void expect_state(const char *name, const struct sleeper *sleeper, uint32_t expected)
{
	uint32_t got = classify(sleeper);

	cr_expect_eq(got, expected, "%s%s: %s, not %s", name,
		     sleeper->in_request ? " in a request" : "", state_name(got),
		     state_name(expected));
}

static inline void expect_row(const struct row *row, struct sleeper sleeper)
{
	if (row->number == NONE)
		return;
	sleeper.syscall = row->number;
	for (int i = 0; i < 4; i++)
		sleeper.args[i] = row->args[i];
	expect_state(row->name, &sleeper, row->outside);
	sleeper.in_request = 1;
	expect_state(row->name, &sleeper, row->inside);
}

static inline void expect_rows_of(struct sleeper sleeper, const struct row *rows, size_t len)
{
	for (size_t i = 0; i < len; i++)
		expect_row(&rows[i], sleeper);
}

static inline void expect_rows(const struct row *rows, size_t len)
{
	expect_rows_of((struct sleeper){}, rows, len);
}

#define SAME(name, number, state, ...)      \
	{                                   \
		name, number, state, state, \
		{                           \
			__VA_ARGS__         \
		}                           \
	}
#define ELSE_IDLE(name, number, state, ...)      \
	{                                        \
		name, number, STATE_IDLE, state, \
		{                                \
			__VA_ARGS__              \
		}                                \
	}

#endif
