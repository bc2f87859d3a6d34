/* SPDX-License-Identifier: Apache-2.0 */
/* A connection for tests of the request machine: its state, what TCP knows, what came of it. */
#ifndef WORKLOAD_TESTS_WIRE_H
#define WORKLOAD_TESTS_WIRE_H

#include <criterion/criterion.h>

#include <stdbool.h>
#include <stdint.h>

#include "machine/requests.h"

#define UNTOUCHED 0x5555555555555555ULL
#define T0 1000000000000ULL /* any time will do */
#define MS 1000000ULL

/* One connection: the machine, what TCP knows, and what has come of it. */
struct wire {
	struct conn conn;
	uint32_t write_seq; /* wraps round in the middle of every test */
	bool left; /* no thread is at an answer any more, if it is asked */
	uint64_t opened; /* where the server speaks first, as is known: when it was made */
	int began, ended, answered, unrequested, abandoned_queued, abandoned_service, goodbyes;
	int unanswered, multiplexed;
	struct request last; /* the request that ended last */
};

static inline struct wire wire_open(void)
{
	struct wire wire = { .write_seq = UINT32_MAX - 150 };

	wire.last = (struct request){ UNTOUCHED, UNTOUCHED };
	return wire;
}

static inline uint32_t wire_count(struct wire *wire, uint32_t events, const struct request *ended)
{
	wire->began += !!(events & REQUEST_BEGAN);
	wire->ended += !!(events & REQUEST_ENDED);
	wire->answered += !!(events & REQUEST_ANSWERED);
	wire->unrequested += !!(events & REQUEST_UNREQUESTED);
	wire->abandoned_queued += !!(events & REQUEST_ABANDONED_QUEUED);
	wire->abandoned_service += !!(events & REQUEST_ABANDONED_SERVICE);
	wire->goodbyes += !!(events & REQUEST_GOODBYE);
	wire->unanswered += !!(events & REQUEST_UNANSWERED);
	wire->multiplexed += !!(events & REQUEST_MULTIPLEXED);
	if (events & REQUEST_ENDED)
		wire->last = *ended;
	return events;
}

static inline void wire_arrive(struct wire *wire, uint64_t at)
{
	conn_readable(&wire->conn, T0 + at, false);
}

/* The client has not got yet all that was sent. */
static inline void wire_cross(struct wire *wire, uint64_t at)
{
	conn_readable(&wire->conn, T0 + at, true);
}

/* Whether a read of what arrived at @arrived would be looked at; 0: at a time that was not seen. */
static inline bool wire_asks(const struct wire *wire, uint64_t arrived)
{
	struct reading reading = { .arrived = arrived ? T0 + arrived : 0,
				   .sent_seq = wire->write_seq };

	return conn_asks_bytes(&wire->conn, &reading);
}

/* Takes @bytes, which look like @begins; @unread: there are more. */
static inline uint32_t wire_read_bytes(struct wire *wire, uint64_t at, uint32_t bytes,
				       uint32_t begins, bool unread)
{
	struct request ended = { UNTOUCHED, UNTOUCHED };
	struct reading reading = {
		.now = T0 + at,
		.arrived = conn_take(&wire->conn),
		.sent_seq = wire->write_seq,
		.bytes = bytes,
		.opened_ns = conn_is_greeted(&wire->conn) ? wire->opened : 0,
	};

	if (conn_asks_bytes(&wire->conn, &reading))
		reading.begins = begins;
	conn_left(&wire->conn, unread);
	return wire_count(wire, conn_read(&wire->conn, &reading, &ended), &ended);
}

/* Takes @bytes, the first of which are @word. */
static inline uint32_t wire_read_word(struct wire *wire, uint64_t at, uint32_t bytes, uint64_t word)
{
	union line line = { .word = word };

	return wire_read_bytes(wire, at, bytes,
			       conn_begins(&wire->conn, &line, http_method_end(&line), bytes),
			       false);
}

/* Takes some of the bytes, or all of them. */
static inline uint32_t wire_read_part(struct wire *wire, uint64_t at, bool unread)
{
	return wire_read_bytes(wire, at, 100, BEGINS_OTHER, unread);
}

static inline uint32_t wire_read(struct wire *wire, uint64_t at)
{
	return wire_read_part(wire, at, false);
}

/* The bytes are on their way, the hook of the sending thread has not run yet. */
static inline void wire_write(struct wire *wire)
{
	wire->write_seq += 100;
}

static inline struct sending wire_sending(const struct wire *wire, uint64_t at, uint32_t bytes)
{
	uint64_t phase = wire->conn.phase;

	return (struct sending){
		.now = T0 + at,
		.sent_seq = wire->write_seq,
		.bytes = bytes,
		.over = wire->left && conn_asks_over(&wire->conn, phase, T0 + at) ? phase : 0,
		.opened_ns = conn_is_new(&wire->conn) ? wire->opened : 0,
	};
}

/* Whether a send of @bytes would be looked at, whose hook runs now. */
static inline bool wire_asks_sent(const struct wire *wire, uint64_t at, uint32_t bytes)
{
	struct sending sending = wire_sending(wire, at, bytes);

	return conn_asks_sent_bytes(&wire->conn, &sending);
}

/* The hook after a send of @bytes, which look like @begins. */
static inline uint32_t wire_told_bytes(struct wire *wire, uint64_t at, bool unread, uint32_t bytes,
				       uint32_t begins)
{
	struct request ended = { UNTOUCHED, UNTOUCHED };
	struct sending sending = wire_sending(wire, at, bytes);

	if (wire_asks_sent(wire, at, bytes))
		sending.begins = begins;
	sending.gone = unread ? 0 : conn_waiting(&wire->conn);
	return wire_count(wire, conn_sent(&wire->conn, &sending, &ended), &ended);
}

/* The hook after a send, when the bytes are gone that arrived at @gone. */
static inline uint32_t wire_told_gone(struct wire *wire, uint64_t at, uint64_t gone)
{
	struct request none = { UNTOUCHED, UNTOUCHED };
	struct sending sending = wire_sending(wire, at, 100);

	sending.gone = gone;
	return conn_sent(&wire->conn, &sending, &none);
}

static inline uint32_t wire_told_as(struct wire *wire, uint64_t at, bool unread, uint32_t begins)
{
	return wire_told_bytes(wire, at, unread, 100, begins);
}

static inline uint32_t wire_told_unread(struct wire *wire, uint64_t at, bool unread)
{
	return wire_told_as(wire, at, unread, BEGINS_OTHER);
}

static inline uint32_t wire_told(struct wire *wire, uint64_t at)
{
	return wire_told_unread(wire, at, wire->conn.arrived_ns != 0);
}

static inline uint32_t wire_send(struct wire *wire, uint64_t at)
{
	wire_write(wire);
	return wire_told(wire, at);
}

/* All that was sent has arrived. */
static inline struct stream wire_stream(const struct wire *wire)
{
	return (struct stream){
		.sent_seq = wire->write_seq,
		.acked_seq = wire->write_seq,
		.unread = wire->conn.arrived_ns != 0,
		.opened_ns = conn_is_new(&wire->conn) ? wire->opened : 0,
	};
}

static inline uint32_t wire_close_as(struct wire *wire, uint64_t at, const struct stream *stream)
{
	struct request ended = { UNTOUCHED, UNTOUCHED };

	return wire_count(wire, conn_closed(&wire->conn, T0 + at, stream, &ended), &ended);
}

static inline uint32_t wire_close(struct wire *wire, uint64_t at)
{
	struct stream stream = wire_stream(wire);

	return wire_close_as(wire, at, &stream);
}

static inline uint32_t wire_settle(struct wire *wire, uint64_t at)
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

#endif
