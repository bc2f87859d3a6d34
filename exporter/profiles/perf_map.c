/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profiles/name_texts.h"

/* A function; zeros: none. */
struct entry {
	struct reader name;
	uint64_t begin;
};

struct search {
	const uint64_t *addresses;
	size_t len, left; /* of them, and that have no function yet */
	struct entry *entries; /* of each */
	uint32_t *next; /* of each, whether it has one: the first from there on that has none */
};

/* --- lines ----------------------------------------------------------------------------------- */

static int digit_of(uint8_t character)
{
	if (character >= '0' && character <= '9')
		return character - '0';
	character |= 0x20;
	return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

/* A number of at most 16 digits, with 0x before them or not, and the space behind it. */
static bool number_read(struct reader *line, uint64_t *number)
{
	size_t digits = 0;

	*number = 0;
	if (reader_left(line) > 2 && line->at[0] == '0' && (line->at[1] | 0x20) == 'x')
		line->at += 2;
	for (; reader_left(line) && digit_of(*line->at) >= 0; line->at++, digits++)
		*number = *number << 4 | (uint64_t)digit_of(*line->at);
	if (!digits || digits > 16 || !reader_left(line) || *line->at != ' ')
		return false;
	line->at++;
	return true;
}

/* False: it is no line of a function that has a name. */
static bool line_read(struct reader line, struct entry *entry, uint64_t *end)
{
	uint64_t bytes;

	if (!number_read(&line, &entry->begin) || !number_read(&line, &bytes) || !bytes ||
	    __builtin_add_overflow(entry->begin, bytes, end))
		return false;
	entry->name = line;
	return reader_left(&line);
}

/* --- addresses ------------------------------------------------------------------------------- */

/* The first from @i on that has no function; the way there is made shorter. */
static size_t next_free(const struct search *search, size_t i)
{
	while (search->next[i] != i) {
		search->next[i] = search->next[search->next[i]];
		i = search->next[i];
	}
	return i;
}

/* Those in it that no later line has. */
static void entry_take(struct search *search, const struct entry *entry, uint64_t end)
{
	size_t i = next_free(search, array_first_at(search->addresses, search->len, entry->begin));

	for (; i < search->len && search->addresses[i] < end; i = next_free(search, i)) {
		search->entries[i] = *entry;
		search->next[i] = (uint32_t)i + 1;
		search->left--;
	}
}

/*
 * From the last line to the first. The one behind the last newline may be cut, and so may one at
 * the beginning, of a file that is too large.
 */
static void lines_take(struct search *search, const uint8_t *map, size_t len)
{
	const uint8_t *begin = len > PERF_MAP_BYTES_MAX ? map + len - PERF_MAP_BYTES_MAX : map;
	const uint8_t *end = memrchr(begin, '\n', (size_t)(map + len - begin));

	while (end && end > begin && search->left) {
		struct reader line = { end, end, false };
		struct entry entry;
		uint64_t last;

		while (line.at > begin && line.at[-1] != '\n')
			line.at--;
		if (line.at == begin && begin != map)
			return;
		if (line_read(line, &entry, &last))
			entry_take(search, &entry, last);
		end = line.at > begin ? line.at - 1 : begin;
	}
}

int perf_map_find(const void *map, size_t len, const uint64_t *addresses, size_t asked,
		  struct name_texts *texts)
{
	_cleanup_(cleanup_free) struct entry *entries = calloc(asked + 1, sizeof(*entries));
	_cleanup_(cleanup_free) uint32_t *next = calloc(asked + 1, sizeof(*next));
	struct search search = { addresses, asked, asked, entries, next };

	if (!entries || !next)
		return -ENOMEM;
	for (size_t i = 0; i <= asked; i++)
		next[i] = (uint32_t)i;
	lines_take(&search, map, len);
	for (size_t i = 0; i < asked; i++)
		texts->names->names[i] = name_texts_write(texts, &entries[i].name,
							  entries[i].begin);
	return 0;
}
