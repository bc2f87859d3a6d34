/* SPDX-License-Identifier: Apache-2.0 */
/* Values of flags, from text. */
#ifndef WORKLOAD_CONFIG_VALUES_H
#define WORKLOAD_CONFIG_VALUES_H

#include <stdint.h>

#define CONFIG_HOST_BYTES 256
#define CONFIG_PORT_BYTES 6

/* A listen address, taken apart: HOST:PORT, [IPv6]:PORT or :PORT. */
struct config_address {
	char host[CONFIG_HOST_BYTES]; /* name or address without brackets; "" is every interface */
	char port[CONFIG_PORT_BYTES]; /* decimal, 0 to 65535; "0" lets the kernel choose */
};

/* Reads a decimal number up to @max that nothing follows. 0, or -EINVAL with @out untouched. */
int config_number_parse(const char *text, uint64_t max, uint64_t *out);

/* Splits @text. 0, or -EINVAL with @address untouched. Whether the host exists is not looked up. */
int config_address_parse(const char *text, struct config_address *address);

/*
 * Reads a duration: numbers with units in falling order, as in 5m, 1h30m or 500ms; units d, h, m,
 * s, ms; or a plain 0. At most 365d. 0, or -EINVAL with @ns untouched.
 */
int config_duration_parse(const char *text, uint64_t *ns);

#endif
