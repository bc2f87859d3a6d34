/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the first bytes of a read or a send tell of a protocol. Four are known by them, because with
 * these a read is not always a turn: HTTP/1, where a server may answer before it has read the rest
 * of a body, MySQL's, where some commands have no answer, TLS, which has messages of its own, and
 * HTTP/2, where many requests share a connection. No hook, no helper, no map; the caller brings the
 * bytes.
 *
 * RFC 9112, section 3 (request line: method, space, target) and section 4 (status line);
 * RFC 9110, sections 9.3 (methods; a GET or HEAD has no body) and 15.2.1 (100 Continue); RFC 9113,
 * section 3.4 (preface). MySQL, client/server protocol: a packet is three bytes of length, one of
 * sequence and the payload; the client's login is the second one and begins with its capabilities;
 * any later command is the first one and begins with its number. RFC 8446, section 5.1 (records).
 */
#ifndef WORKLOAD_MACHINE_PROTOCOL_H
#define WORKLOAD_MACHINE_PROTOCOL_H

#include "abi/kernel_types.h"

#define PROTOCOL_SENT_AT 5U /* where in what was sent is the word to look at: after "HTTP/" */
/* "HTTP/1.1 100 Continue" and an empty line. */
#define PROTOCOL_CONTINUE_BYTES 25U

/* What bytes begin with. */
#define BEGINS_UNSEEN 0U /* nobody has looked, or could */
#define BEGINS_OTHER 1U
#define BEGINS_REQUEST 2U /* HTTP/1: without a body, as a rule */
#define BEGINS_UPLOAD 3U /* HTTP/1: with a body, as a rule */
#define BEGINS_PREFACE 4U /* HTTP/2: the client's first bytes */
#define BEGINS_ANSWER 5U /* HTTP/1: a status line */
#define BEGINS_CONTINUE 6U /* HTTP/1: one that asks for the rest of the request, with no field */
#define BEGINS_LOGIN 7U /* MySQL: the client's first bytes */
#define BEGINS_TLS 8U /* the record of a handshake */
#define BEGINS_UNANSWERED 9U /* MySQL: a command that has no answer */

/* The first @length characters of @text as they lie in memory: both architectures are LSB first. */
#define TEXT_WORD(text, length)                                                                 \
	(TEXT_BYTE(text, length, 0) | TEXT_BYTE(text, length, 1) | TEXT_BYTE(text, length, 2) | \
	 TEXT_BYTE(text, length, 3) | TEXT_BYTE(text, length, 4) | TEXT_BYTE(text, length, 5) | \
	 TEXT_BYTE(text, length, 6) | TEXT_BYTE(text, length, 7))
#define TEXT_BYTE(text, length, i) \
	((i) < (length) ? (__u64)(__u8)(text)[(i) < (length) ? (i) : 0] << 8 * (i) : 0)
#define TEXT_MASK(length) (~0ULL >> 8 * (8 - (length)))
#define WORD_BEGINS(word, text) \
	(((word)&TEXT_MASK(sizeof(text) - 1)) == TEXT_WORD(text, sizeof(text) - 1))

#define MYSQL_HEADER_BYTES 4U
#define MYSQL_LOGIN_BYTES_MIN 32U
#define MYSQL_PROTOCOL_41 0x200U /* a capability that all clients have since version 4.1 */
#define MYSQL_STMT_SEND_LONG_DATA 0x18
#define MYSQL_STMT_CLOSE 0x19

/* The server may read a packet's header first: then no more is there. */
static inline int mysql_login(__u64 word)
{
	__u32 header = (__u32)word, capabilities = word >> 32, length = header & 0xffffff;

	return header >> 24 == 1 && length >= MYSQL_LOGIN_BYTES_MIN && length <= 0xffff &&
	       (!capabilities || capabilities & MYSQL_PROTOCOL_41);
}

/* @payload: the header was read before. */
static inline __u32 mysql_begins(__u64 word, int payload)
{
	__u32 sequence = payload ? 0 : (__u32)word >> 24;
	__u32 command = (payload ? word : word >> 8 * MYSQL_HEADER_BYTES) & 0xff;

	if (!sequence && (command == MYSQL_STMT_CLOSE || command == MYSQL_STMT_SEND_LONG_DATA))
		return BEGINS_UNANSWERED;
	return BEGINS_OTHER;
}

/*
 * @word: the first eight bytes of a read, 0 in place of those that it lacks. The target's first
 * byte is asked as well: other protocols of text have commands of the same names.
 */
static inline __u32 protocol_read_begins(__u64 word)
{
	if (WORD_BEGINS(word, "GET /") || WORD_BEGINS(word, "HEAD /") ||
	    WORD_BEGINS(word, "GET http") || WORD_BEGINS(word, "OPTIONS "))
		return BEGINS_REQUEST;
	if (WORD_BEGINS(word, "POST /") || WORD_BEGINS(word, "PUT /") ||
	    WORD_BEGINS(word, "PATCH /") || WORD_BEGINS(word, "DELETE /") ||
	    WORD_BEGINS(word, "POST htt") || WORD_BEGINS(word, "PUT http"))
		return BEGINS_UPLOAD;
	if (WORD_BEGINS(word, "PRI * HT"))
		return BEGINS_PREFACE;
	if ((word & 0xffff) == 0x0316)
		return BEGINS_TLS;
	return mysql_login(word) ? BEGINS_LOGIN : BEGINS_OTHER;
}

/* @word: eight bytes of a send of @bytes, from PROTOCOL_SENT_AT on. */
static inline __u32 protocol_sent_begins(__u64 word, __u32 bytes)
{
	if (bytes == PROTOCOL_CONTINUE_BYTES && WORD_BEGINS(word, "1.1 100 "))
		return BEGINS_CONTINUE;
	return WORD_BEGINS(word, "1.1 ") || WORD_BEGINS(word, "1.0 ") ? BEGINS_ANSWER
								      : BEGINS_OTHER;
}

#endif
