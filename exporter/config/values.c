/* SPDX-License-Identifier: Apache-2.0 */
#include "config/values.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

#define NS_PER_MS 1000000ULL
#define DURATION_MAX_MS (365 * 86400000ULL)

int config_number_parse(const char *text, uint64_t max, uint64_t *out)
{
	uint64_t number;

	if (text_parse_u64(&text, &number) || *text || number > max)
		return -EINVAL;
	*out = number;
	return 0;
}

static int port_check(const char *port)
{
	uint64_t number;

	return strlen(port) < CONFIG_PORT_BYTES ? config_number_parse(port, 65535, &number)
						: -EINVAL;
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

/* The unit that @text begins with, as milliseconds; 0 if it is none. @len becomes its length. */
static uint64_t unit_ms_read(const char *text, size_t *len)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = {
		{ "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 }
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		*len = strlen(units[i].name);
		if (strncmp(text, units[i].name, *len) == 0)
			return units[i].ms;
	}
	return 0;
}

/* Reads one number with its unit from *@text, and moves it on. */
static int duration_part(const char **text, uint64_t *unit_ms, uint64_t *part_ms)
{
	uint64_t number;
	size_t len;

	if (text_parse_u64(text, &number))
		return -EINVAL;
	*unit_ms = unit_ms_read(*text, &len);
	if (!*unit_ms || number > DURATION_MAX_MS / *unit_ms)
		return -EINVAL;
	*part_ms = number * *unit_ms;
	*text += len;
	return 0;
}

int config_duration_parse(const char *text, uint64_t *ns)
{
	uint64_t total_ms = 0, part_ms = 0, unit_ms = 0, last_unit_ms = UINT64_MAX;

	if (strcmp(text, "0") == 0)
		text = "0s";
	do {
		if (duration_part(&text, &unit_ms, &part_ms) < 0 || unit_ms >= last_unit_ms)
			return -EINVAL;
		last_unit_ms = unit_ms;
		total_ms += part_ms;
	} while (*text);
	if (total_ms > DURATION_MAX_MS)
		return -EINVAL;
	*ns = total_ms * NS_PER_MS;
	return 0;
}
