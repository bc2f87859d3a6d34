/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the first bytes of a read tell of a protocol. Four are known by them, because with these a
 * read is not always a turn: HTTP/1, where a server may answer before it has read the rest of a
 * body, MySQL's, where some commands have no answer, TLS, which has messages of its own, and
 * HTTP/2, where many requests share a connection. No hook, no helper, no map; the caller brings the
 * bytes.
 *
 * RFC 9112, sections 2.2 (an empty line may come before a request) and 3 (request line: method,
 * space, target); RFC 9110, sections 5.6.2 and 9.1 (a method is a token, the standard ones in
 * capitals) and 9.3 (a GET or HEAD has no body); RFC 9113, section 3.4 (preface). MySQL,
 * client/server protocol: a packet is three bytes of length, one of sequence and the payload; the
 * client's login is the second one and begins with its capabilities; any later command is the first
 * one and begins with its number. RFC 8446, section 5.1 (records).
 */
#ifndef WORKLOAD_MACHINE_PROTOCOL_H
#define WORKLOAD_MACHINE_PROTOCOL_H

#include "abi/kernel_types.h"

/* What bytes begin with. */
#define BEGINS_UNSEEN 0U /* not looked at, or out of reach */
#define BEGINS_OTHER 1U
#define BEGINS_REQUEST 2U /* HTTP/1: without a body, as a rule */
#define BEGINS_UPLOAD 3U /* HTTP/1: with a body, as a rule */
#define BEGINS_PREFACE 4U /* HTTP/2: the client's first bytes, in TLS those that offer it alone */
#define BEGINS_ANSWER 5U /* HTTP/1: a status line */
#define BEGINS_PREAMBLE 6U /* a proxy's, with which the client's bytes have not begun */
#define BEGINS_LOGIN 7U /* MySQL: the client's first bytes */
#define BEGINS_TLS 8U /* the record of a handshake */
#define BEGINS_UNANSWERED 9U /* MySQL: a command that has no answer */
#define BEGINS_SHORT 10U /* HTTP/1: too few bytes to tell, which a request may begin with */
#define BEGINS_MAYBE 11U /* too few bytes to tell a preamble from a request */
#define BEGINS_TUNNEL 12U /* HTTP/1: CONNECT, behind whose answer another protocol follows */
#define BEGINS_SUCCESS 13U /* HTTP/1: a status line of 2xx */
#define BEGINS_SWITCH 14U /* HTTP/1: one of 101: another protocol follows */
#define BEGINS_INTERIM 16U /* HTTP/1: one or more of 1xx and nothing else; + HEAD_, how it ends */

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

/*
 * The first bytes of a read, 0 behind them if they are fewer. Of a request line so many are looked
 * at: the longest method that is registered has 17 characters.
 */
#define LINE_BYTES 32U
#define TARGET_BYTES 4U /* of a target, with which it begins */
#define METHOD_END_MAX (LINE_BYTES - TARGET_BYTES - 1)
union line {
	__u8 bytes[LINE_BYTES];
	__u64 word;
};

/* Which characters a token may have: a bit for each of the first 64, and of the other 64. */
#define TOKEN_LOW 0x03ff6cfa00000000ULL /* ! # $ % & ' * + - . 0-9 */
#define TOKEN_HIGH 0x57ffffffc7fffffeULL /* A-Z ^ _ ` a-z | ~ */

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

static inline int is_of_token(__u8 c)
{
	return c < 128 && (c < 64 ? TOKEN_LOW : TOKEN_HIGH) >> (c & 63) & 1;
}

/* A path, or the beginning of a URL or of "* HTTP/": other protocols of text have commands too. */
static inline int is_target(const __u8 *text)
{
	return text[0] == '/' ||
	       (text[0] == 'h' && text[1] == 't' && text[2] == 't' && text[3] == 'p') ||
	       (text[0] == '*' && text[1] == ' ' && text[2] == 'H' && text[3] == 'T');
}

/* The name or address of a server, as CONNECT has it; NATS has a command of that name as well. */
static inline int is_authority(__u8 c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '[';
}

/*
 * Where the method ends with which @line begins, behind an empty line or not: any token, in
 * capitals or not. 0: there is none.
 */
static inline __u32 http_method_end(const union line *line)
{
	__u32 begun = 0, end;

	for (end = 0; end < METHOD_END_MAX; end++) {
		__u8 c = line->bytes[end];

		if (is_of_token(c))
			begun = 1;
		else if (begun || (c != '\r' && c != '\n'))
			break;
	}
	return begun ? end : 0;
}

/*
 * What a read of @bytes on a connection of HTTP/1 begins with; @line: its first bytes, @end: its
 * http_method_end().
 */
static inline __u32 http_begins(const union line *line, __u32 end, __u32 bytes)
{
	if (!end || end > METHOD_END_MAX)
		return BEGINS_OTHER;
	if (end >= bytes)
		return BEGINS_SHORT;
	if (line->bytes[end] != ' ')
		return BEGINS_OTHER;
	if (WORD_BEGINS(line->word, "CONNECT ") && is_authority(line->bytes[end + 1]))
		return BEGINS_TUNNEL;
	if (!is_target(line->bytes + end + 1))
		return end + 1 + TARGET_BYTES > bytes ? BEGINS_SHORT : BEGINS_OTHER;
	if (WORD_BEGINS(line->word, "GET ") || WORD_BEGINS(line->word, "HEAD ") ||
	    WORD_BEGINS(line->word, "OPTIONS "))
		return BEGINS_REQUEST;
	return BEGINS_UPLOAD;
}

static inline int begins_http(__u32 begins)
{
	return begins == BEGINS_REQUEST || begins == BEGINS_UPLOAD || begins == BEGINS_TUNNEL;
}

static inline int begins_answer(__u32 begins)
{
	return begins == BEGINS_ANSWER || begins == BEGINS_SUCCESS || begins == BEGINS_SWITCH;
}

/*
 * What the first read of a connection begins with. Here a method has to be in capitals: memcached
 * has a `get`, and a key may look like a path.
 */
static inline __u32 protocol_begins(const union line *line, __u32 end, __u32 bytes)
{
	__u32 begins;

	if (WORD_BEGINS(line->word, "PRI * HT"))
		return BEGINS_PREFACE;
	if ((line->word & 0xffff) == 0x0316)
		return BEGINS_TLS;
	begins = line->bytes[0] >= 'A' && line->bytes[0] <= 'Z' ? http_begins(line, end, bytes)
								: BEGINS_OTHER;
	if (begins_http(begins))
		return begins;
	return mysql_login(line->word) ? BEGINS_LOGIN : BEGINS_OTHER;
}

#endif
