/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: requests from their headers until they are answered or given up, and what each waits for
 * meanwhile. A request that waits for more than the next run is suspended: libmicrohttpd does not
 * look at its connection, and nothing polls.
 */
#ifndef WORKLOAD_HTTP_TURNS_H
#define WORKLOAD_HTTP_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <microhttpd.h>

#include "base/loop.h"
#include "http/connections.h"
#include "http/page.h"
#include "http/routes.h"

/* What a request waits for. */
enum http_wait {
	HTTP_WAIT_NOTHING,
	HTTP_WAIT_RUN, /* the next run, with all others that have come in this one */
	HTTP_WAIT_ROOM, /* until there is room for its page: suspended until there may be */
	HTTP_WAIT_CHECK, /* until its password has been compared: suspended */
	HTTP_WAIT_LATER, /* until its page is there: suspended */
	HTTP_WAITS,
};

/* What has become of a page that was to come later. */
enum http_later_end {
	HTTP_LATER_OPEN,
	HTTP_LATER_ANSWERED,
	HTTP_LATER_FAILED, /* it could not be made */
	HTTP_LATER_EXPIRED, /* the route's time is over */
	HTTP_LATER_DISPLACED, /* another client had fewer under way */
	HTTP_LATER_GONE, /* the client has gone */
};

struct http_turns;

struct http_turn {
	struct http_later later;
	struct http_turns *turns;
	struct MHD_Connection *connection;
	struct http_connection *record; /* what the server keeps of it */
	uint64_t arrived_ns; /* when it was admitted, or then its late page came; 0: not yet */
	enum http_wait wait;
	bool admitted;
	bool suspended;
	bool left; /* its client has, meanwhile */
	const struct http_route *route; /* whose page comes later; NULL: of none, or it is sent */
	uint64_t due_ns; /* when it is woken if nothing comes before; UINT64_MAX: not then */
	enum http_later_end end;
	struct http_page page; /* once it is HTTP_LATER_ANSWERED; owned */
	struct loop_watch client; /* meanwhile */
	struct http_body *body; /* of the page that is being sent: a reference; NULL: none */
	TAILQ_ENTRY(http_turn) link; /* of those that are suspended */
	TAILQ_ENTRY(http_turn) late_link; /* of those with a route, until their page is sent */
};

struct http_turns {
	struct loop *loop; /* borrowed */
	TAILQ_HEAD(, http_turn) suspended;
	TAILQ_HEAD(, http_turn) late; /* in the order in which they came */
	size_t waiting[HTTP_WAITS]; /* requests, by what they wait for */
	bool resumed; /* some since this was cleared: libmicrohttpd is to be run */
};

void http_turns_init(struct http_turns *turns, struct loop *loop);

/* What the server keeps of a connection; NULL: nothing, for want of memory. */
struct http_connection *http_record_of(struct MHD_Connection *connection);

/* NULL without memory, then or for the record of the connection. */
struct http_turn *http_turn_new(struct http_turns *turns, struct MHD_Connection *connection);
void http_turn_free(struct http_turn *turn);

/* From now on the request waits for @wait: suspended where that says so, until turn->due_ns. */
void http_turn_wait(struct http_turn *turn, enum http_wait wait);

/*
 * It waits for room for its page, and looks again when an answer has begun or ended, or may be so
 * late that it gives way. False: it has waited for so long that it is to be refused.
 */
bool http_turn_wait_for_room(struct http_turn *turn, struct http_connections *connections);

/*
 * The same for one that comes while others wait: it waits with them, and all look again in the next
 * run, the oldest first. False as well where none waits.
 */
bool http_turn_line_up(struct http_turn *turn, struct http_connections *connections);

/* Whether its client has gone, or its connection was shut: for another one, or at a deadline. */
bool http_turn_is_over(const struct http_turn *turn);

/*
 * Whether one more answer of @route may be under way, for @asking. Where there are as many as there
 * may be, the newest of the origin that has the most gives way to an origin that has fewer: it is
 * the @victim, to be displaced once the answer is. NULL: none has to.
 */
bool http_turns_have_room(const struct http_turns *turns, const struct http_route *route,
			  const struct http_origin *asking, struct http_turn **victim);
void http_turn_displace(struct http_turn *turn);

/* The page of @route comes later, within the time that @route allows. */
void http_turn_late(struct http_turn *turn, const struct http_route *route);

/* The page is there: as http_later_answer(), for a turn that does not wait. */
void http_turn_answered(struct http_turn *turn, const struct http_page *page);

/* Nothing comes later any more: its page, if there is one, is the caller's. */
struct http_page http_turn_take_page(struct http_turn *turn);

/* Wakes those that are suspended for @wait, the one that has been so for the longest time first. */
void http_turns_wake(struct http_turns *turns, enum http_wait wait);

/* Wakes those whose connection was shut, or whose time is over. */
void http_turns_review(struct http_turns *turns, uint64_t now_ns);

/* When the time of the first is over (CLOCK_MONOTONIC); UINT64_MAX: of none. */
uint64_t http_turns_due_ns(const struct http_turns *turns);

/* Wakes all, before libmicrohttpd is stopped. */
void http_turns_end(struct http_turns *turns);

#endif
