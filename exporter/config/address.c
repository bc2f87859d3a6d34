/* SPDX-License-Identifier: Apache-2.0 */
#include "config/address.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

static int port_check(const char *port)
{
	uint64_t number;

	if (strlen(port) >= CONFIG_PORT_BYTES || text_parse_u64(&port, &number) || *port)
		return -EINVAL;
	return number > 65535 ? -EINVAL : 0;
}

int config_address_parse(const char *text, struct config_address *address)
{
	const char *colon = strrchr(text, ':'), *host = text, *end = colon;
	struct config_address parsed = { 0 };

	if (!colon || port_check(colon + 1) < 0)
		return -EINVAL;
	if (*host == '[') {
		host++;
		end--;
		if (end <= host || *end != ']' || !memchr(host, ':', (size_t)(end - host)))
			return -EINVAL;
	} else if (memchr(host, ':', (size_t)(end - host))) {
		return -EINVAL;
	}
	if ((size_t)(end - host) >= sizeof(parsed.host) ||
	    memchr(host, ']', (size_t)(end - host)) || memchr(host, '[', (size_t)(end - host)))
		return -EINVAL;
	memcpy(parsed.host, host, (size_t)(end - host));
	memcpy(parsed.port, colon + 1, strlen(colon + 1));
	*address = parsed;
	return 0;
}
