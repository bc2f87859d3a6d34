/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that messages of a socket bring, and which of them are open. */
#ifndef TESTS_PASSED_H
#define TESTS_PASSED_H

#include <criterion/criterion.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PASSED_MAX 8

/* Sends @len bytes with so many copies of @fd, as an end could that keeps to no rules. */
static inline void passed_send(int socket, const void *bytes, size_t len, int fd, size_t copies)
{
	struct iovec text = { .iov_base = (void *)bytes, .iov_len = len };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(PASSED_MAX * sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct msghdr message = { .msg_iov = &text, .msg_iovlen = 1 };

	cr_assert_leq(copies, PASSED_MAX);
	control.header.cmsg_len = CMSG_LEN(copies * sizeof(int));
	for (size_t i = 0; i < copies; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &fd, sizeof(fd));
	if (copies) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(copies * sizeof(int));
	}
	cr_assert_eq(sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT), (ssize_t)len);
}

/* Descriptors of this process. */
static inline size_t passed_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t len = 0;

	cr_assert_not_null(folder);
	while (readdir(folder))
		len++;
	closedir(folder);
	return len;
}

static inline uint64_t passed_inode(int fd)
{
	struct stat stat;

	cr_assert_eq(fstat(fd, &stat), 0);
	return stat.st_ino;
}

/* An open file that has no name. */
static inline int passed_file(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	return fd;
}

#endif
