/* SPDX-License-Identifier: Apache-2.0 */
#include "http/connections.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

/* See connection_lateness_ms(): of the asking origin's own answers none less late is ended. */
#define LATE_MS 250U

void http_connections_init(struct http_connections *connections, const struct http_limits *limits)
{
	*connections = (struct http_connections){ .limits = *limits };
	TAILQ_INIT(&connections->all);
}

static bool connection_is_in(const struct http_connection *connection, enum http_stage stage)
{
	return !connection->closing && (stage == HTTP_STAGES || connection->stage == stage);
}

size_t http_connections_held(const struct http_connections *connections, enum http_stage stage,
			     const struct http_origin *origin)
{
	const struct http_connection *connection;
	size_t held = 0;

	TAILQ_FOREACH(connection, &connections->all, link)
	{
		held += connection_is_in(connection, stage) &&
			(!origin || http_origin_equal(&connection->origin, origin));
	}
	return held;
}

struct http_connection *http_connections_oldest(const struct http_connections *connections,
						enum http_stage stage)
{
	struct http_connection *connection;

	TAILQ_FOREACH(connection, &connections->all, link)
	{
		if (connection_is_in(connection, stage))
			break;
	}
	return connection;
}

/*
 * The descriptor is libmicrohttpd's: it is only shut down here, and closed there. What the client
 * has not taken would stay in the kernel for minutes: it is thrown away with a reset.
 */
static void connection_shut(struct http_connection *connection, uint64_t *count)
{
	const struct linger reset = { .l_onoff = 1 };

	setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	shutdown(connection->fd, SHUT_RDWR);
	connection->closing = true;
	(*count)++;
}

/*
 * How late a client is in taking its answer. One that takes nothing is ten times as late as one
 * that takes little: for so long no data could be sent. One that has taken all that was sent waits
 * for us.
 */
static uint64_t connection_lateness_ms(const struct http_connection *connection, uint64_t now_ms)
{
	uint64_t age_ms = now_ms - connection->since_ms, stalled_ms = age_ms;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0) {
		if (!info.tcpi_unacked && !info.tcpi_notsent_bytes)
			stalled_ms = 0;
		else if (info.tcpi_last_data_sent < age_ms)
			stalled_ms = info.tcpi_last_data_sent;
	}
	return stalled_ms + age_ms / 10;
}

/*
 * Of two of origins that have as many, with @one for longer in its stage. Passwords are checked and
 * pages made first come, first served: there the last has waited in vain for the shortest time.
 */
static bool connection_goes_before(const struct http_connection *other,
				   const struct http_connection *one, uint64_t now_ms)
{
	if (other->stage != one->stage)
		return other->stage < one->stage;
	if (one->stage == HTTP_STAGE_ANSWER)
		return connection_lateness_ms(other, now_ms) > connection_lateness_ms(one, now_ms);
	return one->stage == HTTP_STAGE_CHECK || one->stage == HTTP_STAGE_WAIT ||
	       one->stage == HTTP_STAGE_LATER;
}

/* The connection that gives way to @asking, of those in @stage or, with HTTP_STAGES, of all. */
static struct http_connection *connections_victim(const struct http_connections *connections,
						  enum http_stage stage,
						  const struct http_origin *asking, uint64_t now_ms)
{
	size_t own = http_connections_held(connections, stage, asking), most = own;
	struct http_connection *connection, *victim = NULL;

	TAILQ_FOREACH(connection, &connections->all, link)
	{
		bool is_own = http_origin_equal(&connection->origin, asking);
		size_t held = own;

		if (!connection_is_in(connection, stage))
			continue;
		if (!is_own)
			held = http_connections_held(connections, stage, &connection->origin);
		if (held < most || (held == own && !is_own))
			continue;
		if (!victim || held > most || connection_goes_before(connection, victim, now_ms))
			victim = connection;
		most = held;
	}
	return victim;
}

static void connections_evict(struct http_connections *connections,
			      const struct http_origin *asking, uint64_t now_ms)
{
	struct http_connection *victim = connections_victim(connections, HTTP_STAGES, asking,
							    now_ms);

	if (victim)
		connection_shut(victim, &connections->evicted);
}

struct http_connection *http_connections_add(struct http_connections *connections, int fd,
					     const struct http_origin *origin, uint64_t now_ms)
{
	struct http_connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	if (http_connections_held(connections, HTTP_STAGES, NULL) >= connections->limits.max)
		connections_evict(connections, origin, now_ms);
	connection->fd = fd;
	connection->origin = *origin;
	connection->since_ms = now_ms;
	TAILQ_INSERT_TAIL(&connections->all, connection, link);
	return connection;
}

void http_connections_remove(struct http_connections *connections,
			     struct http_connection *connection)
{
	TAILQ_REMOVE(&connections->all, connection, link);
	free(connection);
}

void http_connections_stage(struct http_connections *connections,
			    struct http_connection *connection, enum http_stage stage,
			    uint64_t now_ms)
{
	connection->stage = stage;
	connection->since_ms = now_ms;
	TAILQ_REMOVE(&connections->all, connection, link);
	TAILQ_INSERT_TAIL(&connections->all, connection, link);
}

bool http_connections_poorer_wait(const struct http_connections *connections,
				  const struct http_origin *asking)
{
	size_t held = http_connections_held(connections, HTTP_STAGE_ANSWER, asking);
	const struct http_connection *connection;

	if (!held)
		return false;
	TAILQ_FOREACH(connection, &connections->all, link)
	{
		if (connection_is_in(connection, HTTP_STAGE_WAIT) &&
		    !http_origin_equal(&connection->origin, asking) &&
		    http_connections_held(connections, HTTP_STAGE_ANSWER, &connection->origin) <
			    held)
			return true;
	}
	return false;
}

bool http_connections_end_answer(struct http_connections *connections,
				 const struct http_origin *asking, uint64_t now_ms)
{
	struct http_connection *victim = connections_victim(connections, HTTP_STAGE_ANSWER, asking,
							    now_ms);

	if (!victim || (http_origin_equal(&victim->origin, asking) &&
			connection_lateness_ms(victim, now_ms) < LATE_MS))
		return false;
	connection_shut(victim, &connections->evicted);
	return true;
}

uint64_t http_connections_late_ms(const struct http_connections *connections,
				  const struct http_origin *asking, uint64_t now_ms)
{
	const struct http_connection *victim = connections_victim(connections, HTTP_STAGE_ANSWER,
								  asking, now_ms);
	uint64_t lateness_ms = victim ? connection_lateness_ms(victim, now_ms) : LATE_MS;

	return lateness_ms < LATE_MS ? now_ms + LATE_MS - lateness_ms : UINT64_MAX;
}

bool http_connections_are_closing(const struct http_connections *connections)
{
	const struct http_connection *connection;

	TAILQ_FOREACH(connection, &connections->all, link)
	{
		if (connection->closing)
			return true;
	}
	return false;
}

void http_connections_evict(struct http_connections *connections, uint64_t now_ms)
{
	connections_evict(connections, &(const struct http_origin){ 0 }, now_ms);
}

/* Its deadline; UINT64_MAX: it has none, or not any more. */
static uint64_t connection_due_ms(const struct http_connections *connections,
				  const struct http_connection *connection)
{
	uint64_t stage_ms = connections->limits.stage_ms[connection->stage];

	return connection->closing || !stage_ms ? UINT64_MAX : connection->since_ms + stage_ms;
}

void http_connections_expire(struct http_connections *connections, uint64_t now_ms)
{
	struct http_connection *connection;

	TAILQ_FOREACH(connection, &connections->all, link)
	{
		uint64_t due_ms = connection_due_ms(connections, connection);

		if (due_ms <= now_ms && due_ms != UINT64_MAX)
			connection_shut(connection, &connections->expired);
	}
}

uint64_t http_connections_due_ms(const struct http_connections *connections)
{
	const struct http_connection *connection;
	uint64_t first_ms = UINT64_MAX;

	TAILQ_FOREACH(connection, &connections->all, link)
	{
		uint64_t due_ms = connection_due_ms(connections, connection);

		first_ms = due_ms < first_ms ? due_ms : first_ms;
	}
	return first_ms;
}
