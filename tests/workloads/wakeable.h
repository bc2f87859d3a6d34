/* SPDX-License-Identifier: Apache-2.0 */
/* How client libraries wait that can be woken up as well (libcurl): for two descriptors. */
#ifndef TESTS_WAKEABLE_H
#define TESTS_WAKEABLE_H

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>

#include "workload.h"

static inline int epoll_wait_once(int fd, int other)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0), ready;

	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) ||
	    epoll_ctl(set, EPOLL_CTL_ADD, other, &event))
		die("epoll");
	ready = epoll_wait(set, &event, 1, -1);
	close(set);
	return ready;
}

static inline int select_once(int fd, int other)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	FD_SET(other, &set);
	return select((fd > other ? fd : other) + 1, &set, NULL, NULL, NULL);
}

/* Waits for @fd, by the call with whose name @how begins: select, epoll, or poll for any other. */
static inline bool wait_with_another(int fd, const char *how)
{
	int other = eventfd(0, 0), ready;
	struct pollfd both[] = { { .fd = fd, .events = POLLIN },
				 { .fd = other, .events = POLLIN } };

	if (other < 0)
		die("eventfd");
	if (!strncmp(how, "select", 6))
		ready = select_once(fd, other);
	else if (!strncmp(how, "epoll", 5))
		ready = epoll_wait_once(fd, other);
	else
		ready = poll(both, 2, -1);
	close(other);
	return ready == 1;
}

#endif
