/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a read begins with, where it takes a look to tell. */
#ifndef WORKLOAD_REQUESTS_READS_H
#define WORKLOAD_REQUESTS_READS_H

#include "core/endpoints.h"
#include "machine/hello.h"
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

/* One step of the walk; returns whether there may be more to see. */
VERIFIED_ALONE int hello_look(struct hello *hello)
{
	struct hello_window window = {};
	__u32 length;

	if (!hello || hello->at >= hello->bytes)
		return 0;
	length = hello->bytes - hello->at;
	if (length > sizeof(window))
		length = sizeof(window);
	if (bpf_probe_read_user(&window, length, (const void *)(hello->buffer + hello->at)))
		return 0;
	return hello_step(hello, &window);
}

/* Whether a client's first message in TLS, at @at of the @bytes of a read, is one of HTTP/2. */
VERIFIED_ALONE int read_offers_http_2(__u32 at, __u32 bytes)
{
	struct hello hello = {};

	if (at >= bytes)
		return 0;
	hello.buffer = call_memory(bytes);
	if (!hello.buffer)
		return 0;
	hello.buffer += at;
	hello.bytes = bytes - at;
	for (__u32 i = 0; i < HELLO_STEPS; i++)
		if (!hello_look(&hello))
			break;
	return hello_is_http_2(&hello);
}

VERIFIED_ALONE int read_begins(struct tracked *tracked, __u32 bytes)
{
	union line line = {};
	__u32 skipped = 0, begins;

	if (tracked && tracked->conn.protocol == PROTOCOL_TLS)
		return read_offers_http_2(0, bytes) ? BEGINS_PREFACE : BEGINS_UNSEEN;
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
	begins = conn_begins(&tracked->conn, &line, line_method_end(&line), bytes - skipped);
	if (begins == BEGINS_TLS && read_offers_http_2(skipped + TLS_HEADER_BYTES, bytes))
		begins = BEGINS_PREFACE;
	return begins | skipped << BEGINS_BITS;
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
