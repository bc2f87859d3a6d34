/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which protocols the first message of a client of TLS offers. What the server chooses of them is
 * encrypted; where all are versions of HTTP/2, it can only take that or refuse, or not know of the
 * offer. The message is walked in steps, over one vector, extension or name each. No hook, no
 * helper, no map; the caller brings the bytes.
 *
 * RFC 8446, sections 4 (a handshake's header), 4.1.2 (ClientHello) and 4.2 (extensions); RFC 7301,
 * section 3.1 (the list of protocols); RFC 9113, section 3.2 ("h2", and no version in clear text).
 */
#ifndef WORKLOAD_MACHINE_HELLO_H
#define WORKLOAD_MACHINE_HELLO_H

#include "abi/kernel_types.h"

#define TLS_HEADER_BYTES 5U /* of a record */
#define HELLO_CLIENT 1U
#define HELLO_FIXED_BYTES 38U /* type, length, version and random */
#define HELLO_ALPN 16U
#define HELLO_STEPS 48U /* browsers send 20 extensions */

/* What the next bytes are. */
enum hello_part {
	HELLO_FIXED,
	HELLO_SESSION,
	HELLO_CIPHERS,
	HELLO_COMPRESSION,
	HELLO_LIST,
	HELLO_EXTENSION,
	HELLO_PROTOCOL,
};

struct hello {
	__u64 buffer; /* where its bytes are, for the caller */
	__u32 bytes; /* of it that are there */
	__u32 at; /* where the walk is, from there on */
	__u32 end; /* of the list of protocols */
	__u16 part;
	__u16 others; /* protocols that are not HTTP/2 */
};

/* The bytes at hello->at, 0 behind the last one. */
struct hello_window {
	__u8 bytes[16];
};

static inline __u32 hello_number(const __u8 *bytes)
{
	return (__u32)bytes[0] << 8 | bytes[1];
}

/* A name behind its length: "h2" with its drafts, and what gRPC once called it. */
static inline int hello_names_http_2(const struct hello_window *window)
{
	const __u8 *name = window->bytes + 1;

	return (window->bytes[0] >= 2 && name[0] == 'h' && name[1] == '2') ||
	       (window->bytes[0] == 8 && name[0] == 'g' && name[1] == 'r' && name[2] == 'p' &&
		name[3] == 'c');
}

static inline void hello_to(struct hello *hello, __u16 part, __u32 bytes)
{
	hello->part = part;
	hello->at += bytes;
}

/* Goes on to what comes next; returns whether there may be more to see. */
static inline int hello_step(struct hello *hello, const struct hello_window *window)
{
	const __u8 *bytes = window->bytes;
	__u32 all;

	switch (hello->part) {
	case HELLO_FIXED:
		all = 4 + ((__u32)bytes[1] << 16) + hello_number(bytes + 2);
		if (hello->bytes > all)
			hello->bytes = all; /* behind it are other messages */
		hello_to(hello, HELLO_SESSION, HELLO_FIXED_BYTES);
		return bytes[0] == HELLO_CLIENT;
	case HELLO_SESSION:
		hello_to(hello, HELLO_CIPHERS, 1 + bytes[0]);
		return 1;
	case HELLO_CIPHERS:
		hello_to(hello, HELLO_COMPRESSION, 2 + hello_number(bytes));
		return 1;
	case HELLO_COMPRESSION:
		hello_to(hello, HELLO_LIST, 1 + bytes[0]);
		return 1;
	case HELLO_LIST:
		hello_to(hello, HELLO_EXTENSION, 2);
		return 1;
	case HELLO_EXTENSION:
		if (hello_number(bytes) != HELLO_ALPN) {
			hello->at += 4 + hello_number(bytes + 2);
			return 1;
		}
		if (!hello_number(bytes + 4))
			return 0;
		hello_to(hello, HELLO_PROTOCOL, 6);
		hello->end = hello->at + hello_number(bytes + 4);
		return 1;
	case HELLO_PROTOCOL:
		hello->others += !hello_names_http_2(window);
		hello->at += 1 + bytes[0];
		return hello->at < hello->end;
	default:
		return 0;
	}
}

/* After the walk: whether the client offers some protocols, all of them HTTP/2. */
static inline int hello_is_http_2(const struct hello *hello)
{
	return hello->part == HELLO_PROTOCOL && hello->at == hello->end &&
	       hello->end <= hello->bytes && !hello->others;
}

#endif
