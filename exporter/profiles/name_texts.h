/* SPDX-License-Identifier: Apache-2.0 */
/* Names as they are written to the memory that is shared (profiles/names.h): each once. */
#ifndef WORKLOAD_PROFILES_NAME_TEXTS_H
#define WORKLOAD_PROFILES_NAME_TEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "profiles/names.h"

struct name_texts {
	struct names *names; /* borrowed, as all */
	struct names_found *found;
	bool as_linked; /* they are not demangled */
	const uint8_t *last; /* the name in the image that was written last, and where */
	struct name last_name;
	bool last_has_no_room;
};

/* There are none yet. */
void name_texts_begin(struct name_texts *texts, struct names *names, struct names_found *found,
		      bool as_linked);

/*
 * Writes the name at @text, which may change meanwhile, up to its NUL or the end of the reader, as
 * valid UTF-8, cut to NAME_BYTES_MAX. Equal ones that follow each other, as of addresses of one
 * function, are written once. An empty one is none; one for which there is no room is counted.
 */
struct name name_texts_write(struct name_texts *texts, const struct reader *text, uint64_t begin);

#endif
