/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request machine where one event comes between two steps of another: what test_request_races.c
 * leaves to chance happens here each time, at the exchange that decides.
 */
#include <stddef.h>

static void meet(void);

#define __sync_val_compare_and_swap(at, from, to) \
	(meet(), __sync_val_compare_and_swap(at, from, to))
#define __sync_lock_test_and_set(at, to) (meet(), __sync_lock_test_and_set(at, to))

#include "wire.h"

/* What comes between, once, after so many exchanges of the event that it meets. */
static struct {
	void (*event)(void);
	int after;
	struct wire *wire;
	uint32_t came_to;
} other;

static void meet(void)
{
	void (*event)(void) = other.event;

	if (!event || other.after-- > 0)
		return;
	other.event = NULL;
	event();
}

static void expect_meeting(struct wire *wire, int after, void (*event)(void))
{
	other.event = event;
	other.after = after;
	other.wire = wire;
	other.came_to = 0;
}

static void other_reads(void)
{
	other.came_to = wire_read(other.wire, 900);
}

static void other_sends(void)
{
	other.came_to = wire_send(other.wire, 900);
}

static void other_is_told(void)
{
	other.came_to = wire_told(other.wire, 900);
}

static void other_closes(void)
{
	other.came_to = wire_close(other.wire, 900);
}

static void other_settles(void)
{
	other.came_to = wire_settle(other.wire, 900 + SETTLE_NS);
}

static struct wire in_service(void)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	return wire;
}

static struct wire answered(void)
{
	struct wire wire = in_service();

	wire_send(&wire, 300);
	return wire;
}

Test(request_meetings, of_two_reads_that_find_an_answer_nobody_told_of_one_ends_the_request)
{
	struct wire wire = in_service();

	wire_write(&wire);
	expect_meeting(&wire, 0, other_reads);
	cr_expect_eq(wire_read(&wire, 1000), 0);
	cr_expect_eq(other.came_to, REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 100, 700);
}

Test(request_meetings, of_two_reads_that_find_an_answered_request_one_ends_it)
{
	struct wire wire = answered();

	expect_meeting(&wire, 0, other_reads);
	cr_expect_eq(wire_read(&wire, 1000), 0);
	cr_expect_eq(other.came_to, REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 100, 100);
	EXPECT_GAUGES(wire, 0, 1);
}

Test(request_meetings, of_two_sends_the_first_that_is_told_begins_the_answer)
{
	struct wire wire = in_service();

	wire_write(&wire);
	expect_meeting(&wire, 0, other_is_told);
	cr_expect_eq(wire_told(&wire, 1000), 0);
	cr_expect_eq(other.came_to, REQUEST_ANSWERED);
	cr_expect_eq(wire.answered, 1);
}

Test(request_meetings, a_sweep_that_meets_a_send_settles_nothing)
{
	struct wire wire = answered();

	expect_meeting(&wire, 0, other_sends);
	cr_expect_eq(wire_settle(&wire, 300 + SETTLE_NS), 0);
	cr_expect_eq(wire_close(&wire, 2000 + SETTLE_NS), REQUEST_ENDED);
	EXPECT_LAST(wire, 100, 700);
}

Test(request_meetings, a_send_that_meets_a_sweep_answers_nothing_new)
{
	struct wire wire = answered();

	wire_write(&wire);
	expect_meeting(&wire, 0, other_settles);
	cr_expect_eq(wire_told(&wire, 1000 + SETTLE_NS), 0);
	cr_expect_eq(other.came_to, REQUEST_ENDED);
	cr_expect_eq(wire.ended, 1);
}

Test(request_meetings, of_two_closes_one_ends_the_request)
{
	struct wire wire = answered();

	expect_meeting(&wire, 0, other_closes);
	cr_expect_eq(wire_close(&wire, 1000), 0);
	cr_expect_eq(other.came_to, REQUEST_ENDED);
}

Test(request_meetings, of_two_reads_of_a_first_request_one_begins_it)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	expect_meeting(&wire, 0, other_reads);
	cr_expect_eq(wire_read(&wire, 1000), 0);
	cr_expect_eq(other.came_to, REQUEST_BEGAN);
	cr_expect_eq(wire.conn.queue_ns, 800);
}

/* The one that lost has seen no bytes: the other has taken their stamp. */
Test(request_meetings, two_reads_that_find_an_idle_connection_begin_one_request)
{
	struct wire wire = wire_open();

	expect_meeting(&wire, 0, other_reads);
	cr_expect_eq(wire_read(&wire, 1000), 0);
	cr_expect_eq(other.came_to, REQUEST_BEGAN);
	EXPECT_GAUGES(wire, 0, 1);
}

/*
 * The answer leaves, the next request comes, and the hook of the send runs after that: TCP's clock
 * tells of both (left_ns()). tcp_probe has told of the request a moment before.
 */
Test(request_meetings, what_comes_before_a_send_is_told_is_no_rest_of_its_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_write(&wire);
	wire_arrive(&wire, 300);
	conn_arrival_at(&wire.conn, T0 + 310);
	wire_told(&wire, 310);
	wire_close(&wire, 900);
	cr_expect_eq(wire.ended, 1);
	cr_expect_eq(wire.last.service_ns, 110);
	cr_expect_eq(wire.abandoned_queued, 1);
}

Test(request_meetings, what_tcp_takes_is_told_by_its_clock)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	conn_arrival_at(&wire.conn, T0 + 110);
	cr_expect_eq(wire.conn.arrived_ns, T0 + 110);
	wire_arrive(&wire, 200);
	conn_arrival_at(&wire.conn, T0 + 210);
	cr_expect_eq(wire.conn.arrived_ns, T0 + 110, "what came first stays");
	cr_expect_eq(wire.conn.next_ns, T0 + 210);
	conn_arrival_at(&wire.conn, T0 + 205);
	cr_expect_eq(wire.conn.latest_ns, T0 + 210, "it never goes back");
	conn_arrival_at(&wire.conn, T0 + 210 + 100001);
	cr_expect_eq(wire.conn.latest_ns, T0 + 210, "nothing came with that");
	conn_arrival_at(&wire.conn, T0 + 210 + 100000);
	cr_expect_eq(wire.conn.latest_ns, T0 + 210 + 100000);
}
