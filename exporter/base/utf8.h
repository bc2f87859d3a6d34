/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict UTF-8 (RFC 3629), for text of unknown origin: thread names and paths are arbitrary bytes,
 * while every format that shows them requires valid UTF-8. Control characters count as no
 * characters either: on a terminal they would be commands.
 */
#ifndef WORKLOAD_BASE_UTF8_H
#define WORKLOAD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* U+FFFD, which stands for each byte that is no part of a character. */
#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/*
 * Length in bytes (1 to 4) of the character that NUL-terminated @text begins with; 0 if its first
 * byte begins none: overlong forms, surrogates, control characters (below U+0020, and from U+007F
 * to U+009F) and what lies above U+10FFFF are none. An empty @text has length 1 (its NUL). Reads no
 * further than the NUL.
 */
size_t utf8_length(const char *text);

/* Whether all of @text is characters. */
bool utf8_is_valid(const char *text);

/*
 * Copies @text with each byte that is no part of a character replaced by U+FFFD, cut to whole
 * characters in @size - 1 bytes. @size is not 0.
 */
void utf8_copy(char *out, size_t size, const char *text);

#endif
