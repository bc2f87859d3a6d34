/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile that a file has, of which others chose every byte: as `profile --diff` reads it, beside
 * itself.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "profiles/difference.h"
#include "fuzz.h"

#define BYTES (1U << 20)

/* Nothing but lines of text. */
static void check_text(struct buffer *out)
{
	buffer_char(out, '\0');
	MUST(!out->error && strlen(out->data) == out->len - 1);
	for (const char *at = out->data; *at;) {
		size_t len = *at == '\n' ? 1 : utf8_length(at);

		MUST(len);
		at += len;
	}
}

static void check_difference(struct difference *difference, const Pprof__Profile *profile)
{
	static const char *const names[DIFFERENCE_SIDES] = { "before", "after" };
	_cleanup_(buffer_free) struct buffer out = BUFFER_INIT(BYTES);
	int r = difference_add(difference, BEFORE, profile);

	MUST(r == 0 || r == -EINVAL);
	MUST(r == 0 || profile->duration_nanos <= 0);
	if (r)
		return;
	r = difference_add(difference, AFTER, profile);
	MUST(r == 0);
	MUST(difference_write(difference, names, &out) == 0);
	check_text(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct difference *difference;
	Pprof__Profile *profile;
	int r = pprof_read(data, len, &profile);

	MUST(r == 0 || r == -EINVAL || r == -E2BIG);
	MUST(r == 0 || !profile);
	if (r)
		return 0;
	difference = difference_new();
	MUST(difference);
	check_difference(difference, profile);
	difference_free(difference);
	pprof_free(profile);
	return 0;
}
