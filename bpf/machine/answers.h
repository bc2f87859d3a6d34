/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the bytes of a send tell of an answer of HTTP/1: that one begins, or that they are heads of
 * interim answers only, after which the request is still in service. No hook, no helper, no map;
 * the caller brings the bytes.
 *
 * RFC 9112, sections 4 (status line), 2.1 (a head ends with an empty line) and 6.3 (a 1xx has no
 * body): behind an interim answer comes another head, or nothing. RFC 9110, section 15.2: any
 * status 1xx is one, with whatever reason and fields, and several may come; 101 (section 15.2.2) is
 * the last word in HTTP.
 */
#ifndef WORKLOAD_MACHINE_ANSWERS_H
#define WORKLOAD_MACHINE_ANSWERS_H

#include "machine/protocol.h"

/* How what was sent ends: */
#define HEAD_NONE 0U /* no interim answer's head is open */
#define HEAD_OPEN 1U /* one is; + so many of the characters of its end have come, up to 3 */

#define HEAD_END 0x0d0a0d0aU /* the last four characters of a head */
#define STATUS_AT 9U /* behind "HTTP/1.1 " */
#define STATUS_BYTES 12U /* with its three digits */
#define CHUNK_BYTES 32U

/* A part of what was sent. */
union chunk {
	__u8 bytes[CHUNK_BYTES];
	__u64 word;
};

static inline int is_digit(__u8 c)
{
	return c >= '0' && c <= '9';
}

/* Whether a status line begins with @chunk. */
static inline int status_begins(const union chunk *chunk)
{
	return WORD_BEGINS(chunk->word, "HTTP/1.") && is_digit(chunk->bytes[STATUS_AT - 2]) &&
	       chunk->bytes[STATUS_AT - 1] == ' ';
}

/* Whether @status is 101, which is no interim one. */
static inline int status_switches(const __u8 *status)
{
	return status[0] == '1' && status[1] == '0' && status[2] == '1';
}

/* What begins with @chunk, where no interim answer does: BEGINS_. */
static inline __u32 answer_begins(const union chunk *chunk)
{
	const __u8 *status = chunk->bytes + STATUS_AT;

	if (!status_begins(chunk))
		return BEGINS_OTHER;
	if (status[0] == '2')
		return BEGINS_SUCCESS;
	return status_switches(status) ? BEGINS_SWITCH : BEGINS_ANSWER;
}

/* Whether it is the status line of an interim answer. */
static inline int interim_begins(const union chunk *chunk, __u32 bytes)
{
	const __u8 *status = chunk->bytes + STATUS_AT;

	return bytes >= STATUS_BYTES && status_begins(chunk) && status[0] == '1' &&
	       is_digit(status[1]) && is_digit(status[2]) && !status_switches(status);
}

/* The last characters of an open head, as far as they may be of its end. */
static inline __u32 head_last(__u32 head)
{
	return (__u64)HEAD_END >> 8 * (HEAD_OPEN + 4 - head);
}

/* How a head stands that does not end with the @last four characters. */
static inline __u32 head_open(__u32 last)
{
	if ((last & 0xffffff) == HEAD_END >> 8)
		return HEAD_OPEN + 3;
	if ((last & 0xffff) == HEAD_END >> 16)
		return HEAD_OPEN + 2;
	return (last & 0xff) == HEAD_END >> 24 ? HEAD_OPEN + 1 : HEAD_OPEN;
}

/*
 * How many of the first @bytes of @chunk belong to interim heads, up to the end of one. *head: how
 * what was sent before has ended, and becomes how this ends; 0: the answer itself begins.
 */
static inline __u32 interim_take(__u32 *head, const union chunk *chunk, __u32 bytes)
{
	__u32 last, i;

	if (*head == HEAD_NONE) {
		if (!interim_begins(chunk, bytes))
			return 0;
		*head = HEAD_OPEN;
		return STATUS_BYTES;
	}
	last = head_last(*head);
	for (i = 0; i < CHUNK_BYTES && i < bytes; i++) {
		last = last << 8 | chunk->bytes[i];
		if (last == HEAD_END) {
			*head = HEAD_NONE;
			return i + 1;
		}
	}
	*head = head_open(last);
	return i;
}

#endif
