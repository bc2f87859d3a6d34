/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the listening socket: the one place of the exporter where an address is looked up.
 */
#ifndef WORKLOAD_HTTP_LISTEN_H
#define WORKLOAD_HTTP_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Listens on @host (a name or address without brackets; "" is every interface, IPv6 and IPv4) and
 * @port (decimal, "0" lets the kernel choose). Of several addresses of a name the first that can be
 * had is taken, IPv4 before IPv6. Returns the descriptor, non-blocking and close-on-exec, owned by
 * the caller; or -errno (-EADDRNOTAVAIL if the name cannot be resolved) with a sentence in @error.
 */
int http_listen(const char *host, const char *port, char *error, size_t error_bytes);

#define HTTP_ADDRESS_BYTES 128

/*
 * Where @fd really listens, as in a URL: "127.0.0.1:9100", "[::1]:9100", "localhost:9100" for every
 * interface, or the path of a Unix socket.
 */
void http_listen_address(int fd, char *out, size_t size);

/*
 * Whether a listener is at an address that only this machine has, or a connection begins and ends
 * at such: one that was redirected to it does not. A Unix socket has no address.
 */
bool http_is_loopback(int fd);

/* The port that @fd is really bound to; 0 if it is no IP socket. */
uint16_t http_listen_port(int fd);

#endif
