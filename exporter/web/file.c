/* SPDX-License-Identifier: Apache-2.0 */
#include "web/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* O_NONBLOCK: opening waits neither for the other end of a FIFO nor for the holder of a lease. */
int web_file_read(const char *path, struct buffer *out)
{
	_cleanup_(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	ssize_t len = -1;
	size_t room;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	room = (size_t)status.st_size + 1; /* the last byte is to see the end */
	if (!buffer_reserve(out, room))
		return out->error;
	while (room && (len = read(fd, out->data + out->len, room)) > 0) {
		out->len += (size_t)len;
		room -= (size_t)len;
	}
	if (len < 0)
		return -errno;
	return room ? 0 : -EBUSY;
}

const char *web_file_error(int error)
{
	if (error == -EINVAL)
		return "no regular file";
	return error == -ENOBUFS ? "it is too long" : strerror(-error);
}
