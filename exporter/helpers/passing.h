/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a Unix socket, each of which may bring one descriptor (unix(7), SCM_RIGHTS). The
 * other end is hostile: what it sends besides is closed before anything else happens.
 */
#ifndef WORKLOAD_HELPERS_PASSING_H
#define WORKLOAD_HELPERS_PASSING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What came besides the bytes. */
struct passed {
	int fd; /* owned, close-on-exec; -1: none */
	bool wrong; /* something else came, or more than one, and is closed: fd is -1 */
};

/* As send(2), with @fd, which stays the caller's; -1: none. */
ssize_t passing_send(int socket, const void *bytes, size_t len, int flags, int fd);

/* As recv(2), with *@passed, which is always set. */
ssize_t passing_receive(int socket, void *bytes, size_t size, int flags, struct passed *passed);

#endif
