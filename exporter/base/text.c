/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void text_copy(char *out, size_t size, const char *text)
{
	text_copy_bytes(out, size, text, strlen(text));
}

void text_copy_bytes(char *out, size_t size, const char *text, size_t len)
{
	if (len > size - 1)
		len = size - 1;
	memmove(out, text, len);
	out[len] = '\0';
}

bool text_has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool text_has_suffix(const char *text, const char *suffix)
{
	size_t text_len = strlen(text), suffix_len = strlen(suffix);

	return text_len >= suffix_len && strcmp(text + text_len - suffix_len, suffix) == 0;
}

bool text_cut_suffix(char *text, const char *suffix)
{
	if (!text_has_suffix(text, suffix))
		return false;
	text[strlen(text) - strlen(suffix)] = '\0';
	return true;
}

const char *text_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int text_parse_u64(const char **cursor, uint64_t *out)
{
	const char *at = *cursor;
	uint64_t value = 0;

	if (*at < '0' || *at > '9')
		return -EINVAL;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			return -ERANGE;
	}
	*cursor = at;
	*out = value;
	return 0;
}

int text_release_is_since(const char *release, unsigned int major, unsigned int minor)
{
	unsigned int have_major, have_minor;

	if (sscanf(release, "%u.%u", &have_major, &have_minor) != 2)
		return -EINVAL;
	return have_major > major || (have_major == major && have_minor >= minor);
}
