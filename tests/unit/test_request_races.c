/* SPDX-License-Identifier: Apache-2.0 */
/* The request machine under real concurrency: two threads meet each connection at one moment. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "machine/requests.h"

#define T0 1000000000000ULL /* any time will do */
#define RACES 100000
#define ANSWERED_SEQ 5100

enum racer_event { RACE_READ, RACE_SETTLE, RACE_CLOSE };

/* Walks over the connections in step with another thread, which meets each at the same moment. */
struct racer {
	struct conn *conns;
	int *progress, *other;
	enum racer_event event;
	int ended, began;
};

static uint32_t racer_touch(const struct racer *racer, struct conn *conn)
{
	static const struct stream answered = { .sent_seq = ANSWERED_SEQ, .unread = 1 };
	struct reading reading = { .now = T0 + 9 * SETTLE_NS, .sent_seq = ANSWERED_SEQ };
	struct request ended;

	if (racer->event == RACE_SETTLE)
		return conn_settle(conn, T0 + 9 * SETTLE_NS, &ended);
	if (racer->event == RACE_CLOSE)
		return conn_closed(conn, T0 + 9 * SETTLE_NS, &answered, &ended);
	reading.arrived = conn_take(conn);
	return conn_read(conn, &reading, &ended);
}

/* Meets the other thread at connection @i, sooner or later by a few nanoseconds each time. */
static void racer_meet(const struct racer *racer, int i)
{
	__atomic_store_n(racer->progress, i, __ATOMIC_RELEASE);
	for (int spins = 0; __atomic_load_n(racer->other, __ATOMIC_ACQUIRE) < i; spins++)
		if (spins > 1000)
			sched_yield();
	for (int delay = racer->event == RACE_SETTLE ? 0 : i % 128; delay > 0; delay--)
		__asm__ __volatile__("");
}

static void *racer_run(void *arg)
{
	struct racer *racer = arg;

	for (int i = 0; i < RACES; i++) {
		uint32_t events;

		racer_meet(racer, i);
		events = racer_touch(racer, &racer->conns[i]);
		racer->ended += !!(events & REQUEST_ENDED);
		racer->began += !!(events & REQUEST_BEGAN);
	}
	return NULL;
}

/* Every connection has one answered request; both threads find it, one of them ends it. */
static void race(enum racer_event first, enum racer_event second, int began)
{
	_cleanup_(cleanup_free) struct conn *conns = calloc(RACES, sizeof(*conns));
	int progress[2] = { -1, -1 };
	struct racer one = { conns, &progress[0], &progress[1], first, 0, 0 };
	struct racer two = { conns, &progress[1], &progress[0], second, 0, 0 };
	struct request none;
	pthread_t thread;

	cr_assert_not_null(conns);
	for (int i = 0; i < RACES; i++) {
		struct reading reading = { .now = T0 + 200, .sent_seq = ANSWERED_SEQ - 100 };
		struct sending sending = { .now = T0 + 300, .sent_seq = ANSWERED_SEQ };

		conn_readable(&conns[i], T0 + 100, false);
		reading.arrived = conn_take(&conns[i]);
		conn_read(&conns[i], &reading, &none);
		conn_sent(&conns[i], &sending, &none);
	}
	cr_assert_eq(pthread_create(&thread, NULL, racer_run, &one), 0);
	racer_run(&two);
	pthread_join(thread, NULL);
	cr_expect_eq(one.ended + two.ended, RACES, "%d and %d", one.ended, two.ended);
	cr_expect_eq(one.began + two.began, began);
}

Test(request_races, a_request_that_a_sweep_and_a_read_meet_ends_once)
{
	race(RACE_SETTLE, RACE_READ, RACES);
}

Test(request_races, a_request_that_a_sweep_and_a_close_meet_ends_once)
{
	race(RACE_SETTLE, RACE_CLOSE, 0);
}

Test(request_races, a_request_that_two_closes_meet_ends_once)
{
	race(RACE_CLOSE, RACE_CLOSE, 0);
}

Test(request_races, a_request_that_two_reads_meet_ends_once)
{
	race(RACE_READ, RACE_READ, RACES);
}

Test(request_races, a_request_that_a_read_and_a_close_meet_ends_once)
{
	race(RACE_READ, RACE_CLOSE, RACES);
}
