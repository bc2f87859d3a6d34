/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/frames.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define LENGTH_IS_LONG 0xffffffffU /* eight bytes of length follow */
#define DEBUG_COMMON 0xffffffffU /* the id of a CIE in .debug_frame; as long as the length */
#define ADDRESS_BYTES 8
#define FORM_MASK 0x0f /* of an encoding: how the number is written */

struct entry {
	struct reader body; /* behind its id */
	bool common; /* it is a CIE */
	uint64_t refers; /* else offset of the CIE of the function in the section */
};

static uint64_t offset_of(const struct frames_section *section, const struct reader *reader)
{
	return (uint64_t)(reader->at - section->bytes);
}

/* The id of a function tells how far before itself, which is @at, its CIE is. */
static void frame_id(struct entry *entry, uint64_t at)
{
	uint64_t id = reader_number(&entry->body, 4);

	entry->common = !id;
	entry->refers = at - id;
}

/* It tells where its CIE is. */
static void debug_id(struct entry *entry, bool is_long)
{
	uint64_t id = reader_number(&entry->body, is_long ? 8 : 4);

	entry->common = id == (is_long ? UINT64_MAX : DEBUG_COMMON);
	entry->refers = id;
}

/* The next entry of @reader. False at the end, and at what is none. */
static bool entry_next(const struct frames_section *section, struct reader *reader,
		       struct entry *entry)
{
	uint64_t len = reader_number(reader, 4), at;
	bool is_long = len == LENGTH_IS_LONG;

	if (is_long)
		len = reader_number(reader, 8);
	if (!len || reader->bad)
		return false;
	at = offset_of(section, reader);
	entry->body = reader_part(reader, len);
	if (section->debug)
		debug_id(entry, is_long);
	else
		frame_id(entry, at);
	return !reader->bad && !entry->body.bad;
}

/* --- what functions have in common ----------------------------------------------------------- */

/*
 * What follows the letter `z`: letters say what its data are. 0; -EINVAL for a letter of later, as
 * what it has put before the others is not known.
 */
static int common_augment(struct cfi_common *common, const char *letters, struct reader data)
{
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			common->encoding = (uint8_t)reader_number(&data, 1);
			break;
		case 'S':
			common->signal = true;
			break;
		case 'L':
			reader_number(&data, 1);
			break;
		case 'P': /* only to get behind it: wherever it leads, it is not followed */
			reader_pointer(&data, reader_number(&data, 1) & FORM_MASK, 0);
			break;
		case 'B': /* arm64: which key signs return addresses */
		case 'G': /* and that the stack is tagged */
			break;
		default:
			return -EINVAL;
		}
	}
	return data.bad ? -EINVAL : 0;
}

static int common_parse(const struct frames_section *section, struct reader body,
			struct cfi_common *common)
{
	uint64_t version = reader_number(&body, 1);
	const char *letters = reader_text(&body);
	int r = 0;

	*common = (struct cfi_common){ .machine = section->machine };
	if (!letters || (version != 1 && version != 3 && !(version == 4 && section->debug)))
		return -EINVAL;
	if (version == 4 && (reader_number(&body, 1) != ADDRESS_BYTES || reader_number(&body, 1)))
		return -EINVAL; /* the latter is how long segments are */
	common->code_factor = reader_uleb(&body);
	common->data_factor = reader_sleb(&body);
	if ((version == 1 ? reader_number(&body, 1) : reader_uleb(&body)) != section->machine->ra)
		return -EINVAL;
	common->augmented = *letters == 'z';
	if (common->augmented)
		r = common_augment(common, letters + 1, reader_part(&body, reader_uleb(&body)));
	else if (*letters)
		r = -EINVAL;
	return r || body.bad ? -EINVAL : cfi_common_run(common, body);
}

int frames_add_common(struct frames *frames, const struct frames_common *common)
{
	struct frames_common *commons = array_grow(frames->commons, frames->commons_len,
						   &frames->commons_size, FRAMES_COMMONS_MAX,
						   sizeof(*commons));

	if (!commons)
		return -errno;
	frames->commons = commons;
	commons[frames->commons_len++] = *common;
	return 0;
}

/* 0, -E2BIG or -ENOMEM. One that is not understood is kept, for the functions that refer to it. */
static int common_read(const struct frames_section *section, struct frames *frames,
		       const struct entry *entry, uint64_t at)
{
	struct frames_common common = { .at = at };

	common.bad = common_parse(section, entry->body, &common.cfi);
	return frames_add_common(frames, &common);
}

/* What a function refers to is before it; NULL: it is no CIE. */
static const struct frames_common *common_find(const struct frames *frames, uint64_t at)
{
	const size_t before = frames->commons_before, len = frames->commons_len - before;
	const struct frames_common *commons;
	size_t behind;

	if (!len)
		return NULL;
	commons = frames->commons + before;
	behind = array_above(commons, len, sizeof(*commons), at);
	return behind && commons[behind - 1].at == at ? &commons[behind - 1] : NULL;
}

/* --- functions ------------------------------------------------------------------------------- */

/* 0; -EINVAL for what is no function, or one that was left out when the program was linked. */
static int function_parse(const struct frames_section *section, const struct cfi_common *common,
			  struct reader body, struct frames_function *function)
{
	uint64_t address = section->address + offset_of(section, &body), bytes;

	function->begin = reader_pointer(&body, common->encoding, address);
	bytes = reader_pointer(&body, common->encoding & FORM_MASK, 0);
	if (common->augmented)
		reader_part(&body, reader_uleb(&body));
	function->code = body;
	return body.bad || !function->begin || !bytes ||
			       __builtin_add_overflow(function->begin, bytes, &function->end)
		       ? -EINVAL
		       : 0;
}

int frames_add(struct frames *frames, const struct frames_function *function)
{
	struct frames_function *functions = array_grow(frames->functions, frames->functions_len,
						       &frames->functions_size,
						       FRAMES_FUNCTIONS_MAX, sizeof(*functions));

	if (!functions)
		return -errno;
	frames->functions = functions;
	functions[frames->functions_len++] = *function;
	return 0;
}

/* 0, -E2BIG or -ENOMEM. */
static int function_read(const struct frames_section *section, struct frames *frames,
			 const struct entry *entry)
{
	const struct frames_common *common = common_find(frames, entry->refers);
	struct frames_function function;

	if (!common || common->bad ||
	    function_parse(section, &common->cfi, entry->body, &function)) {
		frames->bad++;
		return 0;
	}
	function.common = (size_t)(common - frames->commons);
	return frames_add(frames, &function);
}

static int function_compare(const void *a, const void *b)
{
	const struct frames_function *left = a, *right = b;

	if (left->begin != right->begin)
		return left->begin < right->begin ? -1 : 1;
	return left->common < right->common ? -1 : left->common > right->common;
}

/* Of two that overlap the one that begins first is kept. */
void frames_order(struct frames *frames)
{
	struct frames_function *functions = frames->functions;
	size_t kept = 0;

	if (frames->functions_len)
		qsort(functions, frames->functions_len, sizeof(*functions), function_compare);
	for (size_t i = 0; i < frames->functions_len; i++)
		if (!kept || functions[i].begin >= functions[kept - 1].end)
			functions[kept++] = functions[i];
	frames->bad += frames->functions_len - kept;
	frames->functions_len = kept;
}

int frames_read(const struct frames_section *section, struct frames *frames)
{
	struct reader reader = { section->bytes, section->bytes + section->len, false };
	struct entry entry;
	uint64_t at = 0;
	int r = 0;

	frames->commons_before = frames->commons_len;
	while (!r && entry_next(section, &reader, &entry)) {
		r = entry.common ? common_read(section, frames, &entry, at)
				 : function_read(section, frames, &entry);
		at = offset_of(section, &reader);
	}
	frames_order(frames);
	return r;
}

const struct frames_function *frames_find(const struct frames *frames, uint64_t address)
{
	size_t behind = frames_behind(frames, address);

	return behind && frames->functions[behind - 1].end > address
		       ? &frames->functions[behind - 1]
		       : NULL;
}

bool frames_leave_out(struct frames *frames, enum frames_told told)
{
	const size_t len = frames->functions_len;
	size_t kept = 0;

	for (size_t i = 0; i < len; i++)
		if (frames->commons[frames->functions[i].common].told != told)
			frames->functions[kept++] = frames->functions[i];
	frames->functions_len = kept;
	return kept < len;
}

size_t frames_behind(const struct frames *frames, uint64_t address)
{
	return array_above(frames->functions, frames->functions_len, sizeof(*frames->functions),
			   address);
}

void frames_free(struct frames *frames)
{
	free(frames->commons);
	free(frames->functions);
	free(frames->rules);
	free(frames->inflated);
	*frames = (struct frames){ 0 };
}
