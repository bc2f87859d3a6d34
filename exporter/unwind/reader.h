/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads numbers of DWARF (DWARF 5, 7.6 and LSB 5.0, 10.5) from bytes that may be hostile, one after
 * the other. Behind the end every number is 0 and `bad` is set: a reader is checked once, when it
 * has been read. Little endian, as the machines that are unwound.
 */
#ifndef WORKLOAD_UNWIND_READER_H
#define WORKLOAD_UNWIND_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
	const uint8_t *at, *end; /* borrowed */
	bool bad;
};

static inline size_t reader_left(const struct reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

/* An unsigned number of @bytes bytes, at most 8. */
uint64_t reader_number(struct reader *reader, size_t bytes);

/* The same, with its sign. */
int64_t reader_signed(struct reader *reader, size_t bytes);

/* Numbers that tell their length by themselves (LEB128). What does not fit into 64 bits is cut. */
uint64_t reader_uleb(struct reader *reader);
int64_t reader_sleb(struct reader *reader);

/* The next @bytes bytes as a reader of their own; an empty one if there are not so many. */
struct reader reader_part(struct reader *reader, uint64_t bytes);

/* A text with its end; NULL if it has none. Valid as long as the bytes. */
const char *reader_text(struct reader *reader);

/*
 * A pointer in one of the encodings DW_EH_PE_*: an absolute one, or one relative to its own
 * address, @address. Others make the reader bad: linkers write none for what is read here.
 */
uint64_t reader_pointer(struct reader *reader, uint8_t encoding, uint64_t address);

#endif
