/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/name_texts.h"

#include <string.h>

#include "base/utf8.h"
#include "profiles/demangled.h"

#define REPLACED(bytes) ((bytes) * (sizeof(UTF8_REPLACEMENT) - 1)) /* at most, of so many */

void name_texts_begin(struct name_texts *texts, struct names *names, struct names_found *found,
		      bool as_linked)
{
	*texts = (struct name_texts){ .names = names, .found = found, .as_linked = as_linked };
	*found = (struct names_found){ .texts_bytes = 1 };
	names->texts[0] = '\0';
}

/* @name as UTF-8 in @out; its bytes. */
static size_t text_make(const struct reader *name, bool as_linked,
			char out[static NAME_BYTES_MAX + 1])
{
	char raw[DEMANGLED_BYTES_MAX + 2], plain[NAME_BYTES_MAX + 2];
	char text[REPLACED(sizeof(raw)) + 1];
	size_t left = reader_left(name);
	size_t len = strnlen((const char *)name->at, left < sizeof(raw) ? left : sizeof(raw) - 1);

	memcpy(raw, name->at, len);
	raw[len] = '\0';
	if (as_linked || !demangled(raw, plain, sizeof(plain)))
		utf8_copy(text, sizeof(text), raw);
	else
		utf8_copy(text, sizeof(text), plain);
	if (strlen(text) <= NAME_BYTES_MAX) {
		utf8_copy(out, NAME_BYTES_MAX + 1, text);
	} else {
		utf8_copy(out, NAME_BYTES_MAX + 1 - strlen(NAME_CUT), text);
		memcpy(out + strlen(out), NAME_CUT, sizeof(NAME_CUT));
	}
	return strlen(out);
}

static void text_write(struct name_texts *texts, const struct reader *name)
{
	struct names_found *found = texts->found;
	char text[NAME_BYTES_MAX + 1];
	size_t len;

	if (name->at == texts->last)
		return;
	texts->last = name->at;
	texts->last_name = (struct name){ 0 };
	len = text_make(name, texts->as_linked, text);
	texts->last_has_no_room = len >= NAMES_TEXTS_BYTES - found->texts_bytes;
	if (!len || texts->last_has_no_room)
		return;
	memcpy(texts->names->texts + found->texts_bytes, text, len + 1);
	texts->last_name.text = found->texts_bytes;
	texts->last_name.bytes = (uint32_t)len;
	found->texts_bytes += (uint32_t)len + 1;
}

struct name name_texts_write(struct name_texts *texts, const struct reader *text, uint64_t begin)
{
	struct name name = { .begin = begin };

	if (!reader_left(text))
		return name;
	text_write(texts, text);
	name = texts->last_name;
	name.begin = begin;
	texts->found->no_room += texts->last_has_no_room;
	return name;
}
