/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread waits for is told by its system call. */
#include "sleeper_rows.h"

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

/* Of what kind a descriptor is may not be known. */
Test(classify, reading_and_writing_something_is_wait_in_a_request_and_else_idle)
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
	expect_rows_of((struct sleeper){ .target = TARGET_OTHER }, rows, LEN(rows));
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

static const struct row futexes[] = {
	SAME("private", NR_FUTEX, STATE_LOCK, THE_LOCK, PRIVATE, 2),
	SAME("private, PI", NR_FUTEX, STATE_LOCK, THE_LOCK, 134, 0),
	SAME("private, of a thread's own word", NR_FUTEX, STATE_LOCK, 0x1000, PRIVATE, 1),
	SAME("upper half is junk", NR_FUTEX, STATE_LOCK, THE_LOCK, JUNK | PRIVATE, 2),
};

static const struct row shared_futexes[] = {
	SAME("shared", NR_FUTEX, STATE_LOCK, THE_LOCK, SHARED, 2),
	SAME("shared, PI", NR_FUTEX, STATE_LOCK, THE_LOCK, 6, 0),
	SAME("upper half is junk", NR_FUTEX, STATE_LOCK, THE_LOCK, JUNK | SHARED, 2),
};

Test(classify, a_futex_that_someone_else_holds_is_a_lock)
{
	expect_rows_of((struct sleeper){ .lock = THE_LOCK }, futexes, LEN(futexes));
	expect_rows_of((struct sleeper){ .lock = THE_LOCK }, shared_futexes, LEN(shared_futexes));
}

/* Of a prefork server: a lock between processes, in shared memory. */
Test(classify, a_lock_that_only_another_process_can_hold_is_a_turn_outside_of_requests)
{
	for (size_t i = 0; i < LEN(shared_futexes); i++) {
		struct row row = shared_futexes[i];

		row.outside = STATE_IDLE;
		expect_row(&row, (struct sleeper){ .lock = THE_LOCK, .alone = 1 });
	}
}

/* As after a fork while another thread held it: for ever. */
Test(classify, a_private_lock_is_a_lock_although_no_other_thread_is_left)
{
	expect_rows_of((struct sleeper){ .lock = THE_LOCK, .alone = 1 }, futexes, LEN(futexes));
}

Test(classify, a_futex_to_be_woken_by_is_wait_in_a_request_and_else_idle)
{
	static const struct row rows[] = {
		ELSE_IDLE("whatever is expected", NR_FUTEX, STATE_WAIT, 0x1000, PRIVATE, 2),
		ELSE_IDLE("shared", NR_FUTEX, STATE_WAIT, 0x1000, SHARED, 2),
		ELSE_IDLE("with a bitset", NR_FUTEX, STATE_WAIT, 0x1000, 393, 0),
		ELSE_IDLE("futex_wait", 455, STATE_WAIT, 0x1000, 2, 2, 2),
		ELSE_IDLE("futex_waitv", 449, STATE_WAIT, 0x1000, 2, 2, 2),
	};

	expect_rows(rows, LEN(rows));
	expect_rows_of((struct sleeper){ .alone = 1 }, rows, LEN(rows));
}

/* A sleeper with every property that a later rule would look at. */
static struct sleeper everything(int64_t number)
{
	struct sleeper sleeper = { .syscall = number,
				   .args = { THE_LOCK, PRIVATE, 2 },
				   .lock = THE_LOCK,
				   .iowait = 1,
				   .uninterruptible = 1,
				   .in_request = 1 };

	return sleeper;
}

static const int64_t numbers[] = {
	PAGE_FAULT, NR_READ, NR_FUTEX, NR_IO_URING_ENTER, NR(74, 82), NR(35, 101), NR(281, 22),
};

Test(classify, who_is_preempted_or_does_not_sleep_wants_a_cpu)
{
	cr_expect_eq(classify_run_state(0, 0), STATE_RUNNABLE);
	cr_expect_eq(classify_run_state(0, 1), STATE_RUNNABLE);
	cr_expect_eq(classify_run_state(0x1, 1), STATE_RUNNABLE); /* about to sleep */
	cr_expect_eq(classify_run_state(TASK_RTLOCK_WAIT, 1), STATE_RUNNABLE);
}

Test(classify, who_sleeps_or_is_gone_is_asked_for_more)
{
	cr_expect_eq(classify_run_state(0x1, 0), STATE_NONE); /* TASK_INTERRUPTIBLE */
	cr_expect_eq(classify_run_state(0x2, 0), STATE_NONE); /* TASK_UNINTERRUPTIBLE */
	cr_expect_eq(classify_run_state(TASK_DEAD, 0), STATE_NONE);
	cr_expect_eq(classify_run_state(TASK_DEAD, 1), STATE_NONE);
}

/* In the middle of epoll_wait or of a futex, whose registers it has: neither idle nor a lock. */
Test(classify, who_sleeps_on_a_spinlock_of_a_real_time_kernel_waits)
{
	cr_expect_eq(classify_run_state(TASK_RTLOCK_WAIT, 0), STATE_WAIT);
}

Test(classify, a_worker_of_the_kernel_is_judged_by_its_sleep_alone)
{
	for (size_t i = 0; i < LEN(numbers); i++) {
		struct sleeper sleeper = everything(numbers[i]);

		sleeper.kernel_worker = 0x10; /* the flag as it stands in the task */
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
		struct sleeper sleeper = { .syscall = others[i].number,
					   .lock = THE_LOCK,
					   .uninterruptible = 2 };

		for (int j = 0; j < 4; j++)
			sleeper.args[j] = others[i].args[j];
		expect_state(others[i].name, &sleeper, STATE_WAIT);
	}
}

Test(classify, the_number_that_stands_for_an_interrupted_call_is_known)
{
	cr_expect_eq(SYS_RESTART_SYSCALL, NR(219, 128));
}
