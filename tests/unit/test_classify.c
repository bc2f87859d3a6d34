/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers are those of the kernel's tables, written out here once more and not taken from
 * machine/syscalls.h, which is under test as well.
 */
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
#define OWNER 0x80000000U /* FUTEX_WAITERS, or'ed with the id of the thread that holds the lock */

struct row {
	const char *name;
	int64_t number;
	uint32_t outside, inside; /* state outside of a request, and inside */
	uint64_t args[4];
};

static const char *state_name(uint32_t state)
{
#define STATE(id, label) label,
	static const char *const names[] = { STATE_LIST(STATE) };
#undef STATE

	return state < STATES ? names[state] : "none";
}

static void expect_state(const char *name, const struct sleeper *sleeper, uint32_t expected)
{
	uint32_t got = classify(sleeper);

	cr_expect_eq(got, expected, "%s%s: %s, not %s", name,
		     sleeper->in_request ? " in a request" : "", state_name(got),
		     state_name(expected));
}

static void expect_row(const struct row *row, struct sleeper sleeper)
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

static void expect_rows_of(struct sleeper sleeper, const struct row *rows, size_t len)
{
	for (size_t i = 0; i < len; i++)
		expect_row(&rows[i], sleeper);
}

static void expect_rows(const struct row *rows, size_t len)
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

Test(classify, waiting_for_events_or_connections_is_idle_even_in_a_request)
{
	static const struct row rows[] = {
		SAME("poll", NR(7, NONE), STATE_IDLE, 0x7000, 2),
		SAME("ppoll", NR(271, 73), STATE_IDLE, 0x7000, 2),
		SAME("select", NR(23, NONE), STATE_IDLE, 5),
		SAME("pselect6", NR(270, 72), STATE_IDLE, 5),
		SAME("epoll_wait", NR(232, NONE), STATE_IDLE, 4),
		SAME("epoll_pwait", NR(281, 22), STATE_IDLE, 4),
		SAME("epoll_pwait2", 441, STATE_IDLE, 4),
		SAME("accept", NR(43, 202), STATE_IDLE, 3),
		SAME("accept4", NR(288, 242), STATE_IDLE, 3),
		SAME("io_getevents", NR(208, 4), STATE_IDLE, 3),
		SAME("io_pgetevents", NR(333, 292), STATE_IDLE, 3),
		SAME("rt_sigtimedwait", NR(128, 137), STATE_IDLE),
		SAME("rt_sigsuspend", NR(130, 133), STATE_IDLE),
		SAME("pause", NR(34, NONE), STATE_IDLE),
		SAME("io_uring_enter", NR_IO_URING_ENTER, STATE_IDLE, 3),
	};

	expect_rows(rows, LEN(rows));
}

Test(classify, sleeping_is_sleep)
{
	static const struct row rows[] = {
		SAME("nanosleep", NR(35, 101), STATE_SLEEP),
		SAME("clock_nanosleep", NR(230, 115), STATE_SLEEP, 1),
	};

	expect_rows(rows, LEN(rows));
}

/* The number of descriptors is the second argument of poll and the first of select. */
Test(classify, poll_and_select_without_descriptors_are_sleep)
{
	static const struct row rows[] = {
		SAME("poll", NR(7, NONE), STATE_SLEEP, 0x7000, 0, 100),
		SAME("ppoll", NR(271, 73), STATE_SLEEP, 0x7000, 0, 0x7000),
		SAME("select", NR(23, NONE), STATE_SLEEP, 0, 0x7000),
		SAME("pselect6", NR(270, 72), STATE_SLEEP, 0, 0x7000),
	};

	expect_rows(rows, LEN(rows));
}

/* A client library that waits for its answer polls one descriptor; an event loop polls more. */
Test(classify, poll_for_one_descriptor_is_network_in_a_request_and_else_idle)
{
	static const struct row rows[] = {
		ELSE_IDLE("poll", NR(7, NONE), STATE_NETWORK, 0x7000, 1),
		ELSE_IDLE("ppoll", NR(271, 73), STATE_NETWORK, 0x7000, 1),
		SAME("select", NR(23, NONE), STATE_IDLE, 1),
		SAME("pselect6", NR(270, 72), STATE_IDLE, 1),
	};

	expect_rows(rows, LEN(rows));
}

/* poll(struct pollfd *, unsigned int, int) */
Test(classify, upper_half_of_the_number_of_polled_descriptors_is_ignored)
{
	static const struct row rows[] = {
		SAME("no descriptor", NR(271, 73), STATE_SLEEP, 0x7000, JUNK),
		ELSE_IDLE("one", NR(271, 73), STATE_NETWORK, 0x7000, JUNK | 1),
		SAME("two", NR(271, 73), STATE_IDLE, 0x7000, JUNK | 2),
	};

	expect_rows(rows, LEN(rows));
}

Test(classify, receiving_is_network_in_a_request_and_else_idle)
{
	static const struct row rows[] = {
		ELSE_IDLE("recvfrom", NR(45, 207), STATE_NETWORK, 5),
		ELSE_IDLE("recvmsg", NR(47, 212), STATE_NETWORK, 5),
		ELSE_IDLE("recvmmsg", NR(299, 243), STATE_NETWORK, 5),
	};

	expect_rows(rows, LEN(rows));
}

Test(classify, connecting_and_sending_are_network)
{
	static const struct row rows[] = {
		SAME("connect", NR(42, 203), STATE_NETWORK, 5),
		SAME("sendto", NR(44, 206), STATE_NETWORK, 5),
		SAME("sendmsg", NR(46, 211), STATE_NETWORK, 5),
		SAME("sendmmsg", NR(307, 269), STATE_NETWORK, 5),
	};

	expect_rows(rows, LEN(rows));
}

Test(classify, reading_and_writing_is_wait_in_a_request_and_else_idle)
{
	static const struct row rows[] = {
		ELSE_IDLE("read", NR_READ, STATE_WAIT, 5),
		ELSE_IDLE("readv", NR(19, 65), STATE_WAIT, 5),
		ELSE_IDLE("write", NR(1, 64), STATE_WAIT, 5),
		ELSE_IDLE("writev", NR(20, 66), STATE_WAIT, 5),
		ELSE_IDLE("sendfile", NR(40, 71), STATE_WAIT, 5),
		ELSE_IDLE("splice", NR(275, 76), STATE_WAIT, 5),
	};

	expect_rows(rows, LEN(rows));
}

Test(classify, waiting_for_another_process_is_wait_in_a_request_and_else_idle)
{
	static const struct row rows[] = {
		ELSE_IDLE("wait4", NR(61, 260), STATE_WAIT, -1),
		ELSE_IDLE("waitid", NR(247, 95), STATE_WAIT, 0),
		ELSE_IDLE("fcntl", NR(72, 25), STATE_WAIT, 5, 7),
		ELSE_IDLE("flock", NR(73, 32), STATE_WAIT, 5),
		ELSE_IDLE("semop", NR(65, 193), STATE_WAIT, 5),
		ELSE_IDLE("semtimedop", NR(220, 192), STATE_WAIT, 5),
		ELSE_IDLE("msgrcv", NR(70, 188), STATE_WAIT, 5),
		ELSE_IDLE("mq_timedreceive", NR(243, 183), STATE_WAIT, 5),
	};

	expect_rows(rows, LEN(rows));
}

Test(classify, everything_else_is_wait)
{
	static const struct row rows[] = {
		SAME("page fault", PAGE_FAULT, STATE_WAIT),
		SAME("clone3", 435, STATE_WAIT),
		SAME("fsync, interruptibly", NR(74, 82), STATE_WAIT),
		SAME("unknown", 9999, STATE_WAIT),
		SAME("largest", INT64_MAX, STATE_WAIT),
		SAME("smallest", INT64_MIN, STATE_WAIT),
	};

	expect_rows(rows, LEN(rows));
}

/* Measured operations: 128 private, 256 realtime clock, 9 WAIT_BITSET, 6 LOCK_PI. */
Test(classify, a_futex_that_someone_else_holds_is_a_lock)
{
	static const struct row rows[] = {
		SAME("pthread_mutex", NR_FUTEX, STATE_LOCK, 0x1000, 128, 2),
		SAME("pthread_mutex between processes", NR_FUTEX, STATE_LOCK, 0x1000, 0, 2),
		SAME("pthread_mutex, PI", NR_FUTEX, STATE_LOCK, 0x1000, 134, 0),
		SAME("pthread_mutex, PI, between processes", NR_FUTEX, STATE_LOCK, 0x1000, 6, 0),
		SAME("pthread_mutex, PI, since 5.14", NR_FUTEX, STATE_LOCK, 0x1000, 141, 0),
		SAME("pthread_mutex_timedlock", NR_FUTEX, STATE_LOCK, 0x1000, 393, 2),
		SAME("pthread_rwlock, reader", NR_FUTEX, STATE_LOCK, 0x1000, 393, 2),
		SAME("pthread_rwlock, writer", NR_FUTEX, STATE_LOCK, 0x1000, 393, 3),
		SAME("Rust Mutex", NR_FUTEX, STATE_LOCK, 0x1000, 137, 2),
		SAME("Go runtime lock", NR_FUTEX, STATE_LOCK, 0x1000, 128, 2),
		SAME("CPython, inner mutex of the GIL", NR_FUTEX, STATE_LOCK, 0x1000, 128, 2),
		SAME("musl's mutex", NR_FUTEX, STATE_LOCK, 0x1000, 128, OWNER | 4711),
		SAME("musl's mutex between processes", NR_FUTEX, STATE_LOCK, 0x1000, 0, OWNER | 1),
		SAME("pthread_mutex, robust", NR_FUTEX, STATE_LOCK, 0x1000, 128, OWNER | 4194303),
		SAME("futex_wait", 455, STATE_LOCK, 0x1000, 2, ~0ULL, 130),
	};

	expect_rows(rows, LEN(rows));
}

/* Of a prefork server: a lock between processes, in shared memory. */
Test(classify, a_lock_that_only_another_process_can_hold_is_a_turn_outside_of_requests)
{
	static const struct row rows[] = {
		ELSE_IDLE("Apache's accept mutex, PI", NR_FUTEX, STATE_LOCK, 0x1000, 6, 0),
		ELSE_IDLE("pthread_mutex between processes", NR_FUTEX, STATE_LOCK, 0x1000, 0, 2),
		ELSE_IDLE("robust", NR_FUTEX, STATE_LOCK, 0x1000, 0, OWNER | 4711),
		ELSE_IDLE("futex_wait", 455, STATE_LOCK, 0x1000, 2, ~0ULL, 2),
	};

	expect_rows_of((struct sleeper){ .alone = 1 }, rows, LEN(rows));
}

/* As after a fork while another thread held it: for ever. */
Test(classify, a_private_lock_is_a_lock_although_no_other_thread_is_left)
{
	static const struct row rows[] = {
		SAME("pthread_mutex", NR_FUTEX, STATE_LOCK, 0x1000, 128, 2),
		SAME("pthread_mutex, PI", NR_FUTEX, STATE_LOCK, 0x1000, 134, 0),
		SAME("musl's mutex", NR_FUTEX, STATE_LOCK, 0x1000, 128, OWNER | 4711),
		SAME("futex_wait", 455, STATE_LOCK, 0x1000, 2, ~0ULL, 130),
	};

	expect_rows_of((struct sleeper){ .alone = 1 }, rows, LEN(rows));
}

Test(classify, a_futex_to_be_woken_by_is_wait_in_a_request_and_else_idle)
{
	static const struct row rows[] = {
		ELSE_IDLE("pthread_cond, sem_wait", NR_FUTEX, STATE_WAIT, 0x1000, 393, 0),
		ELSE_IDLE("pthread_cond_timedwait", NR_FUTEX, STATE_WAIT, 0x1000, 137, 0),
		ELSE_IDLE("pthread_cond with a PI mutex", NR_FUTEX, STATE_WAIT, 0x1000, 139, 0),
		ELSE_IDLE("pthread_join", NR_FUTEX, STATE_WAIT, 0x1000, 265, 12345),
		ELSE_IDLE("Go, idle M", NR_FUTEX, STATE_WAIT, 0x1000, 128, 0),
		ELSE_IDLE("Java monitor, pool idle", NR_FUTEX, STATE_WAIT, 0x1000, 393, 0),
		ELSE_IDLE("Java Thread.sleep", NR_FUTEX, STATE_WAIT, 0x1000, 137, 0),
		ELSE_IDLE("CPython lock", NR_FUTEX, STATE_WAIT, 0x1000, 393, 0),
		ELSE_IDLE("CPython GIL", NR_FUTEX, STATE_WAIT, 0x1000, 137, 0),
		ELSE_IDLE("expected 1", NR_FUTEX, STATE_WAIT, 0x1000, 128, 1),
		ELSE_IDLE("musl's semaphore", NR_FUTEX, STATE_WAIT, 0x1000, 128, UINT32_MAX),
		ELSE_IDLE("no owner", NR_FUTEX, STATE_WAIT, 0x1000, 128, OWNER),
		ELSE_IDLE("futex_wait", 455, STATE_WAIT, 0x1000, 0, 2, 2),
		ELSE_IDLE("futex_waitv", 449, STATE_WAIT, 0x1000, 2, 2, 2),
	};

	expect_rows(rows, LEN(rows));
}

/* musl's pthread_cond_wait waits for a word in its own frame, above the stack pointer, to leave 2.
 */
Test(classify, a_futex_in_the_own_frame_is_a_park_whatever_is_expected)
{
	static const struct {
		const char *name;
		uint64_t address;
		uint32_t outside, inside;
	} rows[] = {
		{ "at the stack pointer", 0x7ffe1000, STATE_IDLE, STATE_WAIT },
		{ "musl's waiter", 0x7ffe1000 + 44, STATE_IDLE, STATE_WAIT },
		{ "last word of the frame", 0x7ffe1000 + 508, STATE_IDLE, STATE_WAIT },
		{ "in a caller's frame", 0x7ffe1000 + 512, STATE_LOCK, STATE_LOCK },
		{ "below the stack", 0x7ffe1000 - 4, STATE_LOCK, STATE_LOCK },
		{ "on the heap", 0x55550000, STATE_LOCK, STATE_LOCK },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct sleeper sleeper = { .syscall = NR_FUTEX,
					   .args = { rows[i].address, 128, 2 },
					   .sp = 0x7ffe1000 };

		expect_state(rows[i].name, &sleeper, rows[i].outside);
		sleeper.in_request = 1;
		expect_state(rows[i].name, &sleeper, rows[i].inside);
	}
}

/* Thread ids are those of the container: its second and third thread have such ones. */
Test(classify, joining_a_thread_with_a_small_id_is_no_lock)
{
	static const struct row rows[] = {
		ELSE_IDLE("pthread_join", NR_FUTEX, STATE_WAIT, 0x1000, 265, 2),
		ELSE_IDLE("pthread_join", NR_FUTEX, STATE_WAIT, 0x1000, 265, 3),
		ELSE_IDLE("pthread_timedjoin_np", NR_FUTEX, STATE_WAIT, 0x1000, 9, 2),
	};

	expect_rows(rows, LEN(rows));
}

/* futex(u32 *, int, u32): what a caller leaves in the upper halves of the registers is not theirs.
 */
Test(classify, upper_halves_of_the_arguments_of_futex_are_ignored)
{
	static const struct row rows[] = {
		SAME("lock", NR_FUTEX, STATE_LOCK, 0x1000, JUNK | 128, JUNK | 2),
		SAME("PI", NR_FUTEX, STATE_LOCK, 0x1000, JUNK | 134, JUNK),
		ELSE_IDLE("park", NR_FUTEX, STATE_WAIT, 0x1000, JUNK | 393, JUNK),
	};

	expect_rows(rows, LEN(rows));
}

Test(classify, the_lock_is_the_address_of_the_futex)
{
	struct sleeper sleeper = { .syscall = NR_FUTEX, .args = { 0x7fff12345678, 128, 2, 9 } };

	cr_expect_eq(sleeper_lock(&sleeper), 0x7fff12345678);
}

/* A sleeper with every property that a later rule would look at. */
static struct sleeper everything(int64_t number)
{
	struct sleeper sleeper = { .syscall = number,
				   .args = { 0x1000, 128, 2 },
				   .iowait = 1,
				   .uninterruptible = 1,
				   .in_request = 1 };

	return sleeper;
}

static const int64_t numbers[] = {
	PAGE_FAULT, NR_READ, NR_FUTEX, NR_IO_URING_ENTER, NR(74, 82), NR(35, 101), NR(281, 22),
};

Test(classify, an_io_worker_is_judged_by_its_sleep_alone)
{
	for (size_t i = 0; i < LEN(numbers); i++) {
		struct sleeper sleeper = everything(numbers[i]);

		sleeper.io_worker = 0x10; /* the flag as it stands in the task */
		sleeper.compat = 2;
		expect_state("in both", &sleeper, STATE_DISK);
		sleeper.uninterruptible = 0;
		expect_state("in iowait", &sleeper, STATE_DISK);
		sleeper.iowait = 0;
		sleeper.uninterruptible = 2;
		expect_state("in D", &sleeper, STATE_DISK);
		sleeper.uninterruptible = 0;
		expect_state("in neither", &sleeper, STATE_IDLE);
	}
}

/* Numbers of 32-bit system calls mean something else: 426 and 202 must not be looked at. */
Test(classify, a_32_bit_task_is_disk_in_iowait_and_else_wait)
{
	for (size_t i = 0; i < LEN(numbers); i++) {
		struct sleeper sleeper = everything(numbers[i]);

		sleeper.compat = 2;
		expect_state("in iowait", &sleeper, STATE_DISK);
		sleeper.iowait = 0;
		expect_state("in D", &sleeper, STATE_WAIT);
		sleeper.uninterruptible = 0;
		expect_state("in neither", &sleeper, STATE_WAIT);
		sleeper.in_request = 0;
		expect_state("outside of a request", &sleeper, STATE_WAIT);
	}
}

Test(classify, io_uring_enter_is_idle_although_it_sleeps_in_iowait)
{
	struct sleeper sleeper = everything(NR_IO_URING_ENTER);

	expect_state("in iowait and D", &sleeper, STATE_IDLE);
	sleeper.uninterruptible = 0;
	expect_state("in iowait", &sleeper, STATE_IDLE);
}

Test(classify, iowait_is_disk_whatever_the_system_call)
{
	for (size_t i = 0; i < LEN(numbers); i++) {
		struct sleeper sleeper = everything(numbers[i]);

		if (numbers[i] == NR_IO_URING_ENTER)
			continue;
		expect_state("in iowait and D", &sleeper, STATE_DISK);
		sleeper.uninterruptible = 0;
		sleeper.in_request = 0;
		expect_state("in iowait", &sleeper, STATE_DISK);
	}
}

Test(classify, uninterruptible_sleep_is_disk_in_the_sync_family)
{
	static const struct row family[] = {
		SAME("sync", NR(162, 81), STATE_DISK),
		SAME("syncfs", NR(306, 267), STATE_DISK),
		SAME("fsync", NR(74, 82), STATE_DISK),
		SAME("fdatasync", NR(75, 83), STATE_DISK),
		SAME("msync", NR(26, 227), STATE_DISK),
		SAME("sync_file_range", NR(277, 84), STATE_DISK),
	};

	for (size_t i = 0; i < LEN(family); i++) {
		struct sleeper sleeper = { .syscall = family[i].number, .uninterruptible = 2 };

		expect_state(family[i].name, &sleeper, STATE_DISK);
		sleeper.in_request = 1;
		expect_state(family[i].name, &sleeper, STATE_DISK);
	}
}

/* mmap_lock, vfork, a dying process: uninterruptible, and no disk. */
Test(classify, any_other_uninterruptible_sleep_is_wait)
{
	static const struct row others[] = {
		SAME("page fault", PAGE_FAULT, STATE_WAIT),
		SAME("read", NR_READ, STATE_WAIT),
		SAME("futex with a lock", NR_FUTEX, STATE_WAIT, 0x1000, 128, 2),
		SAME("nanosleep", NR(35, 101), STATE_WAIT),
		SAME("epoll_pwait", NR(281, 22), STATE_WAIT),
		SAME("mmap", NR(9, 222), STATE_WAIT),
		SAME("vfork", NR(58, NONE), STATE_WAIT),
		SAME("exit_group", NR(231, 94), STATE_WAIT),
	};

	for (size_t i = 0; i < LEN(others); i++) {
		struct sleeper sleeper = { .syscall = others[i].number, .uninterruptible = 2 };

		for (int j = 0; j < 4; j++)
			sleeper.args[j] = others[i].args[j];
		expect_state(others[i].name, &sleeper, STATE_WAIT);
	}
}

Test(classify, the_number_that_stands_for_an_interrupted_call_is_known)
{
	cr_expect_eq(SYS_RESTART_SYSCALL, NR(219, 128));
}
