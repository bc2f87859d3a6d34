/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the request machine remembers of one connection, what it is told, and what it answers. No
 * hook, no helper, no map.
 */
#ifndef WORKLOAD_MACHINE_CONNECTION_H
#define WORKLOAD_MACHINE_CONNECTION_H

#include "machine/preamble.h"

/* Values of phase; any other one is the time of the last send of an answered request. */
#define PHASE_IDLE 0ULL
#define PHASE_SERVICE 1ULL

#define QUEUE_UNKNOWN (~0ULL) /* the request's arrival was not seen */
#define SETTLE_NS 1000000000ULL /* an answer is complete when it is this old */
#define PAUSE_NS 1000000ULL /* between two sends of one answer: less is none */
#define INTERIM_BYTES 100U /* an interim answer of more has fields, which few servers send */

/* Values of closed. */
#define CONN_OPEN 0U
#define CONN_CLOSED 1U
#define CONN_LEFT 2U /* by the server, without an answer: the client may have been first */
#define CONN_MULTIPLEXED 3U /* open, and its turns are not its requests */

/* Values of protocol: what the first read has begun with, and what has been learned since. */
#define PROTOCOL_NEW 0U /* no read has been seen yet */
#define PROTOCOL_OTHER 1U /* not known */
#define PROTOCOL_ONE_WAY 2U /* nor this one, and the client waits for no answers */
#define PROTOCOL_TLS 3U
#define PROTOCOL_MYSQL 4U
#define PROTOCOL_HTTP 5U /* HTTP/1 */
#define PROTOCOL_HTTP_BODIES 6U /* the same with bodies: what follows an answer is looked at */

/*
 * A client of no known protocol that sends more after it has been silent for so long does not wait
 * for an answer to what it sent before. Parts of one request follow sooner: after a round trip,
 * Nagle's algorithm and delayed acknowledgements (40 to 200 ms). A tick is 1.05 ms.
 */
#define TICK_SHIFT 20
#define SILENCE_TICKS (500000000U >> TICK_SHIFT)

/*
 * TLS: a message of so few bytes after an answer, with nothing sent until the client sends more of
 * its own accord, wanted no answer: the end of a handshake has up to 80, a window update of HTTP/2
 * has 35. What belongs together follows within a round trip, and the head of an upload is longer.
 */
#define UNANSWERED_BYTES 80U
#define UNANSWERED_NS 10000000ULL

/*
 * Values of doubt: what was read may be no request, but the rest of the one before, which was
 * answered early.
 */
#define DOUBT_NONE 0U
#define DOUBT_UNKNOWN 1U /* HTTP/1: not looked at, or too short to tell */
#define DOUBT_REST 2U /* TLS: the client had not got the answer when it sent it */

#define REST_UNKNOWN (~0U) /* how long it waited is not known, or too long for 32 bits */

/*
 * A client that sends a request while it has not got all that was sent does not wait for answers.
 * Once is nothing (a TLS server sends session tickets when it likes); so often, less once for each
 * four requests before which it waited, and its requests share the connection.
 */
#define MIXED_WEIGHT 4U
#define MIXED_MANY (8U * MIXED_WEIGHT)

#define ARRIVAL_TAKES_NS 100000ULL /* for a segment, from tcp_probe on until TCP has its bytes */

/* Reads and sends write the first part, arrivals the second: a cache line for each CPU's. */
struct conn {
	__u64 phase;
	__u64 read_ns; /* first read of the request in progress: with the phase, which one it is */
	__u64 queue_ns; /* how long it had waited, or QUEUE_UNKNOWN; see machine/opening.h */
	__u64 settled_ns; /* last send of the request that the sweep ended last; 0 if none */
	__u32 start_seq; /* what had been sent before it, or nothing (tcp_sock.write_seq) */
	__u32 closed;
	__u64 thread; /* the thread at the request: address of its struct thread, or 0 */
	__u32 tid; /* and its id */
	__u8 paused : 1; /* its answer has come in pieces, with time between */
	__u8 head : 3; /* an interim answer before its own is under way: HEAD_, see answers.h */
	__u8 interim : 1; /* there have been interim answers on this connection */
	__u8 answered : 1; /* a request of it has been answered */
	__u8 wanting : 1; /* TCP took less than was sent last: the server waits for room */
	__u8 greeted : 1; /* the server has spoken first */
	__u8 protocol;
	__u16 taken; /* bytes read of the request in progress; no more than there is room for */
	__u32 told_seq; /* write_seq at the last send that was told */
	__u32 swept_seq; /* and when the sweep passed last */

	__u64 arrived_ns; /* first unread byte of the waiting request; 0 if none waits */
	__u64 next_ns; /* first arrival after that one; 0 if there was none */
	__u64 latest_ns; /* last arrival of bytes */
	__u64 piece_ns; /* last read of what follows an answer; 0 for the first request */
	__u64 fin_ns; /* the client has ended its side; 0 if it has not */
	union {
		__u32 rest_queue_ns; /* how long a rest had waited that was read then, or
					REST_UNKNOWN */
		struct preamble preamble; /* before the first request */
		__u32 read_tick; /* last read: with no known protocol; see conn_tick() */
	};
	__u8 mixed; /* how often the client did not wait for answers, see MIXED_MANY */
	__u8 crosses; /* what waits came before the client had got all that was sent */
	/* Reads only write what follows. */
	__u8 doubt; /* whether the request in progress is one: DOUBT_ */
	__u8 crossed : 1; /* it came before the client had got all that was sent */
	__u8 upload : 1; /* HTTP/1: it may have a body */
	__u8 tunnel : 1; /* HTTP/1: it is for a connection to somewhere else */
	__u8 opens : 1; /* it was the first, and nothing had been sent before */
};
#define CONN_HEAD_BYTES offsetof(struct conn, told_seq) /* what machine/binding.h looks at */
_Static_assert(offsetof(struct conn, arrived_ns) == 64, "struct conn is not in cache lines");

/* What TCP knows of a connection. */
struct stream {
	__u32 sent_seq; /* write_seq: after the last byte that it was given */
	__u32 acked_seq; /* snd_una: ... that the client has acknowledged */
	int unread; /* bytes that arrived are still there */
	int leaving; /* the server closes, of its own accord */
	int reset; /* the client has reset it */
	int quiet; /* its endpoint has answered nothing yet */
	int left; /* the thread that read the request in service is not at it any more */
	__u64 opened_ns; /* its client waits since then for the server to speak first; 0: not so */
};

/* A read. */
struct reading {
	__u64 now;
	__u64 arrived; /* its first byte; 0: not seen */
	__u64 next; /* the first byte that did not come with that; 0: all came together */
	__u64 round_ns; /* round trip to the client, as TCP knows it */
	__u32 sent_seq; /* write_seq: tells an answer even before the hook after its send has run */
	__u32 bytes;
	__u32 first_bytes; /* so many had come with the first */
	__u32 begins; /* BEGINS_, where conn_asks_bytes() */
	__u32 skipped; /* bytes of a preamble, before those which it begins with */
	__u64 opened_ns; /* the connection was made then, and the server spoke first; 0: not so */
	__u64 socket; /* address, where the current system call may be about another; else 0 */
};

/* A send. */
struct sending {
	__u64 now;
	__u64 gone; /* the stamp of bytes that waited and are not unread any more; 0: none are */
	__u32 sent_seq; /* write_seq after it */
	__u32 bytes;
	__u32 begins; /* BEGINS_, where conn_asks_sent_bytes() */
	int full; /* there was no room for all of it */
	int left; /* as in struct stream, where conn_asks_left() */
	__u64 over; /* the phase whose answer no thread is at any more; see conn_asks_over() */
	__u64 opened_ns; /* as in struct stream, where conn_is_new() */
	__u64 socket; /* as in struct reading */
};

/* A request that has ended. */
struct request {
	__u64 queue_ns; /* QUEUE_UNKNOWN: not to be recorded, but counted as lost */
	__u64 service_ns;
};

/* What an event did; a read can end one request and begin the next. */
#define REQUEST_ENDED 1U
#define REQUEST_BEGAN 2U
#define REQUEST_ABANDONED_QUEUED 4U
#define REQUEST_ABANDONED_SERVICE 8U
#define REQUEST_ANSWERED 16U /* first send of an answer */
#define REQUEST_UNREQUESTED 32U /* a send that answers nothing */
#define REQUEST_UNSEEN 64U /* read on a way that no hook sees, and never answered */
#define REQUEST_GOODBYE 128U /* a turn that ends the connection and wants no answer */
#define REQUEST_UNANSWERED 256U /* bytes that nothing answers */
#define REQUEST_MULTIPLEXED 512U /* the connection turns out to carry many requests at a time */
#define REQUEST_PREAMBLE 1024U /* bytes of a proxy, before the first request */
#define REQUEST_ONE_WAY 2048U /* the connection turns out to bring messages without answers */
#define REQUEST_GREETED 4096U /* the server has spoken first */

#endif
