/* SPDX-License-Identifier: Apache-2.0 */
#include "app/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"

#define FIRST_FD 3
#define WATCHDOG_MAX_US (3600 * 1000000ULL)

/* A number from the environment, which is 0 where there is none. */
static uint64_t env_number(const char *name)
{
	const char *text = getenv(name);
	uint64_t number;

	return text && !text_parse_u64(&text, &number) && !*text ? number : 0;
}

/* --- sockets -------------------------------------------------------------------------------- */

static int socket_option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value = 0;

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -errno : value;
}

static int listener_prepare(int fd)
{
	if (socket_option(fd, SO_TYPE) != SOCK_STREAM || socket_option(fd, SO_ACCEPTCONN) != 1)
		return -ENOTSOCK;
	return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno
											: 0;
}

int systemd_take_listeners(int *fds, size_t max, char *error, size_t error_bytes)
{
	bool ours = env_number("LISTEN_PID") == (uint64_t)getpid();
	uint64_t len = ours ? env_number("LISTEN_FDS") : 0;
	int r = 0;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (!len || len > max) {
		snprintf(error, error_bytes,
			 len ? "systemd has passed more than %zu sockets"
			     : "systemd has passed no socket (LISTEN_PID, LISTEN_FDS; at most "
			       "%zu): is the .socket unit enabled?",
			 max);
		return -ENOTSOCK;
	}
	for (size_t i = 0; i < len; i++) {
		fds[i] = FIRST_FD + (int)i;
		if (!r && listener_prepare(fds[i])) {
			r = -ENOTSOCK;
			snprintf(error, error_bytes,
				 "descriptor %d from systemd is no listening stream socket",
				 fds[i]);
		}
	}
	for (size_t i = 0; r && i < len; i++)
		close(fds[i]);
	return r ? r : (int)len;
}

/* --- states --------------------------------------------------------------------------------- */

/* Connected now, so that no address is needed later. */
static int notify_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_(cleanup_close) int fd = -1;
	size_t len = strlen(path);

	if ((path[0] != '/' && path[0] != '@') || len >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, path, len);
	if (path[0] == '@')
		address.sun_path[0] = '\0'; /* an abstract socket */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int systemd_open(struct systemd *systemd)
{
	uint64_t watchdog_us = env_number("WATCHDOG_USEC");
	uint64_t watchdog_pid = env_number("WATCHDOG_PID");
	const char *path = getenv("NOTIFY_SOCKET");
	int fd;

	*systemd = (struct systemd){ .notify_fd = -1 };
	if (!path)
		return 0;
	fd = notify_connect(path);
	if (fd < 0)
		return fd;
	systemd->notify_fd = fd;
	if (watchdog_us && watchdog_us <= WATCHDOG_MAX_US &&
	    (!watchdog_pid || watchdog_pid == (uint64_t)getpid()))
		systemd->watchdog_ns = watchdog_us * NS_PER_US / 2;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return 0;
}

void systemd_close(struct systemd *systemd)
{
	cleanup_close(&systemd->notify_fd);
	systemd->notify_fd = -1;
}

void systemd_notify(const struct systemd *systemd, const char *state)
{
	if (systemd->notify_fd >= 0)
		(void)send(systemd->notify_fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT);
}

uint64_t systemd_due_ns(const struct systemd *systemd)
{
	return systemd->watchdog_ns ? systemd->told_ns + systemd->watchdog_ns : UINT64_MAX;
}

void systemd_tick(struct systemd *systemd, uint64_t now_ns)
{
	systemd_notify(systemd, "WATCHDOG=1");
	systemd->told_ns = now_ns;
}
