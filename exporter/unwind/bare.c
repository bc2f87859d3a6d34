/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/bare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "unwind/flow.h"
#include "unwind/starts.h"

#define ROUNDS_MAX 64 /* of functions that are found by those that were found before */

struct search {
	struct starts starts;
	struct flow *flow; /* owned */
	bool endless; /* functions that never return were found in this round */
	struct frames_rule *rules; /* owned */
	size_t rules_len, rules_size;
};

static void cleanup_search(struct search *search)
{
	starts_close(&search->starts);
	free(search->rules);
	flow_free(search->flow);
}

/* --- following ------------------------------------------------------------------------------- */

static const uint8_t *code_at(const struct search *search, uint64_t address)
{
	return search->starts.text.at + (address - search->starts.begin);
}

static void follow(struct search *search, uint64_t begin, uint64_t end, bool first)
{
	flow_follow(search->flow, code_at(search, begin), end - begin, begin, first);
}

/* --- which others they lead to --------------------------------------------------------------- */

/* What is called begins a function, unless it is in the midst of one that is known to be longer. */
static int called_add(struct search *search, uint64_t address)
{
	const struct start *before = starts_find(&search->starts, address);

	if (before && address != before->begin && address < before->end)
		return 0;
	return starts_add(&search->starts, address, 0, START_FUNCTION);
}

static int found_add(struct search *search)
{
	size_t len;
	const struct flow_function *functions = flow_functions(search->flow, &len);
	int r = 0;

	for (size_t i = 0; !r && i < len; i++)
		r = functions[i].called ? called_add(search, functions[i].address)
					: starts_add_maybe(&search->starts, functions[i].address);
	return r;
}

/*
 * Follows those that were not, or up to another end. One that is wrong may be right once functions
 * are known that never return. 0 or -ENOMEM.
 */
static int starts_follow(struct search *search, bool again)
{
	const size_t len = search->starts.len;
	int r = 0;

	for (size_t i = 0; !r && i < len; i++) {
		struct start *start = &search->starts.all[i];
		const uint64_t begin = start->begin, end = starts_end(&search->starts, start);
		struct flow_ends ends;
		bool endless;

		if (start->kind != START_FUNCTION ||
		    (start->until == end && !(again && start->wrong)))
			continue;
		follow(search, begin, end, false);
		ends = flow_ends(search->flow);
		start->until = end;
		start->wrong = ends.wrong;
		endless = flow_is_endless(&ends);
		start->endless = endless;
		/* Behind a call that does not return may be data. */
		r = ends.broken ? 0 : found_add(search);
		if (endless && flow_add_endless(search->flow, begin))
			search->starts.changed = search->endless = true;
	}
	return r;
}

/* A function begins there, as one is called that is known to. */
static bool calls_known(const struct search *search)
{
	size_t len;
	const struct flow_function *functions = flow_functions(search->flow, &len);

	for (size_t i = 0; i < len; i++) {
		const uint64_t address = functions[i].address;
		const struct frames_function *known = frames_find(search->starts.frames, address);

		if (functions[i].called &&
		    (known ? known->begin == address : starts_know(&search->starts, address)))
			return true;
	}
	return false;
}

/*
 * What is noted somewhere may be a label, or data. It is a function if it returns with the stack as
 * it was called with, or calls functions and never returns; and nothing speaks against it.
 */
static bool is_function(const struct search *search)
{
	const struct flow_ends ends = flow_ends(search->flow);

	return !ends.wrong && !ends.broken &&
	       (ends.returns || (!ends.leaves && calls_known(search)));
}

static int maybe_follow(struct search *search, uint64_t address)
{
	const struct start *before = starts_find(&search->starts, address);

	if (starts_know(&search->starts, address) || (before && address < before->end))
		return 0;
	follow(search, address, starts_next(&search->starts, address), false);
	return is_function(search) ? starts_add(&search->starts, address, 0, START_FUNCTION) : 0;
}

static int maybes_follow(struct search *search)
{
	int r = 0;

	for (size_t i = 0; !r && i < search->starts.maybe_len; i++)
		r = maybe_follow(search, search->starts.maybe[i]);
	return r;
}

/* 0 or -ENOMEM. */
static int functions_find(struct search *search)
{
	bool again;
	int r = 0;

	search->starts.changed = true;
	for (int round = 0; !r && search->starts.changed && round < ROUNDS_MAX; round++) {
		again = search->endless;
		search->starts.changed = search->endless = false;
		r = starts_follow(search, again);
		if (!r && !search->starts.changed)
			r = maybes_follow(search);
		starts_order(&search->starts);
	}
	return r;
}

/* --- what they do ---------------------------------------------------------------------------- */

/* From @address on @rule holds. 0, -E2BIG or -ENOMEM. */
static int rule_add(struct search *search, size_t first, uint64_t address,
		    const struct unwind_rule *rule)
{
	struct frames_rule *rules = search->rules;
	const size_t len = search->rules_len;

	if (len > first && !memcmp(&rules[len - 1].rule, rule, sizeof(*rule)))
		return 0;
	rules = array_grow(rules, len, &search->rules_size, BARE_RULES_MAX, sizeof(*rules));
	if (!rules)
		return -errno;
	search->rules = rules;
	rules[search->rules_len++] = (struct frames_rule){ address, *rule };
	return 0;
}

/* One that is not understood has none. 0, -E2BIG or -ENOMEM. */
static int rules_add(struct search *search, struct start *start)
{
	const uint64_t begin = start->begin, len = start->end - begin;
	struct unwind_rule rule;
	uint64_t address;
	int r = 0;

	start->rules = search->rules_len;
	/* Linkers write any address as the entry point of a library: one that returns is called. */
	follow(search, begin, start->end, begin == search->starts.entry && start->endless);
	if (flow_ends(search->flow).wrong)
		return 0;
	for (size_t at = 0; !r && flow_has(at, len);) {
		address = begin + at;
		rule = flow_next(search->flow, &at);
		r = rule_add(search, start->rules, address, &rule);
	}
	start->rules_len = r ? 0 : search->rules_len - start->rules;
	if (len > FLOW_BYTES_MAX)
		start->end = begin + FLOW_BYTES_MAX;
	return r;
}

static int rules_find(struct search *search)
{
	int r = 0;

	flow_renew(search->flow);
	for (size_t i = 0; i < search->starts.len; i++)
		search->starts.all[i].end = starts_end(&search->starts, &search->starts.all[i]);
	for (size_t i = 0; !r && i < search->starts.len; i++)
		if (search->starts.all[i].kind == START_FUNCTION)
			r = rules_add(search, &search->starts.all[i]);
	return r == -E2BIG ? 0 : r;
}

/* --- all of it ------------------------------------------------------------------------------- */

static int start_tell(const struct search *search, const struct start *start, struct frames *frames)
{
	struct frames_function function = { .begin = start->begin,
					    .end = start->end,
					    .common = frames->commons_len - 1 };

	if (start->kind != START_SIGNAL && !start->rules_len)
		return 0;
	if (start->kind == START_FUNCTION) {
		function.common--;
		function.code.at = (const uint8_t *)(search->rules + start->rules);
		function.code.end =
			(const uint8_t *)(search->rules + start->rules + start->rules_len);
	}
	return frames_add(frames, &function);
}

static int starts_tell(struct search *search, const struct cfi_machine *machine,
		       struct frames *frames)
{
	const struct frames_common common = { .told = FRAMES_RULES, .cfi.machine = machine };
	const struct frames_common signal = { .told = FRAMES_STEPS,
					      .kind = UNWIND_SIGNAL,
					      .cfi.machine = machine };
	int r = search->starts.len ? frames_add_common(frames, &common) : 0;

	if (!r && search->starts.len)
		r = frames_add_common(frames, &signal);
	for (size_t i = 0; !r && i < search->starts.len; i++)
		r = start_tell(search, &search->starts.all[i], frames);
	frames->rules = search->rules;
	search->rules = NULL;
	frames_order(frames);
	return r == -E2BIG ? 0 : r;
}

/* Where compilers put the tables of switches. */
static void data_find(struct search *search, const struct elf_image *image)
{
	struct reader data;
	GElf_Shdr section;

	if (elf_image_find(image, ".rodata", &section) && elf_image_bytes(image, &section, &data))
		flow_set_data(search->flow, data, section.sh_addr);
}

int bare_frames_read(const struct elf_image *image, const struct cfi_machine *machine,
		     struct frames *frames)
{
	_cleanup_(cleanup_search) struct search search = { 0 };
	int r = starts_open(&search.starts, image, frames);

	if (r || !search.starts.len)
		return r;
	r = flow_new(&search.flow);
	if (r)
		return r;
	data_find(&search, image);
	r = functions_find(&search);
	if (!r)
		r = rules_find(&search);
	return r ? r : starts_tell(&search, machine, frames);
}
