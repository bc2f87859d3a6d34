/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread waits for is told by the descriptor, and by how far its request is. */
#include "sleeper_rows.h"

Test(targets, reading_from_a_socket_is_network_in_a_request_and_else_idle)
{
	static const struct row rows[] = {
		ELSE_IDLE("read", NR_READ, STATE_NETWORK, 5),
		ELSE_IDLE("readv", NR(19, 65), STATE_NETWORK, 5),
		ELSE_IDLE("splice", NR(275, 76), STATE_NETWORK, 5),
		ELSE_IDLE("recvfrom", NR(45, 207), STATE_NETWORK, 5),
	};

	expect_rows_of((struct sleeper){ .target = TARGET_SOCKET }, rows, LEN(rows));
	expect_rows_of((struct sleeper){ .target = TARGET_WORK }, rows, LEN(rows));
}

Test(targets, polling_one_socket_is_network_in_a_request_unless_it_brings_work)
{
	static const struct row network[] = {
		ELSE_IDLE("poll", NR(7, NONE), STATE_NETWORK, 0x7000, 1),
		ELSE_IDLE("ppoll", NR(271, 73), STATE_NETWORK, 0x7000, 1),
	};
	static const struct row idle[] = {
		SAME("poll", NR(7, NONE), STATE_IDLE, 0x7000, 1),
		SAME("ppoll", NR(271, 73), STATE_IDLE, 0x7000, 1),
	};

	expect_rows_of((struct sleeper){ .target = TARGET_SOCKET }, network, LEN(network));
	expect_rows_of((struct sleeper){ .target = TARGET_WORK }, idle, LEN(idle));
}

Test(targets, nobody_waits_for_work_by_writing_to_a_socket)
{
	static const struct row rows[] = {
		SAME("write", NR(1, 64), STATE_NETWORK, 5),
		SAME("writev", NR(20, 66), STATE_NETWORK, 5),
		SAME("sendfile", NR(40, 71), STATE_NETWORK, 5),
		SAME("sendto", NR(44, 206), STATE_NETWORK, 5),
	};

	expect_rows_of((struct sleeper){ .target = TARGET_SOCKET }, rows, LEN(rows));
	expect_rows_of((struct sleeper){ .target = TARGET_WORK }, rows, LEN(rows));
	expect_rows_of((struct sleeper){ .target = TARGET_CLIENT }, rows, LEN(rows));
}

Test(targets, reading_from_its_own_client_is_idle_even_in_a_request)
{
	static const struct row rows[] = {
		SAME("read", NR_READ, STATE_IDLE, 5),
		SAME("readv", NR(19, 65), STATE_IDLE, 5),
		SAME("splice", NR(275, 76), STATE_IDLE, 5),
		SAME("recvfrom", NR(45, 207), STATE_IDLE, 5),
		SAME("recvmsg", NR(47, 212), STATE_IDLE, 5),
		SAME("recvmmsg", NR(299, 243), STATE_IDLE, 5),
		SAME("poll", NR(7, NONE), STATE_IDLE, 0x7000, 1),
		SAME("ppoll", NR(271, 73), STATE_IDLE, 0x7000, 1),
	};

	expect_rows_of((struct sleeper){ .target = TARGET_CLIENT, .events = 1 }, rows, LEN(rows));
}

/* POLLIN is 1 and POLLOUT 4. */
Test(targets, polling_for_room_to_answer_is_network)
{
	static const struct row rows[] = {
		SAME("poll", NR(7, NONE), STATE_NETWORK, 0x7000, 1),
		SAME("ppoll", NR(271, 73), STATE_NETWORK, 0x7000, 1),
	};

	expect_rows_of((struct sleeper){ .target = TARGET_CLIENT, .events = 4 }, rows, LEN(rows));
	expect_rows_of((struct sleeper){ .target = TARGET_CLIENT, .events = 5 }, rows, LEN(rows));
}

Test(targets, polling_something_that_is_no_socket_is_wait_in_a_request_and_else_idle)
{
	static const struct row rows[] = {
		ELSE_IDLE("poll", NR(7, NONE), STATE_WAIT, 0x7000, 1),
		ELSE_IDLE("ppoll", NR(271, 73), STATE_WAIT, 0x7000, 1),
		SAME("poll for two", NR(7, NONE), STATE_IDLE, 0x7000, 2),
	};

	expect_rows_of((struct sleeper){ .target = TARGET_OTHER, .events = 1 }, rows, LEN(rows));
}

/* Waits for any of several descriptors, as event loops do; with the state of a thread that is none.
 */
static void expect_any(struct sleeper sleeper, uint32_t state)
{
	const struct row rows[] = {
		ELSE_IDLE("poll", NR(7, NONE), state, 0x7000, 2),
		ELSE_IDLE("ppoll", NR(271, 73), state, 0x7000, 2),
		ELSE_IDLE("select", NR(23, NONE), state, 1),
		ELSE_IDLE("pselect6", NR(270, 72), state, 5),
		ELSE_IDLE("epoll_wait", NR(232, NONE), state, 4),
		ELSE_IDLE("epoll_pwait", NR(281, 22), state, 4),
		ELSE_IDLE("epoll_pwait2", 441, state, 4),
		ELSE_IDLE("io_getevents", NR(208, 4), state, 3),
		ELSE_IDLE("io_pgetevents", NR(333, 292), state, 3),
		ELSE_IDLE("io_uring_enter", NR_IO_URING_ENTER, state, 3),
	};

	expect_rows_of(sleeper, rows, LEN(rows));
}

Test(targets, a_thread_that_its_client_blocks_waits_for_something_else_in_a_request)
{
	expect_any((struct sleeper){ .blocks = 1 }, STATE_WAIT);
	expect_any((struct sleeper){ .blocks = 1, .target = TARGET_OTHER }, STATE_WAIT);
	expect_any((struct sleeper){ .blocks = 1, .target = TARGET_SOCKET }, STATE_NETWORK);
}

Test(targets, waiting_for_its_client_or_for_another_one_it_is_idle)
{
	expect_any((struct sleeper){ .blocks = 1, .target = TARGET_CLIENT }, STATE_IDLE);
	expect_any((struct sleeper){ .blocks = 1, .target = TARGET_WORK }, STATE_IDLE);
}

Test(targets, an_event_loop_is_idle_whatever_it_waits_for)
{
	for (uint32_t target = TARGET_UNKNOWN; target <= TARGET_WORK; target++)
		expect_any((struct sleeper){ .target = target }, STATE_IDLE);
}

Test(targets, after_an_answer_has_begun_all_who_wait_for_any_of_several_are_idle)
{
	struct sleeper sleeper = { .syscall = NR(281, 22),
				   .blocks = 1,
				   .target = TARGET_SOCKET,
				   .in_request = IN_ANSWER };

	expect_state("epoll_pwait", &sleeper, STATE_IDLE);
}

Test(targets, many_descriptors_are_told_from_one)
{
	cr_expect_not(descriptors_are_many(DESCRIPTOR_NONE));
	cr_expect_not(descriptors_are_many(DESCRIPTOR_PASSED));
	cr_expect_not(descriptors_are_many(DESCRIPTOR_POLLED));
	for (uint32_t where = DESCRIPTORS_POLLED; where <= DESCRIPTORS_UNKNOWN; where++)
		cr_expect(descriptors_are_many(where));
}

static int waits_for_work(int64_t syscall, uint64_t descriptors, uint32_t target)
{
	struct sleeper sleeper = { .syscall = syscall, .target = target };

	sleeper.args[0] = sleeper.args[1] = descriptors;
	return sleeper_waits_for_work(&sleeper, descriptor_of(&sleeper));
}

/* A worker without a request, for all that is known, may be at one that another thread has read. */
Test(targets, a_thread_waits_for_work_where_its_client_or_another_one_may_bring_some)
{
	static const struct {
		int64_t syscall;
		uint64_t descriptors;
	} calls[] = {
		{ NR_READ, 5 },     { NR(45, 207), 5 }, { NR(47, 212), 5 }, { NR(299, 243), 5 },
		{ NR(275, 76), 5 }, { NR(271, 73), 1 }, { NR(271, 73), 2 }, { NR(270, 72), 5 },
	};

	for (size_t i = 0; i < LEN(calls); i++)
		for (uint32_t target = TARGET_UNKNOWN; target <= TARGET_WORK; target++)
			cr_expect_eq(waits_for_work(calls[i].syscall, calls[i].descriptors, target),
				     target == TARGET_CLIENT || target == TARGET_WORK, "%zu: %u", i,
				     target);
}

Test(targets, a_thread_that_accepts_parks_or_waits_for_events_waits_for_work)
{
	static const int64_t calls[] = { NR(43, 202), NR_FUTEX, NR(281, 22), NR_IO_URING_ENTER };

	for (size_t i = 0; i < LEN(calls); i++)
		cr_expect(waits_for_work(calls[i], 5, TARGET_UNKNOWN), "%zu", i);
}

Test(targets, after_an_answer_has_begun_whoever_parks_or_takes_turns_waits_for_work)
{
	static const struct {
		struct row row;
		uint32_t answering;
	} rows[] = {
		{ ELSE_IDLE("park", NR_FUTEX, STATE_WAIT, 0x1000, 393, 0), STATE_IDLE },
		{ ELSE_IDLE("futex_wait", 455, STATE_WAIT, 0x1000, 0, ~0ULL, 130), STATE_IDLE },
		{ ELSE_IDLE("futex_waitv", 449, STATE_WAIT), STATE_IDLE },
		{ ELSE_IDLE("flock", NR(73, 32), STATE_WAIT, 5), STATE_IDLE },
		{ ELSE_IDLE("semop", NR(65, 193), STATE_WAIT, 5), STATE_IDLE },
		{ ELSE_IDLE("a pipe", NR_READ, STATE_WAIT, 5), STATE_WAIT },
		{ ELSE_IDLE("a child", NR(61, 260), STATE_WAIT, -1), STATE_WAIT },
		{ ELSE_IDLE("an upstream", NR(45, 207), STATE_NETWORK, 5), STATE_NETWORK },
		{ SAME("a lock", NR_FUTEX, STATE_LOCK, THE_LOCK, PRIVATE, 2), STATE_LOCK },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		uint64_t lock = rows[i].answering == STATE_LOCK ? THE_LOCK : 0;
		struct sleeper sleeper = { .syscall = rows[i].row.number,
					   .lock = lock,
					   .in_request = IN_ANSWER };

		for (int j = 0; j < 4; j++)
			sleeper.args[j] = rows[i].row.args[j];
		expect_row(&rows[i].row, (struct sleeper){ .lock = lock });
		expect_state(rows[i].row.name, &sleeper, rows[i].answering);
	}
}

Test(targets, a_thread_that_parks_is_idle_where_it_runs_tasks)
{
	static const struct row rows[] = {
		SAME("park", NR_FUTEX, STATE_IDLE, 0x1000, 128, 0),
		ELSE_IDLE("a pipe", NR_READ, STATE_WAIT, 5),
		ELSE_IDLE("a child", NR(61, 260), STATE_WAIT, -1),
	};

	expect_rows_of((struct sleeper){ .tasks = 1 }, rows, LEN(rows));
}

Test(targets, the_descriptor_that_a_call_waits_for_is_found)
{
	static const struct {
		const char *name;
		int64_t number;
		uint64_t args[4];
		uint32_t expected;
	} rows[] = {
		{ "poll for one", NR(7, NONE), { 0x7000, JUNK | 1 }, DESCRIPTOR_POLLED },
		{ "ppoll for one", NR(271, 73), { 0x7000, 1 }, DESCRIPTOR_POLLED },
		{ "ppoll for none", NR(271, 73), { 0x7000, JUNK }, DESCRIPTOR_NONE },
		{ "poll for two", NR(7, NONE), { 0x7000, 2 }, DESCRIPTORS_POLLED },
		{ "ppoll for two", NR(271, 73), { 0x7000, JUNK | 2 }, DESCRIPTORS_POLLED },
		{ "select", NR(23, NONE), { 1 }, DESCRIPTORS_SELECTED },
		{ "pselect6", NR(270, 72), { JUNK | 1 }, DESCRIPTORS_SELECTED },
		{ "pselect6 for none", NR(270, 72), { JUNK }, DESCRIPTOR_NONE },
		{ "read", NR_READ, { 5 }, DESCRIPTOR_PASSED },
		{ "write", NR(1, 64), { 5 }, DESCRIPTOR_PASSED },
		{ "sendfile", NR(40, 71), { 5 }, DESCRIPTOR_PASSED },
		{ "recvmsg", NR(47, 212), { 5 }, DESCRIPTOR_PASSED },
		{ "futex", NR_FUTEX, { 0x1000 }, DESCRIPTOR_NONE },
		{ "epoll_wait", NR(232, NONE), { 4 }, DESCRIPTORS_IN_EPOLL },
		{ "epoll_pwait", NR(281, 22), { 4 }, DESCRIPTORS_IN_EPOLL },
		{ "epoll_pwait2", 441, { 4 }, DESCRIPTORS_IN_EPOLL },
		{ "io_uring_enter", NR_IO_URING_ENTER, { 4 }, DESCRIPTORS_UNKNOWN },
		{ "io_getevents", NR(208, 4), { 4 }, DESCRIPTORS_UNKNOWN },
		{ "io_pgetevents", NR(333, 292), { 4 }, DESCRIPTORS_UNKNOWN },
		{ "page fault", PAGE_FAULT, { 5 }, DESCRIPTOR_NONE },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct sleeper sleeper = { .syscall = rows[i].number };

		for (int j = 0; j < 4; j++)
			sleeper.args[j] = rows[i].args[j];
		if (rows[i].number != NONE)
			cr_expect_eq(descriptor_of(&sleeper), rows[i].expected, "%s", rows[i].name);
	}
}

Test(targets, what_a_system_call_is_for_is_told_by_its_number)
{
	static const struct {
		const char *name;
		int64_t number;
		bool parks, writes;
	} rows[] = {
		{ "read", NR_READ, false, false },         { "write", NR(1, 64), false, true },
		{ "writev", NR(20, 66), false, true },     { "sendfile", NR(40, 71), false, true },
		{ "recvfrom", NR(45, 207), false, false }, { "futex", NR_FUTEX, true, false },
		{ "futex_wait", 455, true, false },        { "futex_waitv", 449, true, false },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		cr_expect_eq(syscall_parks(rows[i].number), rows[i].parks, "%s", rows[i].name);
		cr_expect_eq(syscall_writes(rows[i].number), rows[i].writes, "%s", rows[i].name);
	}
}

Test(targets, an_event_loop_is_known_by_its_system_call)
{
	static const int64_t loops[] = { NR(232, 22), NR(281, 22), 441 };

	for (size_t i = 0; i < LEN(loops); i++)
		cr_expect(syscall_is_epoll(loops[i]), "%ld", loops[i]);
	cr_expect(!syscall_is_epoll(NR(271, 73)), "ppoll");
	cr_expect(!syscall_is_epoll(PAGE_FAULT));
}

Test(targets, what_a_system_call_does_with_bytes_is_told_by_its_number)
{
	static const struct {
		const char *name;
		int64_t number;
		bool reads, sends, splices, accepts, messages;
	} rows[] = {
		{ "read", NR_READ, .reads = true },
		{ "readv", NR(19, 65), .reads = true },
		{ "recvfrom", NR(45, 207), .reads = true },
		{ "recvmsg", NR(47, 212), .reads = true },
		{ "recvmmsg", NR(299, 243), .reads = true, .messages = true },
		{ "write", NR(1, 64), .sends = true },
		{ "writev", NR(20, 66), .sends = true },
		{ "sendto", NR(44, 206), .sends = true },
		{ "sendmsg", NR(46, 211), .sends = true },
		{ "sendfile", NR(40, 71), .sends = true },
		{ "sendmmsg", NR(307, 269), .sends = true, .messages = true },
		{ "splice", NR(275, 76), .reads = true, .splices = true },
		{ "accept", NR(43, 202), .accepts = true },
		{ "accept4", NR(288, 242), .accepts = true },
		{ "futex", NR_FUTEX, .reads = false },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		uint32_t role = syscall_role(rows[i].number);

		cr_expect_eq(!!(role & ROLE_READ), rows[i].reads, "%s", rows[i].name);
		cr_expect_eq(!!(role & ROLE_SEND), rows[i].sends, "%s", rows[i].name);
		cr_expect_eq(!!(role & ROLE_SPLICE), rows[i].splices, "%s", rows[i].name);
		cr_expect_eq(!!(role & ROLE_ACCEPT), rows[i].accepts, "%s", rows[i].name);
		cr_expect_eq(!!(role & ROLE_MESSAGES), rows[i].messages, "%s", rows[i].name);
	}
}
