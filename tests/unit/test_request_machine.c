/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdbool.h>
#include <stdint.h>

#include "machine/requests.h"

#define UNTOUCHED 0x5555555555555555ULL
#define T0 1000000000000ULL /* any time will do */

/* One connection: the machine, what TCP knows, and what has come of it. */
struct wire {
	struct conn conn;
	uint32_t write_seq; /* wraps round in the middle of every test */
	int began, ended, answered, unrequested, abandoned_queued, abandoned_service;
	struct request last; /* the request that ended last */
};

static struct wire wire_open(void)
{
	struct wire wire = { .write_seq = UINT32_MAX - 150 };

	wire.last = (struct request){ UNTOUCHED, UNTOUCHED };
	return wire;
}

static uint32_t wire_count(struct wire *wire, uint32_t events, const struct request *ended)
{
	wire->began += !!(events & REQUEST_BEGAN);
	wire->ended += !!(events & REQUEST_ENDED);
	wire->answered += !!(events & REQUEST_ANSWERED);
	wire->unrequested += !!(events & REQUEST_UNREQUESTED);
	wire->abandoned_queued += !!(events & REQUEST_ABANDONED_QUEUED);
	wire->abandoned_service += !!(events & REQUEST_ABANDONED_SERVICE);
	if (events & REQUEST_ENDED)
		wire->last = *ended;
	return events;
}

static void wire_arrive(struct wire *wire, uint64_t at)
{
	conn_readable(&wire->conn, T0 + at);
}

/* Takes some of the bytes, or all of them. */
static uint32_t wire_read_part(struct wire *wire, uint64_t at, bool unread)
{
	struct request ended = { UNTOUCHED, UNTOUCHED };
	uint64_t arrived = conn_take(&wire->conn);

	if (unread)
		conn_left(&wire->conn);
	return wire_count(wire, conn_read(&wire->conn, T0 + at, arrived, wire->write_seq, &ended),
			  &ended);
}

static uint32_t wire_read(struct wire *wire, uint64_t at)
{
	return wire_read_part(wire, at, false);
}

/* The bytes are on their way, the hook of the sending thread has not run yet. */
static void wire_write(struct wire *wire)
{
	wire->write_seq += 100;
}

static uint32_t wire_told_unread(struct wire *wire, uint64_t at, bool unread)
{
	struct request ended = { UNTOUCHED, UNTOUCHED };

	return wire_count(wire, conn_sent(&wire->conn, T0 + at, unread, wire->write_seq, &ended),
			  &ended);
}

static uint32_t wire_told(struct wire *wire, uint64_t at)
{
	return wire_told_unread(wire, at, wire->conn.arrived_ns != 0);
}

static uint32_t wire_send(struct wire *wire, uint64_t at)
{
	wire_write(wire);
	return wire_told(wire, at);
}

static uint32_t wire_close(struct wire *wire, uint64_t at)
{
	struct request ended = { UNTOUCHED, UNTOUCHED };

	return wire_count(wire, conn_closed(&wire->conn, T0 + at, wire->write_seq, &ended), &ended);
}

static uint32_t wire_settle(struct wire *wire, uint64_t at)
{
	struct request ended = { UNTOUCHED, UNTOUCHED };

	return wire_count(wire, conn_settle(&wire->conn, T0 + at, &ended), &ended);
}

#define EXPECT_LAST(wire, queue, service)                                    \
	do {                                                                 \
		cr_expect_eq((wire).last.queue_ns, queue, "queue %lu",       \
			     (uint64_t)(wire).last.queue_ns);                \
		cr_expect_eq((wire).last.service_ns, service, "service %lu", \
			     (uint64_t)(wire).last.service_ns);              \
	} while (0)

#define EXPECT_GAUGES(wire, queued, in_service)                          \
	do {                                                             \
		cr_expect_eq(conn_queued(&(wire).conn), queued);         \
		cr_expect_eq(conn_in_service(&(wire).conn), in_service); \
	} while (0)

/* --- queue and service ------------------------------------------------------------------------ */

Test(requests, a_request_waits_is_served_and_ends_with_its_last_send)
{
	struct wire wire = wire_open();

	EXPECT_GAUGES(wire, 0, 0);
	wire_arrive(&wire, 100);
	EXPECT_GAUGES(wire, 1, 0);
	cr_expect_eq(wire_read(&wire, 350), REQUEST_BEGAN);
	EXPECT_GAUGES(wire, 0, 1);
	cr_expect_eq(wire_send(&wire, 900), REQUEST_ANSWERED);
	EXPECT_GAUGES(wire, 0, 0);
	cr_expect_eq(wire_close(&wire, 5000), REQUEST_ENDED);
	EXPECT_LAST(wire, 250, 550);
}

Test(requests, only_the_first_bytes_that_become_readable_are_stamped)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 200);
	wire_arrive(&wire, 300);
	wire_read(&wire, 1000);
	wire_send(&wire, 1500);
	wire_close(&wire, 2000);
	EXPECT_LAST(wire, 900, 500);
}

Test(requests, a_body_in_several_reads_is_one_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(wire_read_part(&wire, 150, true), REQUEST_BEGAN);
	cr_expect_eq(wire_read(&wire, 160), 0);
	for (int i = 0; i < 10; i++) {
		wire_arrive(&wire, 200 + 10 * i);
		EXPECT_GAUGES(wire, 0, 1);
		cr_expect_eq(wire_read(&wire, 205 + 10 * i), 0);
	}
	wire_send(&wire, 1150);
	wire_close(&wire, 2000);
	cr_expect_eq(wire.began, 1);
	cr_expect_eq(wire.ended, 1);
	EXPECT_LAST(wire, 50, 1000);
}

Test(requests, an_answer_in_several_sends_ends_with_the_last_one)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 150);
	cr_expect_eq(wire_send(&wire, 200), REQUEST_ANSWERED);
	cr_expect_eq(wire_send(&wire, 300), 0);
	cr_expect_eq(wire_send(&wire, 400), 0);
	wire_close(&wire, 9000);
	cr_expect_eq(wire.answered, 1);
	EXPECT_LAST(wire, 50, 250);
}

Test(requests, a_read_after_an_answer_ends_the_request_at_its_last_send_and_begins_the_next)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 150);
	wire_send(&wire, 200);
	wire_send(&wire, 300);
	wire_arrive(&wire, 700);
	EXPECT_GAUGES(wire, 1, 0);
	cr_expect_eq(wire_read(&wire, 900), REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 50, 150);
	EXPECT_GAUGES(wire, 0, 1);
	wire_send(&wire, 1000);
	cr_expect_eq(wire_close(&wire, 1500), REQUEST_ENDED);
	EXPECT_LAST(wire, 200, 100);
}

Test(requests, every_request_of_a_kept_connection_has_its_own_times)
{
	struct wire wire = wire_open();

	for (uint64_t i = 1; i <= 1000; i++) {
		uint64_t at = i * 10000;

		wire_arrive(&wire, at);
		wire_read(&wire, at + i);
		wire_send(&wire, at + 3 * i);
		if (i > 1)
			EXPECT_LAST(wire, i - 1, 2 * (i - 1));
	}
	wire_close(&wire, 20000000);
	EXPECT_LAST(wire, 1000, 2000);
	cr_expect_eq(wire.began, 1000);
	cr_expect_eq(wire.ended, 1000);
	cr_expect_eq(wire.answered, 1000);
}

/* Two requests in a row from a client that does not wait: the second has been there since 200. */
Test(requests, bytes_that_a_read_leaves_behind_have_waited_since_the_latest_arrival)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 200);
	wire_read_part(&wire, 500, true);
	wire_send(&wire, 600);
	EXPECT_GAUGES(wire, 1, 0);
	cr_expect_eq(wire_read(&wire, 700), REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 400, 100);
	wire_send(&wire, 800);
	wire_close(&wire, 900);
	EXPECT_LAST(wire, 500, 100);
}

/* --- what is not known is not invented -------------------------------------------------------- */

Test(requests, an_unknown_arrival_is_not_invented)
{
	struct wire wire = wire_open();

	cr_expect_eq(wire_read(&wire, 500), REQUEST_BEGAN);
	wire_send(&wire, 600);
	cr_expect_eq(wire_close(&wire, 700), REQUEST_ENDED);
	EXPECT_LAST(wire, QUEUE_UNKNOWN, 100);
}

Test(requests, bytes_left_behind_of_an_unknown_arrival_stay_unknown)
{
	struct wire wire = wire_open();

	wire_read_part(&wire, 500, true);
	wire_send(&wire, 600);
	EXPECT_GAUGES(wire, 0, 0);
	wire_read(&wire, 700);
	EXPECT_LAST(wire, QUEUE_UNKNOWN, 100);
	wire_send(&wire, 800);
	wire_close(&wire, 900);
	EXPECT_LAST(wire, QUEUE_UNKNOWN, 100);
}

Test(requests, a_known_request_may_follow_an_unknown_one)
{
	struct wire wire = wire_open();

	wire_read(&wire, 500);
	wire_send(&wire, 600);
	wire_arrive(&wire, 700);
	wire_read(&wire, 710);
	wire_send(&wire, 730);
	wire_close(&wire, 900);
	EXPECT_LAST(wire, 10, 20);
}

/* --- the end of a connection ------------------------------------------------------------------ */

Test(requests, closed_before_the_read_is_abandoned_in_the_queue)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(wire_close(&wire, 200), REQUEST_ABANDONED_QUEUED);
	EXPECT_GAUGES(wire, 0, 0);
}

Test(requests, closed_in_service_is_abandoned_in_service_and_no_request_has_ended)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	cr_expect_eq(wire_close(&wire, 300), REQUEST_ABANDONED_SERVICE);
	EXPECT_GAUGES(wire, 0, 0);
}

Test(requests, the_unread_rest_of_an_abandoned_body_is_no_second_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read_part(&wire, 200, true);
	wire_arrive(&wire, 250);
	cr_expect_eq(wire_close(&wire, 300), REQUEST_ABANDONED_SERVICE);
	EXPECT_GAUGES(wire, 0, 0);
}

Test(requests, closed_after_the_answer_is_a_request_that_ended)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	cr_expect_eq(wire_close(&wire, 100000), REQUEST_ENDED);
	EXPECT_LAST(wire, 100, 100);
}

Test(requests, closed_after_the_answer_with_more_bytes_waiting_is_one_of_each)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_arrive(&wire, 400);
	cr_expect_eq(wire_close(&wire, 500), REQUEST_ENDED | REQUEST_ABANDONED_QUEUED);
	EXPECT_LAST(wire, 100, 100);
	EXPECT_GAUGES(wire, 0, 0);
}

Test(requests, an_idle_connection_closes_without_a_trace)
{
	struct wire wire = wire_open();

	cr_expect_eq(wire_close(&wire, 100), 0);
	wire = wire_open();
	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_settle(&wire, 300 + 2 * SETTLE_NS);
	cr_expect_eq(wire_close(&wire, 400 + 2 * SETTLE_NS), 0);
}

Test(requests, a_second_close_is_ignored)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(wire_close(&wire, 200), REQUEST_ABANDONED_QUEUED);
	cr_expect_eq(wire_close(&wire, 201), 0);
	wire = wire_open();
	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	cr_expect_eq(wire_close(&wire, 400), REQUEST_ENDED);
	cr_expect_eq(wire_close(&wire, 500), 0);
}

/* --- sends that answer nothing, or are told late ---------------------------------------------- */

Test(requests, a_server_that_speaks_first_answers_nothing)
{
	struct wire wire = wire_open();

	cr_expect_eq(wire_send(&wire, 50), REQUEST_UNREQUESTED);
	cr_expect_eq(wire_send(&wire, 60), REQUEST_UNREQUESTED);
	EXPECT_GAUGES(wire, 0, 0);
	wire_arrive(&wire, 100);
	cr_expect_eq(wire_read(&wire, 200), REQUEST_BEGAN);
	cr_expect_eq(wire_close(&wire, 300), REQUEST_ABANDONED_SERVICE,
		     "the greeting is no answer");
}

Test(requests, a_push_while_a_request_waits_answers_nothing)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	cr_expect_eq(wire_send(&wire, 150), REQUEST_UNREQUESTED);
	EXPECT_GAUGES(wire, 1, 0);
	wire_read(&wire, 200);
	wire_send(&wire, 240);
	wire_close(&wire, 300);
	EXPECT_LAST(wire, 100, 40);
}

/* Thread A has sent; thread B reads the next request before A's hook runs. */
Test(requests, a_send_that_is_told_after_the_next_read_belongs_to_the_previous_request)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_write(&wire);
	wire_arrive(&wire, 400);
	cr_expect_eq(wire_read(&wire, 450), REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 100, 200); /* sent at the latest when the client's next bytes came */
	cr_expect_eq(wire_told(&wire, 460), 0);
	EXPECT_GAUGES(wire, 0, 1);
	cr_expect_eq(wire_send(&wire, 500), REQUEST_ANSWERED);
	wire_close(&wire, 600);
	EXPECT_LAST(wire, 50, 50);
}

/* The bytes had arrived together: they do not tell when the answer was sent. */
Test(requests, a_late_send_before_bytes_that_were_left_behind_does_not_end_before_its_read)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read_part(&wire, 200, true);
	wire_write(&wire);
	cr_expect_eq(wire_read(&wire, 300), REQUEST_ENDED | REQUEST_BEGAN);
	EXPECT_LAST(wire, 100, 100);
}

Test(requests, a_late_send_does_not_save_the_next_request_from_being_abandoned)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_write(&wire);
	wire_arrive(&wire, 400);
	wire_read(&wire, 450);
	wire_told(&wire, 460);
	cr_expect_eq(wire_close(&wire, 500), REQUEST_ABANDONED_SERVICE);
	cr_expect_eq(wire.ended, 1);
}

Test(requests, an_answer_that_is_told_after_the_close_was_an_answer)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_write(&wire);
	cr_expect_eq(wire_close(&wire, 300), REQUEST_ENDED);
	EXPECT_LAST(wire, 100, 100);
}

/* --- the sweep -------------------------------------------------------------------------------- */

Test(requests, an_answer_settles_after_one_second_and_ends_with_its_last_send)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_send(&wire, 500);
	cr_expect_eq(wire_settle(&wire, 500), 0);
	cr_expect_eq(wire_settle(&wire, 499 + SETTLE_NS), 0);
	cr_expect_eq(wire_settle(&wire, 501 + SETTLE_NS), REQUEST_ENDED);
	EXPECT_LAST(wire, 100, 300);
	cr_expect_eq(wire_settle(&wire, 500 + 9 * SETTLE_NS), 0, "once");
	cr_expect_eq(wire_send(&wire, 501 + 9 * SETTLE_NS), REQUEST_UNREQUESTED);
}

Test(requests, what_is_idle_waits_or_is_in_service_never_settles)
{
	struct wire wire = wire_open();

	cr_expect_eq(wire_settle(&wire, 100 * SETTLE_NS), 0);
	wire_arrive(&wire, 100 * SETTLE_NS);
	cr_expect_eq(wire_settle(&wire, 200 * SETTLE_NS), 0);
	EXPECT_GAUGES(wire, 1, 0);
	wire_read(&wire, 200 * SETTLE_NS);
	cr_expect_eq(wire_settle(&wire, 300 * SETTLE_NS), 0);
	EXPECT_GAUGES(wire, 0, 1);
}

Test(requests, the_next_request_of_a_settled_connection_begins_and_ends_nothing)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	wire_arrive(&wire, 400 + SETTLE_NS);
	cr_expect_eq(wire_settle(&wire, 500 + SETTLE_NS), REQUEST_ENDED);
	EXPECT_GAUGES(wire, 1, 0);
	cr_expect_eq(wire_read(&wire, 600 + SETTLE_NS), REQUEST_BEGAN);
	wire_send(&wire, 700 + SETTLE_NS);
	wire_close(&wire, 800 + SETTLE_NS);
	EXPECT_LAST(wire, 200, 100);
}

/* --- clocks that differ between CPUs ---------------------------------------------------------- */

Test(requests, a_read_on_a_cpu_whose_clock_is_behind_has_not_waited)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 90);
	wire_send(&wire, 80);
	wire_close(&wire, 70);
	EXPECT_LAST(wire, 0, 0);
}

Test(requests, a_sweep_on_a_cpu_whose_clock_is_behind_settles_nothing)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 200);
	wire_send(&wire, 300);
	cr_expect_eq(wire_settle(&wire, 290), 0);
}

/* --- reads that no hook sees ------------------------------------------------------------------ */

Test(requests, an_answer_to_bytes_taken_unseen_is_a_request_of_unknown_wait)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_write(&wire);
	wire_told_unread(&wire, 300, false);
	EXPECT_GAUGES(wire, 0, 0);
	wire_close(&wire, 400);
	cr_expect_eq(wire.began, 1);
	cr_expect_eq(wire.ended, 1);
	cr_expect_eq(wire.last.queue_ns, QUEUE_UNKNOWN);
	cr_expect_eq(wire.unrequested, 0);
	cr_expect_eq(wire.abandoned_queued, 0);
}

Test(requests, an_answer_to_bytes_taken_unseen_ends_the_request_before)
{
	struct wire wire = wire_open();

	wire_arrive(&wire, 100);
	wire_read(&wire, 150);
	wire_send(&wire, 170);
	wire_arrive(&wire, 200);
	wire_write(&wire);
	wire_told_unread(&wire, 300, false);
	cr_expect_eq(wire.began, 2);
	cr_expect_eq(wire.ended, 1);
	EXPECT_LAST(wire, 50, 20);
}

Test(requests, bytes_that_arrive_between_the_read_and_its_hook_keep_their_stamp)
{
	struct wire wire = wire_open();
	struct request ended;
	uint64_t arrived;

	wire_arrive(&wire, 100);
	wire_arrive(&wire, 140); /* after the read took the first ones, before its hook runs */
	arrived = conn_take(&wire.conn);
	conn_left(&wire.conn);
	conn_read(&wire.conn, T0 + 150, arrived, wire.write_seq, &ended);
	cr_expect_eq(wire.conn.queue_ns, 50);
	cr_expect_eq(wire.conn.arrived_ns, T0 + 140);
}
