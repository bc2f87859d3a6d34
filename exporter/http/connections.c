/* SPDX-License-Identifier: Apache-2.0 */
#include "http/connections.h"

#include <limits.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

/* See connection_lateness_ms(): of the asking origin's own answers none less late is ended. */
#define LATE_MS 250U

void http_connections_init(struct http_connections *connections, const struct http_limits *limits)
{
	*connections = (struct http_connections){ .limits = *limits };
	for (int stage = 0; stage < HTTP_STAGES; stage++)
		TAILQ_INIT(&connections->stages[stage]);
	TAILQ_INIT(&connections->closing);
}

size_t http_connections_len(const struct http_connections *connections)
{
	size_t len = 0;

	for (int stage = 0; stage < HTTP_STAGES; stage++)
		len += connections->stage_len[stage];
	return len;
}

static void connection_leave(struct http_connections *connections,
			     struct http_connection *connection)
{
	if (connection->closing) {
		TAILQ_REMOVE(&connections->closing, connection, link);
		return;
	}
	TAILQ_REMOVE(&connections->stages[connection->stage], connection, link);
	connections->stage_len[connection->stage]--;
	shares_give_back(&connections->shares, &connection->origin);
	if (connection->stage == HTTP_STAGE_ANSWER)
		shares_give_back(&connections->answers, &connection->origin);
}

static void connection_enter(struct http_connections *connections,
			     struct http_connection *connection, enum http_stage stage,
			     uint64_t now_ms)
{
	connection->stage = stage;
	connection->since_ms = now_ms;
	TAILQ_INSERT_TAIL(&connections->stages[stage], connection, link);
	connections->stage_len[stage]++;
	shares_take(&connections->shares, &connection->origin);
	if (stage == HTTP_STAGE_ANSWER)
		shares_take(&connections->answers, &connection->origin);
}

static bool connection_ask_tcp(const struct http_connection *connection, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	*info = (struct tcp_info){ 0 };
	return getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, info, &len) == 0;
}

/*
 * The descriptor is libmicrohttpd's: it is only shut down here, and closed there. What the client
 * has not taken would stay in the kernel for minutes: it is thrown away with a reset.
 */
static void connection_shut(struct http_connections *connections,
			    struct http_connection *connection, uint64_t *count)
{
	const struct linger reset = { .l_onoff = 1 };
	struct tcp_info info;

	if (connection_ask_tcp(connection, &info) && (info.tcpi_unacked || info.tcpi_notsent_bytes))
		setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	shutdown(connection->fd, SHUT_RDWR);
	connection_leave(connections, connection);
	connection->closing = true;
	TAILQ_INSERT_TAIL(&connections->closing, connection, link);
	(*count)++;
}

/*
 * The connection that gives way to @asking; NULL: to any origin. Passwords are checked and pages
 * made first come, first served: there the last has waited in vain for the shortest time.
 */
static struct http_connection *connections_victim(const struct http_connections *connections,
						  const struct http_origin *asking)
{
	struct http_connection *connection, *last = NULL;

	for (int stage = 0; stage < HTTP_STAGES && !last; stage++) {
		bool first = stage != HTTP_STAGE_CHECK && stage != HTTP_STAGE_WAIT &&
			     stage != HTTP_STAGE_LATER;

		TAILQ_FOREACH(connection, &connections->stages[stage], link)
		{
			if (asking &&
			    !shares_gives_way(&connections->shares, &connection->origin, asking))
				continue;
			last = connection;
			if (first)
				break;
		}
	}
	return last;
}

static void connections_evict(struct http_connections *connections,
			      const struct http_origin *asking)
{
	struct http_connection *victim = connections_victim(connections, asking);

	if (victim)
		connection_shut(connections, victim, &connections->evicted);
}

struct http_connection *http_connections_add(struct http_connections *connections, int fd,
					     const struct http_origin *origin, uint64_t now_ms)
{
	struct http_connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	if (http_connections_len(connections) >= connections->limits.max)
		connections_evict(connections, origin);
	connection->fd = fd;
	connection->origin = *origin;
	connection_enter(connections, connection, HTTP_STAGE_REQUEST, now_ms);
	return connection;
}

void http_connections_remove(struct http_connections *connections,
			     struct http_connection *connection)
{
	connection_leave(connections, connection);
	free(connection);
}

void http_connections_stage(struct http_connections *connections,
			    struct http_connection *connection, enum http_stage stage,
			    uint64_t now_ms)
{
	if (connection->closing)
		return;
	connection_leave(connections, connection);
	connection_enter(connections, connection, stage, now_ms);
}

bool http_connections_poorer_wait(const struct http_connections *connections,
				  const struct http_origin *asking)
{
	size_t held = shares_held(&connections->answers, asking);
	const struct http_connection *connection;

	TAILQ_FOREACH(connection, &connections->stages[HTTP_STAGE_WAIT], link)
	{
		if (shares_held(&connections->answers, &connection->origin) < held)
			return true;
	}
	return false;
}

/*
 * How late a client is in taking its answer. One that takes nothing is ten times as late as one
 * that takes little: for so long no data could be sent. One that has taken all that was sent waits
 * for us.
 */
static uint64_t connection_lateness_ms(const struct http_connection *connection, uint64_t now_ms)
{
	uint64_t age_ms = now_ms - connection->since_ms, stalled_ms = age_ms;
	struct tcp_info info;

	if (connection_ask_tcp(connection, &info)) {
		if (!info.tcpi_unacked && !info.tcpi_notsent_bytes)
			stalled_ms = 0;
		else if (info.tcpi_last_data_sent < age_ms)
			stalled_ms = info.tcpi_last_data_sent;
	}
	return stalled_ms + age_ms / 10;
}

bool http_connections_end_answer(struct http_connections *connections,
				 const struct http_origin *asking, uint64_t now_ms)
{
	struct http_connection *connection, *latest = NULL;
	uint64_t most_ms = 0;

	TAILQ_FOREACH(connection, &connections->stages[HTTP_STAGE_ANSWER], link)
	{
		uint64_t late_ms = connection_lateness_ms(connection, now_ms);
		bool own = http_origin_equal(&connection->origin, asking);

		if (!shares_gives_way(&connections->answers, &connection->origin, asking) ||
		    (own && late_ms < LATE_MS) || (latest && late_ms <= most_ms))
			continue;
		latest = connection;
		most_ms = late_ms;
	}
	if (latest)
		connection_shut(connections, latest, &connections->evicted);
	return latest;
}

bool http_connections_are_closing(const struct http_connections *connections)
{
	return !TAILQ_EMPTY(&connections->closing);
}

void http_connections_evict(struct http_connections *connections)
{
	connections_evict(connections, NULL);
}

/* The ms until the oldest of @stage must have left it; UINT64_MAX for an empty one. */
static uint64_t stage_left_ms(const struct http_connections *connections, int stage,
			      uint64_t now_ms)
{
	const struct http_connection *oldest = TAILQ_FIRST(&connections->stages[stage]);
	uint64_t deadline_ms;

	if (!oldest || !connections->limits.stage_ms[stage])
		return UINT64_MAX;
	deadline_ms = oldest->since_ms + connections->limits.stage_ms[stage];
	return deadline_ms > now_ms ? deadline_ms - now_ms : 0;
}

void http_connections_expire(struct http_connections *connections, uint64_t now_ms)
{
	for (int stage = 0; stage < HTTP_STAGES; stage++)
		while (stage_left_ms(connections, stage, now_ms) == 0)
			connection_shut(connections, TAILQ_FIRST(&connections->stages[stage]),
					&connections->expired);
}

int http_connections_timeout_ms(const struct http_connections *connections, uint64_t now_ms)
{
	uint64_t least_ms = UINT64_MAX;

	for (int stage = 0; stage < HTTP_STAGES; stage++) {
		uint64_t left_ms = stage_left_ms(connections, stage, now_ms);

		least_ms = left_ms < least_ms ? left_ms : least_ms;
	}
	if (least_ms == UINT64_MAX)
		return -1;
	return least_ms > INT_MAX ? INT_MAX : (int)least_ms;
}
