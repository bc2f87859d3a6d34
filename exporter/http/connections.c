/* SPDX-License-Identifier: Apache-2.0 */
#include "http/connections.h"

#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define NETWORK_BYTES 8 /* of an IPv6 address: whoever has one address has all of its /64 */

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

struct http_origin http_origin_of(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;
	struct http_origin origin = { 0 };

	if (address->ss_family == AF_INET) {
		origin.bytes[0] = sizeof(v4->sin_addr);
		memcpy(origin.bytes + 1, &v4->sin_addr, sizeof(v4->sin_addr));
	} else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		origin.bytes[0] = sizeof(v4->sin_addr);
		memcpy(origin.bytes + 1, v6->sin6_addr.s6_addr + 12, sizeof(v4->sin_addr));
	} else if (address->ss_family == AF_INET6) {
		origin.bytes[0] = NETWORK_BYTES;
		memcpy(origin.bytes + 1, v6->sin6_addr.s6_addr, NETWORK_BYTES);
	}
	return origin;
}

bool http_origin_equal(const struct http_origin *one, const struct http_origin *other)
{
	return memcmp(one, other, sizeof(*one)) == 0;
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
}

static void connection_enter(struct http_connections *connections,
			     struct http_connection *connection, enum http_stage stage,
			     uint64_t now_ms)
{
	connection->stage = stage;
	connection->since_ms = now_ms;
	TAILQ_INSERT_TAIL(&connections->stages[stage], connection, link);
	connections->stage_len[stage]++;
}

/* The descriptor is libmicrohttpd's: it is only shut down here, and closed there. */
static void connection_shut(struct http_connections *connections,
			    struct http_connection *connection, uint64_t *count)
{
	shutdown(connection->fd, SHUT_RDWR);
	connection_leave(connections, connection);
	connection->closing = true;
	TAILQ_INSERT_TAIL(&connections->closing, connection, link);
	(*count)++;
}

static bool connection_is_of(const struct http_connection *connection,
			     const struct http_origin *origin)
{
	return !origin || http_origin_equal(&connection->origin, origin);
}

/*
 * Who gives way, of those from @origin, or of all. Passwords are checked first come, first served:
 * there the last has waited in vain for the shortest time.
 */
static struct http_connection *connections_victim(const struct http_connections *connections,
						  const struct http_origin *origin)
{
	struct http_connection *connection, *last = NULL;

	for (int stage = 0; stage < HTTP_STAGES; stage++) {
		TAILQ_FOREACH(connection, &connections->stages[stage], link)
		{
			if (!connection_is_of(connection, origin))
				continue;
			last = connection;
			if (stage != HTTP_STAGE_CHECK)
				break;
		}
		if (last)
			return last;
	}
	return NULL;
}

static size_t connections_len_of(const struct http_connections *connections,
				 const struct http_origin *origin)
{
	const struct http_connection *connection;
	size_t len = 0;

	for (int stage = 0; stage < HTTP_STAGES; stage++) {
		TAILQ_FOREACH(connection, &connections->stages[stage], link)
		{
			len += connection_is_of(connection, origin);
		}
	}
	return len;
}

static void connections_give_way(struct http_connections *connections,
				 const struct http_origin *origin)
{
	const struct http_limits *limits = &connections->limits;
	struct http_connection *victim = NULL;

	if (connections_len_of(connections, origin) >= limits->max_per_origin)
		victim = connections_victim(connections, origin);
	else if (http_connections_len(connections) >= limits->max)
		victim = connections_victim(connections, NULL);
	if (victim)
		connection_shut(connections, victim, &connections->evicted);
}

struct http_connection *http_connections_add(struct http_connections *connections, int fd,
					     const struct http_origin *origin, uint64_t now_ms)
{
	struct http_connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	connections_give_way(connections, origin);
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

bool http_connections_make_room(struct http_connections *connections, size_t max,
				uint64_t stalled_ms, uint64_t now_ms)
{
	struct http_connection *oldest = TAILQ_FIRST(&connections->stages[HTTP_STAGE_ANSWER]);

	if (connections->stage_len[HTTP_STAGE_ANSWER] < max)
		return true;
	if (!oldest || now_ms - oldest->since_ms < stalled_ms)
		return false;
	connection_shut(connections, oldest, &connections->evicted);
	return true;
}

void http_connections_evict(struct http_connections *connections)
{
	struct http_connection *victim = connections_victim(connections, NULL);

	if (victim)
		connection_shut(connections, victim, &connections->evicted);
}

/* The ms until the oldest of @stage must have left it; UINT64_MAX for an empty one. */
static uint64_t stage_left_ms(const struct http_connections *connections, int stage,
			      uint64_t now_ms)
{
	const struct http_connection *oldest = TAILQ_FIRST(&connections->stages[stage]);
	uint64_t deadline_ms;

	if (!oldest)
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
