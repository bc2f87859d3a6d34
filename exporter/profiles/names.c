/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "profiles/symbols.h"
#include "unwind/frames.h"
#include "unwind/image.h"
#include "unwind/pclntab.h"

#define REPLACED(bytes) ((bytes) * (sizeof(UTF8_REPLACEMENT) - 1)) /* at most, of so many */

struct writer {
	struct names *names;
	struct names_found *found;
	const uint8_t *last; /* the name in the image that was written last, and where */
	struct name last_name;
};

/* --- texts ----------------------------------------------------------------------------------- */

/* @name as UTF-8 in @out; its bytes. */
static size_t text_make(const struct reader *name, char out[static NAME_BYTES_MAX + 1])
{
	char raw[NAME_BYTES_MAX + 2], text[REPLACED(sizeof(raw)) + 1];
	size_t left = reader_left(name);
	size_t len = strnlen((const char *)name->at, left < sizeof(raw) ? left : sizeof(raw) - 1);

	memcpy(raw, name->at, len);
	raw[len] = '\0';
	utf8_copy(text, sizeof(text), raw);
	if (strlen(text) <= NAME_BYTES_MAX) {
		utf8_copy(out, NAME_BYTES_MAX + 1, text);
	} else {
		utf8_copy(out, NAME_BYTES_MAX + 1 - strlen(NAME_CUT), text);
		memcpy(out + strlen(out), NAME_CUT, sizeof(NAME_CUT));
	}
	return strlen(out);
}

/* Functions have many addresses, which follow each other: their name is written once. */
static void text_write(struct writer *writer, const struct reader *name)
{
	struct names_found *found = writer->found;
	char text[NAME_BYTES_MAX + 1];
	size_t len;

	if (name->at == writer->last)
		return;
	writer->last = name->at;
	writer->last_name = (struct name){ 0 };
	len = text_make(name, text);
	if (len >= NAMES_TEXTS_BYTES - found->texts_bytes)
		return;
	memcpy(writer->names->texts + found->texts_bytes, text, len + 1);
	writer->last_name.text = found->texts_bytes;
	writer->last_name.bytes = (uint32_t)len;
	found->texts_bytes += (uint32_t)len + 1;
}

/* --- functions ------------------------------------------------------------------------------- */

/* What there is of functions without a symbol. */
struct unnamed {
	struct frames frames;
	struct pclntab go; /* their names; without a function if there is no table */
};

static void unnamed_free(struct unnamed *unnamed)
{
	frames_free(&unnamed->frames);
}

/* A name of Go may be empty: then it is told where it begins. */
static struct name name_write(struct writer *writer, const struct reader *text, uint64_t begin)
{
	struct name name = { .begin = begin };

	if (!reader_left(text) || !*text->at)
		return name;
	text_write(writer, text);
	name = writer->last_name;
	name.begin = begin;
	writer->found->no_room += !name.text;
	return name;
}

/*
 * A symbol that does not say how long it is may be the last before many functions that were
 * stripped of theirs: frame information tells.
 */
static struct name name_of(struct writer *writer, uint64_t address, const struct symbol *symbol,
			   const struct unnamed *unnamed)
{
	const struct frames_function *function = symbol->sized
							 ? NULL
							 : frames_find(&unnamed->frames, address);
	struct pclntab_function of_go;
	struct name name = { 0 };

	if (!symbol->sized && pclntab_search(&unnamed->go, address, &of_go))
		name = name_write(writer, &of_go.name, of_go.begin);
	else if (function && (!symbol->rank || function->begin > symbol->begin))
		name.begin = function->begin;
	else if (symbol->rank)
		name = name_write(writer, &symbol->name, symbol->begin);
	return name;
}

/* What there is of it: without memory for all there are fewer begins. */
static void unnamed_load(const struct elf_image *image, const struct symbol *symbols, size_t len,
			 struct unnamed *unnamed)
{
	struct frames_section section;
	size_t i = 0;

	while (i < len && symbols[i].sized)
		i++;
	if (i == len)
		return;
	if (pclntab_find(image, &unnamed->go))
		unnamed->go.len = 0;
	if (!image_frames(image, &section))
		frames_read(&section, &unnamed->frames);
}

int names_find(const struct elf_image *image, const uint64_t *addresses, size_t len,
	       struct names *names, struct names_found *found)
{
	_cleanup_(cleanup_free) struct symbol *symbols = calloc(len + 1, sizeof(*symbols));
	_cleanup_(unnamed_free) struct unnamed unnamed = { 0 };
	struct writer writer = { .names = names, .found = found };
	int r = symbols ? symbols_find(image, addresses, len, symbols) : -ENOMEM;

	if (r && r != -EFBIG)
		return r;
	*found = (struct names_found){ .texts_bytes = 1, .too_large = r == -EFBIG };
	names->texts[0] = '\0';
	unnamed_load(image, symbols, len, &unnamed);
	for (size_t i = 0; i < len; i++)
		names->names[i] = name_of(&writer, addresses[i], &symbols[i], &unnamed);
	return 0;
}
