/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/utf8.h"

void json_string(struct buffer *out, const char *text)
{
	buffer_char(out, '"');
	while (*text) {
		unsigned char byte = (unsigned char)*text;
		size_t length = utf8_length(text);

		if (byte == '"' || byte == '\\')
			buffer_printf(out, "\\%c", byte);
		else if (byte < 0x20 || byte == 0x7f)
			buffer_printf(out, "\\u%04x", byte);
		else if (length)
			buffer_append(out, text, length);
		else
			buffer_text(out, UTF8_REPLACEMENT);
		text += length ? length : 1;
	}
	buffer_char(out, '"');
}
