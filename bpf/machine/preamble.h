/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a proxy sends before the first bytes of its client: the PROXY protocol, which tells that
 * client's address. It is no request and has no answer, and what comes behind it is of any
 * protocol. No hook, no helper, no map; the caller brings the bytes.
 *
 * HAProxy, doc/proxy-protocol.txt, sections 2.1 (version 1: a line of at most 107 characters) and
 * 2.2 (version 2: a signature, a command, a family, and the length of what follows, 16 bytes).
 */
#ifndef WORKLOAD_MACHINE_PREAMBLE_H
#define WORKLOAD_MACHINE_PREAMBLE_H

#include "machine/protocol.h"

#define PREAMBLE_LINE_MAX 107U
#define PREAMBLE_HEADER_BYTES 16U
#define PREAMBLE_LENGTH_AT 14U /* most significant byte first */

/* What each version begins with. */
#define PREAMBLE_TEXT TEXT_WORD("PROXY ", 6)
#define PREAMBLE_TEXT_BYTES 6U
#define PREAMBLE_SIGNATURE TEXT_WORD("\r\n\r\n\0\r\nQ", 8)
#define PREAMBLE_SIGNATURE_END TEXT_WORD("UIT\n", 4)
#define PREAMBLE_SIGNATURE_BYTES 12U

/* How far one has been read. */
struct preamble {
	__u8 version; /* 0: none is being read */
	__u8 taken; /* bytes of the line, or of the header */
	__u16 left; /* version 2: bytes behind the header */
};

/* The first bytes of a read. */
union preamble_window {
	__u8 bytes[PREAMBLE_LINE_MAX];
	__u64 word;
};

/* What a byte is. */
enum { PREAMBLE_NONE, PREAMBLE_GOES_ON, PREAMBLE_ENDS };

/* Whether one may begin with a read of @bytes (there are some), the first eight being @word. */
static inline int preamble_begins(__u64 word, __u32 bytes)
{
	__u32 text = bytes < PREAMBLE_TEXT_BYTES ? bytes : PREAMBLE_TEXT_BYTES;
	__u32 signature = bytes < sizeof(word) ? bytes : sizeof(word);

	return !((word ^ PREAMBLE_TEXT) & TEXT_MASK(text)) ||
	       !((word ^ PREAMBLE_SIGNATURE) & TEXT_MASK(signature));
}

/* Whether what has been read cannot be anything else. */
static inline int preamble_is_sure(const struct preamble *preamble)
{
	return preamble->taken >=
	       (preamble->version == 1 ? PREAMBLE_TEXT_BYTES : PREAMBLE_SIGNATURE_BYTES);
}

static inline __u8 preamble_expected(const struct preamble *preamble)
{
	__u32 at = preamble->taken;

	if (preamble->version == 1)
		return PREAMBLE_TEXT >> 8 * (at & 7);
	return (at < 8 ? PREAMBLE_SIGNATURE : PREAMBLE_SIGNATURE_END) >> 8 * (at & 7);
}

/* A byte of the header, at @at. */
static inline int preamble_header_step(struct preamble *preamble, __u32 at, __u32 c)
{
	if (at == PREAMBLE_LENGTH_AT)
		preamble->left = c << 8;
	if (at < PREAMBLE_HEADER_BYTES - 1)
		return PREAMBLE_GOES_ON;
	preamble->left |= c;
	return PREAMBLE_ENDS;
}

/* Takes the next byte of the line or header, @c. */
VERIFIED_ALONE int preamble_step(struct preamble *preamble, __u32 c)
{
	__u32 at;

	if (!preamble)
		return PREAMBLE_NONE;
	at = preamble->taken;
	if (!preamble_is_sure(preamble) && c != preamble_expected(preamble))
		return PREAMBLE_NONE;
	preamble->taken++;
	if (preamble->version != 1)
		return preamble_header_step(preamble, at, c);
	if (c == '\n')
		return PREAMBLE_ENDS;
	return preamble->taken < PREAMBLE_LINE_MAX ? PREAMBLE_GOES_ON : PREAMBLE_NONE;
}

static inline int preamble_has_header(const struct preamble *preamble)
{
	return preamble->version == 2 && preamble->taken == PREAMBLE_HEADER_BYTES;
}

/* Of @bytes behind the line or header, how many belong to it still. */
static inline __u32 preamble_rest(struct preamble *preamble, __u32 bytes)
{
	__u32 taken = bytes < preamble->left ? bytes : preamble->left;

	preamble->left -= taken;
	if (!preamble->left)
		*preamble = (struct preamble){};
	return taken;
}

/*
 * How many of the @bytes of a read, the first of which are @window, belong to the preamble; 0: it
 * is none. *preamble becomes all 0 where it ends, too.
 */
static inline __u32 preamble_take(struct preamble *preamble, const union preamble_window *window,
				  __u32 bytes)
{
	int what = PREAMBLE_GOES_ON;
	__u32 i;

	if (preamble_has_header(preamble))
		return preamble_rest(preamble, bytes);
	if (!preamble->version)
		preamble->version = window->bytes[0] == 'P' ? 1 : 2;
	for (i = 0; i < PREAMBLE_LINE_MAX && i < bytes && what == PREAMBLE_GOES_ON; i++)
		what = preamble_step(preamble, window->bytes[i]);
	if (what == PREAMBLE_ENDS)
		return i + preamble_rest(preamble, bytes - i);
	if (what == PREAMBLE_GOES_ON)
		return i;
	*preamble = (struct preamble){};
	return 0;
}

#endif
