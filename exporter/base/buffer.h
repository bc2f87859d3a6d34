/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte buffer that grows up to a hard maximum.
 *
 * An error is sticky: after it every append does nothing, so that a writer checks buffer.error
 * once, at its end. What was appended before the error stays readable but is incomplete.
 */
#ifndef WORKLOAD_BASE_BUFFER_H
#define WORKLOAD_BASE_BUFFER_H

#include <stddef.h>

struct buffer {
	char *data; /* owned, from malloc; not NUL-terminated; NULL while empty */
	size_t len; /* bytes in use */
	size_t size; /* bytes allocated */
	size_t max; /* len never exceeds it */
	int error; /* 0, -ENOMEM, or -ENOBUFS: max would have been exceeded */
};

#define BUFFER_INIT(max_bytes)     \
	{                          \
		.max = (max_bytes) \
	}

/*
 * Room for @len more bytes, behind those in use: a caller that writes @n of them adds @n to
 * buffer->len. NULL with the error set.
 */
char *buffer_reserve(struct buffer *buffer, size_t len);

/* Appends all of it or, with the error set, nothing. */
void buffer_append(struct buffer *buffer, const void *bytes, size_t len);
void buffer_text(struct buffer *buffer, const char *text);
void buffer_char(struct buffer *buffer, char byte);
void buffer_printf(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Releases the memory; the buffer is empty, without error, and usable. For _cleanup_ as well. */
void buffer_free(struct buffer *buffer);

#endif
