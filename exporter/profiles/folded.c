/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/folded.h"

#include <inttypes.h>

#include "abi/profiles.h"
#include "base/text.h"
#include "base/units.h"

static void append_word(struct buffer *out, const char *text)
{
	for (; *text; text++)
		buffer_char(out, *text == ';' || (unsigned char)*text < ' ' ? '_' : *text);
}

void folded_frame(const struct profile *profile, uint64_t frame, struct buffer *out)
{
	const struct profile_file *file = profile_file(profile, frame);
	const char *name = profile_name(profile, frame);

	if (name) {
		append_word(out, name);
		return;
	}
	if (file) {
		append_word(out, text_base_name(file->path));
		buffer_char(out, '+');
	}
	buffer_printf(out, "%#llx", (unsigned long long)frame_address(frame));
}

static void append_stack(const struct profile *profile, const struct profile_stack *stack,
			 struct buffer *out)
{
	append_word(out, stack->workload);
	buffer_char(out, ';');
	append_word(out, stack->pool);
	buffer_char(out, ';');
	append_word(out, stack->state);
	for (size_t i = stack->len; i-- > 0;) {
		buffer_char(out, ';');
		folded_frame(profile, stack->frames[i], out);
	}
	buffer_printf(out, " %llu\n",
		      profile_weight(profile, stack) /
			      (profile_kinds[profile->kind].waits ? NS_PER_US : 1));
}

void folded_write(const struct profile *profile, struct buffer *out)
{
	for (size_t i = 0; i < profile->stacks_len; i++)
		append_stack(profile, &profile->stacks[i], out);
	if (profile->lost)
		buffer_printf(out, "[lost] %" PRIu64 "\n", profile->lost);
}
