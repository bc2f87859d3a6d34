/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON strings (RFC 8259) from text of unknown origin.
 */
#ifndef WORKLOAD_BASE_JSON_H
#define WORKLOAD_BASE_JSON_H

#include "base/buffer.h"

/* Appends @text quoted and escaped; a byte that is no part of a UTF-8 character becomes U+FFFD. */
void json_string(struct buffer *out, const char *text);

#endif
