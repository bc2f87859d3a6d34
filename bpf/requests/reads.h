/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a read begins with, where it takes a look to tell. */
#ifndef WORKLOAD_REQUESTS_READS_H
#define WORKLOAD_REQUESTS_READS_H

#include "core/endpoints.h"
#include "requests/look.h"

#define BEGINS_BITS 8 /* of what read_begins() returns; the rest is how many bytes are skipped */

VERIFIED_ALONE int line_method_end(const union line *line)
{
	return line ? (int)http_method_end(line) : 0;
}

/* How many of the @bytes of a read belong to a preamble. */
VERIFIED_ALONE int preamble_bytes(struct tracked *tracked, __u32 bytes)
{
	union preamble_window window = {};

	if (!tracked || !call_bytes(0, bytes, &window, PREAMBLE_LINE_MAX))
		return 0;
	return preamble_take(&tracked->conn.preamble, &window, bytes);
}

VERIFIED_ALONE int read_begins(struct tracked *tracked, __u32 bytes)
{
	union line line = {};
	__u32 skipped = 0;

	if (!tracked || !call_bytes(0, bytes, &line, sizeof(line)))
		return BEGINS_UNSEEN;
	if (conn_asks_preamble(&tracked->conn, line.word, bytes))
		skipped = preamble_bytes(tracked, bytes);
	if (skipped && skipped == bytes)
		return conn_begins_preamble(&tracked->conn);
	if (skipped) {
		line = (union line){};
		if (!call_bytes(skipped, bytes, &line, sizeof(line)))
			return BEGINS_UNSEEN | skipped << BEGINS_BITS;
	}
	return conn_begins(&tracked->conn, &line, line_method_end(&line), bytes - skipped) |
	       skipped << BEGINS_BITS;
}

static inline void reading_look(struct tracked *tracked, struct reading *reading)
{
	__u32 found;

	if (!call_is_about(&reading->socket)) {
		reading->begins = BEGINS_UNSEEN;
		return;
	}
	found = read_begins(tracked, reading->bytes);
	reading->begins = found & ((1U << BEGINS_BITS) - 1);
	reading->skipped = found >> BEGINS_BITS;
}

#endif
