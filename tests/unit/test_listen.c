/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "http/listen.h"

Test(listen, an_address_in_use_is_said)
{
	char port[8], error[256] = "";
	_cleanup_(cleanup_close) int first = http_listen("127.0.0.1", "0", error, sizeof(error));

	cr_assert_geq(first, 0, "%s", error);
	snprintf(port, sizeof(port), "%u", http_listen_port(first));
	cr_expect_eq(http_listen("127.0.0.1", port, error, sizeof(error)), -EADDRINUSE);
	cr_expect_not_null(strstr(error, "cannot listen on 127.0.0.1:"));
	cr_expect_not_null(strstr(error, "Address already in use"));
}

Test(listen, a_name_without_address_is_said)
{
	char error[256] = "";

	/* An empty part is refused before anything is asked of the network. */
	cr_expect_eq(http_listen("no..such.host", "0", error, sizeof(error)), -EADDRNOTAVAIL);
	cr_expect_not_null(strstr(error, "cannot listen on no..such.host:0: "));
	cr_expect_eq(http_listen("192.0.2.1", "0", error, sizeof(error)), -EADDRNOTAVAIL);
	cr_expect_not_null(strstr(error, "cannot listen on 192.0.2.1:0: "));
}

Test(listen, every_interface_includes_ipv4)
{
	char error[256] = "";
	_cleanup_(cleanup_close) int fd = http_listen("", "0", error, sizeof(error));
	_cleanup_(cleanup_close) int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(http_listen_port(fd)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	cr_assert_geq(fd, 0, "%s", error);
	cr_expect_eq(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
}

Test(listen, a_port_is_known_for_ipv6_too)
{
	char error[256] = "";
	_cleanup_(cleanup_close) int fd = http_listen("::1", "0", error, sizeof(error));

	cr_assert_geq(fd, 0, "%s", error);
	cr_expect_neq(http_listen_port(fd), 0);
}
