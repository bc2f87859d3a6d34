/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/reader.h"

#include <string.h>

/* LSB 5.0, 10.5.1 "DWARF Exception Header Encoding": a form, and what it is relative to. */
#define PE_FORM 0x0f
#define PE_ABSPTR 0x00
#define PE_UDATA2 0x02
#define PE_UDATA4 0x03
#define PE_UDATA8 0x04
#define PE_SDATA2 0x0a
#define PE_SDATA4 0x0b
#define PE_SDATA8 0x0c
#define PE_RELATIVE 0x70
#define PE_PCREL 0x10
#define PE_INDIRECT 0x80

static void reader_fail(struct reader *reader)
{
	reader->bad = true;
	reader->at = reader->end;
}

uint64_t reader_number(struct reader *reader, size_t bytes)
{
	uint64_t value = 0;

	if (reader_left(reader) < bytes) {
		reader_fail(reader);
		return 0;
	}
	memcpy(&value, reader->at, bytes);
	reader->at += bytes;
	return value;
}

int64_t reader_signed(struct reader *reader, size_t bytes)
{
	unsigned int unused = 64 - 8 * (unsigned int)bytes;

	return (int64_t)(reader_number(reader, bytes) << unused) >> unused;
}

/* Both kinds of LEB128. *@bits: how many the number has; *@last: its last byte. */
static uint64_t reader_leb(struct reader *reader, unsigned int *bits, uint8_t *last)
{
	uint64_t value = 0;

	*bits = 0;
	do {
		*last = (uint8_t)reader_number(reader, 1);
		if (*bits < 64)
			value |= (uint64_t)(*last & 0x7f) << *bits;
		*bits += *bits < 64 ? 7 : 0;
	} while (*last & 0x80);
	return value;
}

uint64_t reader_uleb(struct reader *reader)
{
	unsigned int bits;
	uint8_t last;

	return reader_leb(reader, &bits, &last);
}

int64_t reader_sleb(struct reader *reader)
{
	unsigned int bits;
	uint8_t last;
	uint64_t value = reader_leb(reader, &bits, &last);

	if (bits < 64 && last & 0x40)
		value |= ~UINT64_C(0) << bits;
	return (int64_t)value;
}

struct reader reader_part(struct reader *reader, uint64_t bytes)
{
	struct reader part = { .at = reader->at, .end = reader->at };

	if (bytes > reader_left(reader)) {
		reader_fail(reader);
		return part;
	}
	part.end += bytes;
	reader->at += bytes;
	return part;
}

const char *reader_text(struct reader *reader)
{
	const uint8_t *text = reader->at, *end = memchr(text, '\0', reader_left(reader));

	if (!end) {
		reader_fail(reader);
		return NULL;
	}
	reader->at = end + 1;
	return (const char *)text;
}

static uint64_t reader_form(struct reader *reader, uint8_t form)
{
	switch (form) {
	case PE_UDATA2:
		return reader_number(reader, 2);
	case PE_UDATA4:
		return reader_number(reader, 4);
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return reader_number(reader, 8);
	case PE_SDATA2:
		return (uint64_t)reader_signed(reader, 2);
	case PE_SDATA4:
		return (uint64_t)reader_signed(reader, 4);
	default:
		reader_fail(reader);
		return 0;
	}
}

uint64_t reader_pointer(struct reader *reader, uint8_t encoding, uint64_t address)
{
	uint64_t value = reader_form(reader, encoding & PE_FORM);

	if (encoding & PE_INDIRECT)
		reader_fail(reader);
	switch (encoding & PE_RELATIVE) {
	case 0:
		return value;
	case PE_PCREL:
		return value + address;
	default:
		reader_fail(reader);
		return 0;
	}
}
