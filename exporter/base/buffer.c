/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buffer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_FIRST_BYTES 4096

/* Makes room for @len more bytes. Doubles, so that appending stays linear in the total. */
static int buffer_grow(struct buffer *buffer, size_t len)
{
	size_t size = buffer->size ? buffer->size : BUFFER_FIRST_BYTES;
	char *data;

	if (buffer->error)
		return buffer->error;
	if (len > buffer->max - buffer->len)
		return buffer->error = -ENOBUFS;
	if (size > buffer->max)
		size = buffer->max;
	while (size - buffer->len < len)
		size = size > buffer->max / 2 ? buffer->max : size * 2;
	data = realloc(buffer->data, size);
	if (!data)
		return buffer->error = -ENOMEM;
	buffer->data = data;
	buffer->size = size;
	return 0;
}

char *buffer_reserve(struct buffer *buffer, size_t len)
{
	if (buffer->error || len > buffer->size - buffer->len) {
		if (buffer_grow(buffer, len) < 0)
			return NULL;
	}
	return buffer->data + buffer->len;
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t len)
{
	char *to = len ? buffer_reserve(buffer, len) : NULL;

	if (!to)
		return;
	memcpy(to, bytes, len);
	buffer->len += len;
}

void buffer_text(struct buffer *buffer, const char *text)
{
	buffer_append(buffer, text, strlen(text));
}

void buffer_char(struct buffer *buffer, char byte)
{
	buffer_append(buffer, &byte, 1);
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
	char text[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len >= 0 && (size_t)len < sizeof(text)) {
		buffer_append(buffer, text, (size_t)len);
		return;
	}
	/* One byte more for the NUL, which vsnprintf writes and the buffer does not count. */
	if (len < 0 || !buffer_reserve(buffer, (size_t)len + 1)) {
		buffer->error = buffer->error ? buffer->error : -ENOMEM;
		return;
	}
	va_start(args, format);
	vsnprintf(buffer->data + buffer->len, (size_t)len + 1, format, args);
	va_end(args);
	buffer->len += (size_t)len;
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer)BUFFER_INIT(buffer->max);
}
