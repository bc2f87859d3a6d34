/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread is at which request, and whether it still is. */
#include <criterion/criterion.h>

#include <stddef.h>
#include <stdint.h>

#include "machine/binding.h"

#define T0 1000000000ULL
#define MS 1000000ULL
#define READER 0x1000ULL /* addresses, which no code follows */
#define SENDER 0x2000ULL
#define CONN 0x3000ULL
#define FILE_OF_CLIENT 0x4000ULL
#define NR_RECVFROM SYS_RECVFROM

struct scene {
	struct thread reader, sender;
	struct conn conn;
};

/* A request that has waited for a millisecond; @sent_seq: what was sent before. */
static void read_at(struct scene *scene, uint64_t now, uint32_t sent_seq)
{
	struct reading reading = { .now = now, .arrived = now - MS, .sent_seq = sent_seq };
	struct request ended;

	conn_read(&scene->conn, &reading, &ended);
}

/* A thread has read a request at T0. */
static struct scene read_request(void)
{
	struct scene scene = { 0 };

	read_at(&scene, T0, 0);
	binding_make(&scene.reader, READER, 1, &scene.conn, CONN, FILE_OF_CLIENT, 0);
	return scene;
}

static void send_at(struct scene *scene, uint64_t now, uint32_t seq)
{
	struct sending sending = { .now = now, .sent_seq = seq };
	struct request ended;

	conn_sent(&scene->conn, &sending, &ended);
}

/* The reader has begun to answer at T0 + 10 ms. */
static struct scene begin_answer(void)
{
	struct scene scene = read_request();

	send_at(&scene, T0 + 10 * MS, 100);
	return scene;
}

static void block(struct thread *thread, uint32_t state, int64_t number)
{
	thread->where = thread_where(7, state);
	thread->syscall = (int32_t)number;
}

static uint32_t part_of_reader(const struct scene *scene)
{
	return binding_part(&scene->reader, READER, &scene->conn);
}

Test(binding, a_thread_is_in_the_request_that_it_has_read)
{
	struct scene scene = read_request();

	cr_expect_eq(part_of_reader(&scene), IN_SERVICE);
	cr_expect_eq(scene.reader.client, FILE_OF_CLIENT);
	cr_expect_eq(scene.conn.thread, READER);
	cr_expect_eq(scene.conn.tid, 1);
	cr_expect_eq(scene.reader.role, POOL_SERVING);
}

Test(binding, who_answers_is_in_the_answer)
{
	struct scene scene = begin_answer();

	cr_expect_eq(part_of_reader(&scene), IN_ANSWER);
}

Test(binding, who_goes_for_work_has_left_the_answer_until_it_sends_again)
{
	struct scene scene = begin_answer();

	scene.reader.left_ns = T0 + 10 * MS;
	cr_expect_eq(part_of_reader(&scene), IN_NOTHING, "with its last send");
	scene.reader.left_ns = T0 + 11 * MS;
	cr_expect_eq(part_of_reader(&scene), IN_NOTHING);
	send_at(&scene, T0 + 12 * MS, 200);
	cr_expect_eq(part_of_reader(&scene), IN_ANSWER);
}

Test(binding, who_goes_for_work_before_the_answer_is_in_the_request_still)
{
	struct scene scene = read_request();

	scene.reader.left_ns = T0 + MS;
	cr_expect_eq(part_of_reader(&scene), IN_SERVICE);
}

Test(binding, another_request_or_a_close_ends_it)
{
	struct scene scene = begin_answer();
	struct request ended;

	cr_expect(binding_lasts(&scene.reader, &scene.conn));
	read_at(&scene, T0 + 20 * MS, 100);
	cr_expect_eq(part_of_reader(&scene), IN_NOTHING);
	cr_expect_not(binding_lasts(&scene.reader, &scene.conn));

	scene = begin_answer();
	scene.conn.closed = 1;
	cr_expect_eq(part_of_reader(&scene), IN_NOTHING);
	cr_expect_not(binding_lasts(&scene.reader, &scene.conn));

	scene = begin_answer();
	conn_settle(&scene.conn, T0 + 10 * MS + SETTLE_NS, &ended);
	cr_expect_eq(part_of_reader(&scene), IN_NOTHING);
	cr_expect_not(binding_lasts(&scene.reader, &scene.conn));
}

Test(binding, who_sends_takes_the_request_over_from_its_reader)
{
	struct scene scene = begin_answer();

	binding_make(&scene.sender, SENDER, 2, &scene.conn, CONN, FILE_OF_CLIENT, 1);
	cr_expect_eq(part_of_reader(&scene), IN_NOTHING);
	cr_expect_eq(binding_part(&scene.sender, SENDER, &scene.conn), IN_ANSWER);
}

Test(binding, a_sender_without_state_takes_it_over_as_well)
{
	struct scene scene = begin_answer();

	binding_make(NULL, 0, 2, &scene.conn, CONN, FILE_OF_CLIENT, 1);
	cr_expect_eq(part_of_reader(&scene), IN_NOTHING);
	cr_expect_eq(scene.conn.tid, 0, "it is looked for again");
	cr_expect_eq(scene.conn.thread, 0);
}

static uint32_t held(const struct scene *scene, const struct thread *thread, uint64_t now)
{
	return binding_held(&scene->conn, CONN, thread, now);
}

Test(binding, an_answer_is_held_while_its_thread_is_blocked_for_something_but_work)
{
	static const uint32_t states[] = { STATE_NETWORK, STATE_WAIT, STATE_LOCK, STATE_DISK,
					   STATE_SLEEP };
	struct scene scene = begin_answer();

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		block(&scene.reader, states[i], NR_RECVFROM);
		cr_expect_eq(held(&scene, &scene.reader, T0 + 10 * MS), HELD);
	}
	block(&scene.reader, STATE_IDLE, NR_RECVFROM);
	cr_expect_eq(held(&scene, &scene.reader, T0 + 10 * MS), HELD_NOT);
	block(&scene.reader, STATE_NONE, NR_RECVFROM);
	cr_expect_eq(held(&scene, &scene.reader, T0 + 10 * MS), HELD_NOT, "it has ended");
}

Test(binding, a_request_that_is_not_answered_yet_has_no_answer_to_hold)
{
	struct scene scene = read_request();

	block(&scene.reader, STATE_NETWORK, NR_RECVFROM);
	cr_expect_eq(held(&scene, &scene.reader, T0 + 10 * MS), HELD_NOT);
}

Test(binding, an_answer_is_held_by_a_thread_that_goes_on_computing)
{
	struct scene scene = begin_answer();

	block(&scene.reader, STATE_RUNNING, NR_RECVFROM);
	cr_expect_eq(held(&scene, &scene.reader, T0 + 11 * MS - 1), HELD_NOT);
	cr_expect_eq(held(&scene, &scene.reader, T0 + 11 * MS), HELD);
	block(&scene.reader, STATE_RUNNABLE, NR_RECVFROM);
	cr_expect_eq(held(&scene, &scene.reader, T0 + 11 * MS), HELD);
	block(&scene.reader, STATE_RUNNING, SYS_EPOLL_PWAIT);
	cr_expect_eq(held(&scene, &scene.reader, T0 + 11 * MS), HELD_NOT, "an event loop");
}

Test(binding, an_answer_is_not_held_by_a_thread_that_is_elsewhere)
{
	struct scene scene = begin_answer();

	block(&scene.reader, STATE_NETWORK, NR_RECVFROM);
	scene.reader.left_ns = T0 + 11 * MS;
	cr_expect_eq(held(&scene, &scene.reader, T0 + 12 * MS), HELD_NOT, "has gone for work");
	scene.reader.left_ns = T0 + 10 * MS;
	cr_expect_eq(held(&scene, &scene.reader, T0 + 12 * MS), HELD_NOT, "with its last send");
	scene.reader.left_ns = 0;
	scene.reader.request_ns++;
	cr_expect_eq(held(&scene, &scene.reader, T0 + 12 * MS), HELD_NOT, "another request");
	scene.reader.request_ns--;
	scene.reader.request++;
	cr_expect_eq(held(&scene, &scene.reader, T0 + 12 * MS), HELD_NOT, "another connection");
}

Test(binding, who_has_not_read_the_request_holds_it_for_sure_after_a_pause)
{
	struct scene scene = begin_answer();

	binding_make(&scene.sender, SENDER, 2, &scene.conn, CONN, FILE_OF_CLIENT, 1);
	block(&scene.sender, STATE_NETWORK, NR_RECVFROM);
	cr_expect_eq(held(&scene, &scene.sender, T0 + 12 * MS), HELD_PERHAPS);
	send_at(&scene, T0 + 11 * MS - 1, 200);
	cr_expect_eq(held(&scene, &scene.sender, T0 + 12 * MS), HELD_PERHAPS, "no pause");
	send_at(&scene, T0 + 12 * MS, 300);
	cr_expect_eq(held(&scene, &scene.sender, T0 + 12 * MS), HELD);
}

Test(binding, a_pause_is_one_of_its_own_request)
{
	struct scene scene = begin_answer();

	send_at(&scene, T0 + 20 * MS, 200);
	cr_expect(scene.conn.paused);
	read_at(&scene, T0 + 30 * MS, 200);
	cr_expect_not(scene.conn.paused);
}

static int left(const struct scene *scene)
{
	return binding_left(&scene->conn, CONN, &scene->reader);
}

Test(binding, who_goes_for_work_or_to_another_request_has_left_what_it_read)
{
	struct scene scene = read_request();

	cr_expect_not(left(&scene));
	scene.reader.left_ns = T0;
	cr_expect_not(left(&scene), "it came from a wait as it read");
	scene.reader.left_ns = T0 + 1;
	cr_expect(left(&scene));

	scene = read_request();
	scene.reader.request++;
	cr_expect(left(&scene), "another connection");
	scene = read_request();
	scene.reader.request_ns++;
	cr_expect(left(&scene), "another request");
}

static int over(const struct scene *scene, int parked, __u64 *end)
{
	return binding_over(&scene->reader, READER, &scene->conn, parked, end);
}

Test(binding, a_wait_is_over_when_another_thread_has_answered)
{
	struct scene scene = read_request();
	struct request ended;
	__u64 end = 7;

	cr_expect_not(over(&scene, 1, &end), "nobody has");
	send_at(&scene, T0 + 10 * MS, 100);
	binding_make(&scene.sender, SENDER, 2, &scene.conn, CONN, FILE_OF_CLIENT, 1);
	cr_expect(over(&scene, 0, &end));
	cr_expect_eq(end, T0 + 10 * MS);
	conn_settle(&scene.conn, T0 + 10 * MS + SETTLE_NS, &ended);
	cr_expect(over(&scene, 0, &end));
	cr_expect_eq(end, T0 + 10 * MS);
}

/* As coarse clocks show it. */
Test(binding, a_wait_that_was_answered_at_once_is_over_as_well)
{
	struct scene scene = read_request();
	struct request ended;
	__u64 end = 7;

	send_at(&scene, T0, 100);
	binding_make(&scene.sender, SENDER, 2, &scene.conn, CONN, FILE_OF_CLIENT, 1);
	conn_settle(&scene.conn, T0 + SETTLE_NS, &ended);
	cr_expect(over(&scene, 0, &end));
	cr_expect_eq(end, T0);
}

Test(binding, when_it_was_over_is_not_known_of_a_connection_that_has_closed)
{
	struct scene scene = begin_answer();
	struct request ended;
	__u64 end = 7;

	binding_make(&scene.sender, SENDER, 2, &scene.conn, CONN, FILE_OF_CLIENT, 1);
	conn_closed(&scene.conn, T0 + 20 * MS, &(struct stream){ .sent_seq = 100 }, &ended);
	cr_expect(over(&scene, 0, &end));
	cr_expect_eq(end, 0);
}

Test(binding, who_works_for_a_client_that_has_gone_is_not_free)
{
	struct scene scene = read_request();
	struct request ended;
	__u64 end;

	conn_closed(&scene.conn, T0 + 20 * MS, &(struct stream){ 0 }, &ended);
	cr_expect_not(over(&scene, 0, &end));
	cr_expect_not(over(&scene, 1, &end));
}

Test(binding, the_next_request_of_a_connection_frees_who_is_parked)
{
	struct scene scene = begin_answer();
	__u64 end = 7;

	read_at(&scene, T0 + 30 * MS, 100);
	cr_expect(over(&scene, 1, &end));
	cr_expect_eq(end, 0);
	cr_expect_not(over(&scene, 0, &end), "it may have become another connection");
}

/* A clock that is ahead, and times that are not known. */
Test(binding, a_wait_ends_within_its_state_and_after_it_was_judged_last)
{
	cr_expect_eq(binding_end(500, 100, 200, 1000), 500);
	cr_expect_eq(binding_end(150, 100, 200, 1000), 200);
	cr_expect_eq(binding_end(50, 100, 0, 1000), 100);
	cr_expect_eq(binding_end(0, 300, 200, 1000), 300);
	cr_expect_eq(binding_end(0, 300, 400, 1000), 400);
	cr_expect_eq(binding_end(2000, 300, 400, 1000), 1000);
	cr_expect_eq(binding_end(0, 0, 0, 1000), 1000, "nothing is known");
}
