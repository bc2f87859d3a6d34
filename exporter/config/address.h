/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to listen at, from text. */
#ifndef WORKLOAD_CONFIG_ADDRESS_H
#define WORKLOAD_CONFIG_ADDRESS_H

#define CONFIG_HOST_BYTES 256
#define CONFIG_PORT_BYTES 6

/* A listen address, taken apart: HOST:PORT, [IPv6]:PORT or :PORT. */
struct config_address {
	char host[CONFIG_HOST_BYTES]; /* name or address without brackets; "" is every interface */
	char port[CONFIG_PORT_BYTES]; /* decimal, 0 to 65535; "0" lets the kernel choose */
};

/* Splits @text. 0, or -EINVAL with @address untouched. Whether the host exists is not looked up. */
int config_address_parse(const char *text, struct config_address *address);

#endif
