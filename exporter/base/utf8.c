/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

static bool utf8_continues(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* The second byte alone tells overlong forms, surrogates, numbers above U+10FFFF and controls. */
static bool utf8_second_is_valid(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xc2:
	case 0xe0:
		return second >= 0xa0 && second <= 0xbf;
	case 0xed:
		return second >= 0x80 && second <= 0x9f;
	case 0xf0:
		return second >= 0x90 && second <= 0xbf;
	case 0xf4:
		return second >= 0x80 && second <= 0x8f;
	default:
		return utf8_continues(second);
	}
}

size_t utf8_length(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;
	size_t length;

	if (byte[0] < 0x80)
		return !byte[0] || (byte[0] >= 0x20 && byte[0] != 0x7f);
	if (byte[0] < 0xc2 || byte[0] > 0xf4)
		return 0;
	length = byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
	if (!utf8_second_is_valid(byte[0], byte[1]))
		return 0;
	for (size_t i = 2; i < length; i++) {
		if (!utf8_continues(byte[i]))
			return 0;
	}
	return length;
}

bool utf8_is_valid(const char *text)
{
	size_t len = 1;

	for (; *text && len; text += len)
		len = utf8_length(text);
	return len;
}

void utf8_copy(char *out, size_t size, const char *text)
{
	size_t used = 0;

	while (*text) {
		size_t len = utf8_length(text), add = len ? len : sizeof(UTF8_REPLACEMENT) - 1;

		if (used + add >= size)
			break;
		memcpy(out + used, len ? text : UTF8_REPLACEMENT, add);
		used += add;
		text += len ? len : 1;
	}
	out[used] = '\0';
}
