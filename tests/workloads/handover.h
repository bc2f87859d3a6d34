/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handing a descriptor over to an unrelated process: SCM_RIGHTS over a Unix socket that the giver
 * listens on and the taker connects to. Its name is abstract: it leaves no file behind.
 */
#ifndef TESTS_HANDOVER_H
#define TESTS_HANDOVER_H

#include <sys/un.h>

#include "workload.h"

/* Exactly one descriptor travels with one byte. */
struct handover {
	char byte;
	struct iovec part;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message;
};

static inline void handover_init(struct handover *handover)
{
	*handover = (struct handover){ 0 };
	handover->part = (struct iovec){ &handover->byte, 1 };
	handover->message = (struct msghdr){ .msg_iov = &handover->part,
					     .msg_iovlen = 1,
					     .msg_control = handover->control.bytes,
					     .msg_controllen = sizeof(handover->control.bytes) };
}

static inline int handover_socket(const char *name, struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (fd < 0 || strlen(name) >= sizeof(address->sun_path))
		die("no Unix socket %s", name);
	memcpy(address->sun_path + 1, name, strlen(name));
	return fd;
}

/* The giver's socket, on which handover_give() accepts. */
static inline int handover_listen(const char *name)
{
	struct sockaddr_un address;
	int fd = handover_socket(name, &address);

	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1))
		die("cannot listen on %s", name);
	return fd;
}

/* Waits for a taker and gives it a copy of @given. */
static inline void handover_give(int listener, int given)
{
	int fd = accept(listener, NULL, NULL);
	struct handover handover;
	struct cmsghdr *header;

	handover_init(&handover);
	header = CMSG_FIRSTHDR(&handover.message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &given, sizeof(given));
	if (fd < 0 || sendmsg(fd, &handover.message, 0) != 1)
		die("cannot hand over");
	close(fd);
}

/* What the giver listening on @name gives. */
static inline int handover_take(const char *name)
{
	struct sockaddr_un address;
	int fd = handover_socket(name, &address), taken;
	struct handover handover;
	struct cmsghdr *header;

	handover_init(&handover);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    recvmsg(fd, &handover.message, MSG_CMSG_CLOEXEC) != 1)
		die("nothing is given on %s", name);
	header = CMSG_FIRSTHDR(&handover.message);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		die("no descriptor is given on %s", name);
	memcpy(&taken, CMSG_DATA(header), sizeof(taken));
	close(fd);
	return taken;
}

#endif
