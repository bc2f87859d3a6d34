/* SPDX-License-Identifier: Apache-2.0 */
#include "helpers/passing.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for a header and one descriptor: the kernel gives no second one (net/core/scm.c). */
union control {
	struct cmsghdr header;
	char bytes[CMSG_LEN(sizeof(int))];
};

ssize_t passing_send(int socket, const void *bytes, size_t len, int flags, int fd)
{
	struct iovec text = { .iov_base = (void *)bytes, .iov_len = len };
	struct msghdr message = { .msg_iov = &text, .msg_iovlen = 1 };
	union control control = { .header = { .cmsg_len = sizeof(control.bytes),
					      .cmsg_level = SOL_SOCKET,
					      .cmsg_type = SCM_RIGHTS } };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.bytes);
	}
	return sendmsg(socket, &message, flags);
}

/* Other kinds of control data bring no descriptor, as long as the socket does not ask for one. */
static void passed_take(struct msghdr *message, struct passed *passed)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);

	passed->wrong = message->msg_flags & MSG_CTRUNC;
	if (!header)
		return;
	if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&passed->fd, CMSG_DATA(header), sizeof(passed->fd));
	else
		passed->wrong = true;
	if (passed->wrong && passed->fd >= 0) {
		close(passed->fd);
		passed->fd = -1;
	}
}

ssize_t passing_receive(int socket, void *bytes, size_t size, int flags, struct passed *passed)
{
	struct iovec text = { .iov_base = bytes, .iov_len = size };
	union control control = { 0 };
	struct msghdr message = { .msg_iov = &text,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);

	*passed = (struct passed){ .fd = -1 };
	if (got >= 0)
		passed_take(&message, passed);
	return got;
}
