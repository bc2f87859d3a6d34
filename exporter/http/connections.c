/* SPDX-License-Identifier: Apache-2.0 */
#include "http/connections.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>

void http_connections_init(struct http_connections *connections, size_t max, uint64_t deadline_ms)
{
	*connections = (struct http_connections){ .max = max, .deadline_ms = deadline_ms };
	TAILQ_INIT(&connections->list);
}

/* The descriptor is libmicrohttpd's: it is only shut down here, and closed there. */
static void http_connections_shut(struct http_connections *connections,
				  struct http_connection *connection)
{
	shutdown(connection->fd, SHUT_RDWR);
	connection->closing = 1;
	connections->len--;
}

/* The one without progress for the longest time, of those that are still served; or NULL. */
static struct http_connection *http_connections_oldest(const struct http_connections *connections)
{
	struct http_connection *connection;

	TAILQ_FOREACH(connection, &connections->list, link)
	{
		if (!connection->closing)
			return connection;
	}
	return NULL;
}

struct http_connection *http_connections_add(struct http_connections *connections, int fd,
					     uint64_t now_ms)
{
	struct http_connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	if (connections->len && connections->len >= connections->max)
		http_connections_shut(connections, http_connections_oldest(connections));
	connection->fd = fd;
	connection->progress_ms = now_ms;
	TAILQ_INSERT_TAIL(&connections->list, connection, link);
	connections->len++;
	return connection;
}

void http_connections_remove(struct http_connections *connections,
			     struct http_connection *connection)
{
	TAILQ_REMOVE(&connections->list, connection, link);
	connections->len -= !connection->closing;
	free(connection);
}

void http_connections_progress(struct http_connections *connections,
			       struct http_connection *connection, uint64_t now_ms)
{
	TAILQ_REMOVE(&connections->list, connection, link);
	connection->progress_ms = now_ms;
	TAILQ_INSERT_TAIL(&connections->list, connection, link);
}

int http_connections_timeout_ms(const struct http_connections *connections, uint64_t now_ms)
{
	const struct http_connection *oldest = http_connections_oldest(connections);
	uint64_t deadline_ms;

	if (!oldest)
		return -1;
	deadline_ms = oldest->progress_ms + connections->deadline_ms;
	if (deadline_ms <= now_ms)
		return 0;
	return deadline_ms - now_ms > INT_MAX ? INT_MAX : (int)(deadline_ms - now_ms);
}

int http_connections_expire(struct http_connections *connections, uint64_t now_ms)
{
	int timeout_ms;

	while ((timeout_ms = http_connections_timeout_ms(connections, now_ms)) == 0)
		http_connections_shut(connections, http_connections_oldest(connections));
	return timeout_ms;
}
