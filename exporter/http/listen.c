/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"

#define LISTEN_BACKLOG 64

static void listen_free_addresses(struct addrinfo **addresses)
{
	if (*addresses)
		freeaddrinfo(*addresses);
}

/* Every interface is one IPv6 socket that takes IPv4 as well, whatever net.ipv6.bindv6only says. */
static int listen_on(const struct addrinfo *address, bool wildcard)
{
	_cleanup_(cleanup_close) int fd = -1;
	const int on = 1, off = 0;

	fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	if (wildcard && address->ai_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
		return -errno;
	if (bind(fd, address->ai_addr, address->ai_addrlen) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Tries the addresses of one family; the error is that of the last one. */
static int listen_on_any(const struct addrinfo *addresses, int family, bool wildcard, int error)
{
	int fd = error;

	for (; addresses && fd < 0; addresses = addresses->ai_next)
		if (addresses->ai_family == family)
			fd = listen_on(addresses, wildcard);
	return fd;
}

int http_listen(const char *host, const char *port, char *error, size_t error_bytes)
{
	_cleanup_(listen_free_addresses) struct addrinfo *addresses = NULL;
	const struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	const char *open = strchr(host, ':') ? "[" : "", *close = *open ? "]" : "";
	bool wildcard = !*host;
	int failed = getaddrinfo(wildcard ? NULL : host, port, &hints, &addresses);
	int fd = -EADDRNOTAVAIL;

	if (!failed)
		fd = listen_on_any(addresses, wildcard ? AF_INET6 : AF_INET, wildcard,
				   -EAFNOSUPPORT);
	/* A kernel without IPv6 has no wildcard but IPv4's; a port in use stays in use. */
	if (!failed && fd < 0 && !(wildcard && fd == -EADDRINUSE))
		fd = listen_on_any(addresses, wildcard ? AF_INET : AF_INET6, wildcard, fd);
	if (fd < 0)
		snprintf(error, error_bytes, "cannot listen on %s%s%s:%s: %s", open, host, close,
			 port, failed ? gai_strerror(failed) : strerror(-fd));
	return fd;
}

union listen_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

static union listen_address listen_name(int fd)
{
	union listen_address address = { 0 };
	socklen_t len = sizeof(address) - 1; /* a path may come without its NUL */

	if (getsockname(fd, &address.any, &len) < 0)
		address.any.sa_family = AF_UNSPEC;
	return address;
}

static bool address_is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;

	if (address->ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	if (address->ss_family != AF_INET6)
		return false;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) &&
		v6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
}

bool http_is_loopback(int fd)
{
	struct sockaddr_storage own = { 0 }, peer = { 0 };
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);

	if (getsockname(fd, (struct sockaddr *)&own, &own_len) < 0)
		return false;
	if (getpeername(fd, (struct sockaddr *)&peer, &peer_len) < 0)
		return errno == ENOTCONN && address_is_loopback(&own);
	return address_is_loopback(&own) && address_is_loopback(&peer);
}

uint16_t http_listen_port(int fd)
{
	union listen_address address = listen_name(fd);

	if (address.any.sa_family == AF_INET)
		return ntohs(address.v4.sin_port);
	return address.any.sa_family == AF_INET6 ? ntohs(address.v6.sin6_port) : 0;
}

void http_listen_address(int fd, char *out, size_t size)
{
	union listen_address address = listen_name(fd);
	char host[INET6_ADDRSTRLEN] = "";

	if (address.any.sa_family == AF_INET && address.v4.sin_addr.s_addr != INADDR_ANY)
		inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof(host));
	else if (address.any.sa_family == AF_INET6 &&
		 !IN6_IS_ADDR_UNSPECIFIED(&address.v6.sin6_addr))
		inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof(host));
	if (address.any.sa_family == AF_UNIX)
		snprintf(out, size, "%s", address.local.sun_path);
	else if (address.any.sa_family == AF_INET6 && *host)
		snprintf(out, size, "[%s]:%u", host, http_listen_port(fd));
	else
		snprintf(out, size, "%s:%u", *host ? host : "localhost", http_listen_port(fd));
}
