/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which clients are connected, what each is about, and which gives way when there are too many.
 *
 * libmicrohttpd's timeout counts inactivity only, so that a client sending a byte now and then
 * would keep its place for ever, and at its limit it turns new clients away. Here every stage of a
 * connection has a hard deadline, and at the limit an old connection gives way to the new one:
 * of the origin that has the most, which may be the one that comes, and of its connections those
 * first that have not completed a request. So a client that asks in earnest is served while others
 * sit there, one that takes a lot gets what others leave, and one that wants little always gets it.
 */
#ifndef WORKLOAD_HTTP_CONNECTIONS_H
#define WORKLOAD_HTTP_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "web/origin.h"

/* In the order in which they give way. */
enum http_stage {
	HTTP_STAGE_REQUEST, /* no complete request yet: handshake, request line, headers */
	HTTP_STAGE_IDLE, /* answered, and may ask again */
	HTTP_STAGE_CHECK, /* its password is being checked */
	HTTP_STAGE_WAIT, /* its page is to be made */
	HTTP_STAGE_LATER, /* its page comes later, within a time of its own */
	HTTP_STAGE_ANSWER, /* it is being answered */
	HTTP_STAGES,
};

struct web_tls;

struct http_connection {
	TAILQ_ENTRY(http_connection) link;
	int fd; /* not owned */
	struct http_origin origin;
	enum http_stage stage;
	uint64_t since_ms; /* CLOCK_MONOTONIC, of the stage */
	bool closing; /* has been shut down and waits to be closed by its owner */
	struct web_tls *tls; /* the owner's: of its session; NULL without */
};

TAILQ_HEAD(http_connection_list, http_connection);

struct http_limits {
	size_t max; /* connections in all; with one more an old one is shut down */
	uint64_t stage_ms[HTTP_STAGES]; /* after so long in a stage: shut down; 0: never */
};

struct http_connections {
	struct http_connection_list all; /* by the time of their stage, oldest first */
	struct http_limits limits;
	uint64_t evicted; /* shut down for another */
	uint64_t expired; /* shut down at a deadline */
};

void http_connections_init(struct http_connections *connections, const struct http_limits *limits);

/*
 * How many are in @stage (HTTP_STAGES: in any) and of @origin (NULL: of any). Those that are
 * closing are in none.
 */
size_t http_connections_held(const struct http_connections *connections, enum http_stage stage,
			     const struct http_origin *origin);

/* The one that has been in @stage for the longest time; NULL: there is none. */
struct http_connection *http_connections_oldest(const struct http_connections *connections,
						enum http_stage stage);

/*
 * Adds @fd in its first stage; the record is owned by @connections until removed. NULL without
 * memory. The connection that gives way is shut down; its owner then sees the end of its stream.
 */
struct http_connection *http_connections_add(struct http_connections *connections, int fd,
					     const struct http_origin *origin, uint64_t now_ms);
void http_connections_remove(struct http_connections *connections,
			     struct http_connection *connection);

/* Moves on to @stage, whose time begins now. */
void http_connections_stage(struct http_connections *connections,
			    struct http_connection *connection, enum http_stage stage,
			    uint64_t now_ms);

/*
 * Ends an answer for the sake of one to @asking: of the origin that has the most answers under way
 * the one that its client is latest in taking. An origin that asks and has as many itself ends only
 * what is really late: nothing taken for a quarter of a second, or too little for 2.5 s. Whether
 * there was one.
 */
bool http_connections_end_answer(struct http_connections *connections,
				 const struct http_origin *asking, uint64_t now_ms);

/* When the latest of those that give way may be late; UINT64_MAX: it is now, or there is none. */
uint64_t http_connections_late_ms(const struct http_connections *connections,
				  const struct http_origin *asking, uint64_t now_ms);

/* Whether a page is to be made for another first, whose origin has fewer answers under way. */
bool http_connections_poorer_wait(const struct http_connections *connections,
				  const struct http_origin *asking);

/* Whether some have been shut down and are not closed yet: what they hold is not free yet. */
bool http_connections_are_closing(const struct http_connections *connections);

/* Shuts down the one that gives way first, if there is any. */
void http_connections_evict(struct http_connections *connections, uint64_t now_ms);

/* Shuts down those whose deadline has passed. */
void http_connections_expire(struct http_connections *connections, uint64_t now_ms);

/* When the next deadline is (CLOCK_MONOTONIC); UINT64_MAX if there is none. */
uint64_t http_connections_due_ms(const struct http_connections *connections);

#endif
