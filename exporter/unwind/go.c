/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/go.h"

#include <errno.h>
#include <string.h>

#include "unwind/pclntab.h"

#define WORD 8
#define X86_64_RA 16 /* number of the return address, see image.c */

/* What their flags and steps do not say. */
static const struct {
	const char *name;
	enum unwind_kind kind;
} functions[] = {
	/* The goroutine may be on another thread already, or gone: what follows is the thread's. */
	{ "runtime.mcall", UNWIND_END },
	{ "runtime.morestack", UNWIND_END },
	/* It calls the handler of a signal, and sigreturn is its caller. */
	{ "runtime.sigtramp", UNWIND_CFA },
	{ "runtime.cgoSigtramp", UNWIND_CFA },
	{ "runtime.sigreturn", UNWIND_SIGNAL },
	{ "runtime.sigreturn__sigaction", UNWIND_SIGNAL },
	{ "runtime.systemstack", UNWIND_SWITCH },
	{ "runtime.asmcgocall", UNWIND_SWITCH },
	{ "runtime.cgocallback", UNWIND_SWITCH },
	/* For the vDSO, which takes more of a stack than a goroutine may have. */
	{ "time.now", UNWIND_SWITCH },
	{ "runtime.nanotime1", UNWIND_SWITCH },
	{ "runtime.walltime", UNWIND_SWITCH },
	{ "runtime.vgetrandom1", UNWIND_SWITCH },
};
#define FUNCTIONS_LEN (sizeof(functions) / sizeof(functions[0]))

/* --- what a function is ---------------------------------------------------------------------- */

/* No more is looked at than is compared: all names of a hostile file may be long, and alike. */
static bool name_is(const struct reader *names, const char *name)
{
	size_t bytes = strlen(name) + 1;

	return reader_left(names) >= bytes && memcmp(names->at, name, bytes) == 0;
}

/* The kind of all of its rules; UNWIND_CFA: its steps tell. */
static enum unwind_kind kind_of(const struct pclntab_function *function)
{
	enum unwind_kind kind = function->flags & PCLNTAB_TOP_FRAME  ? UNWIND_END
				: function->flags & PCLNTAB_SP_WRITE ? UNWIND_NONE
								     : UNWIND_CFA;

	for (size_t i = 0; i < FUNCTIONS_LEN; i++)
		if (name_is(&function->name, functions[i].name))
			kind = functions[i].kind;
	return kind == UNWIND_CFA && !reader_left(&function->steps) ? UNWIND_NONE : kind;
}

/* --- frames ---------------------------------------------------------------------------------- */

/* What functions of each kind have in common: from @first on, by kind. */
static int commons_add(const struct cfi_machine *machine, uint32_t quantum, struct frames *frames,
		       size_t *first)
{
	int r = 0;

	*first = frames->commons_len;
	for (uint32_t kind = 0; !r && kind < UNWIND_KINDS; kind++) {
		const struct frames_common common = {
			.told = FRAMES_STEPS,
			.kind = kind,
			.cfi = { .machine = machine, .code_factor = quantum },
		};

		r = frames_add_common(frames, &common);
	}
	return r;
}

/*
 * Behind the call of a handler of signals its frame returns to the very first byte of the function
 * that ends it, as if the byte before had called it.
 */
static uint64_t begin_of(const struct pclntab_function *function, enum unwind_kind kind)
{
	return function->begin - (kind == UNWIND_SIGNAL);
}

/* Functions follow each other without a gap. */
static void frame_make_room(struct frames *frames, const struct frames_function *next)
{
	struct frames_function *last = frames->functions_len
					       ? &frames->functions[frames->functions_len - 1]
					       : NULL;

	if (last && last->end == next->begin + 1 && last->begin < next->begin)
		last->end--;
}

int go_frames_read(const struct elf_image *image, const struct cfi_machine *machine,
		   struct frames *frames)
{
	struct pclntab_function function;
	struct pclntab table;
	size_t first;
	int r = pclntab_find(image, &table);

	if (!r)
		r = commons_add(machine, table.quantum, frames, &first);
	for (size_t i = 0; !r && i < table.len; i++) {
		if (!pclntab_function(&table, i, &function)) {
			frames->bad++;
			continue;
		}
		enum unwind_kind kind = kind_of(&function);
		const struct frames_function frame = {
			.begin = begin_of(&function, kind),
			.end = function.end,
			.common = first + kind,
			.code = function.steps,
		};

		frame_make_room(frames, &frame);
		r = frames_add(frames, &frame);
	}
	frames_order(frames);
	return r;
}

/* --- rules ----------------------------------------------------------------------------------- */

/* The caller's frame pointer is at the top of a frame, right below the return address. */
static struct unwind_rule rule_x86_64(int64_t bytes)
{
	return (struct unwind_rule){
		.kind = UNWIND_CFA,
		.fp_place = bytes >= WORD ? UNWIND_AT_CFA : UNWIND_KEPT,
		.ra_place = UNWIND_AT_CFA,
		.cfa_offset = (int32_t)bytes + WORD,
		.fp_offset = bytes >= WORD ? -2 * WORD : 0,
		.ra_offset = -WORD,
	};
}

/* Both are at the bottom: the link register at the stack pointer, and below it the other one. */
static struct unwind_rule rule_arm64(int64_t bytes)
{
	return (struct unwind_rule){
		.kind = UNWIND_CFA,
		.fp_place = bytes ? UNWIND_AT_CFA : UNWIND_KEPT,
		.ra_place = bytes ? UNWIND_AT_CFA : UNWIND_KEPT,
		.cfa_offset = (int32_t)bytes,
		.fp_offset = bytes ? -(int32_t)bytes - WORD : 0,
		.ra_offset = -(int32_t)bytes,
	};
}

struct unwind_rule go_rule(const struct frames_common *common, int64_t bytes)
{
	bool x86_64 = common->cfi.machine->ra == X86_64_RA;
	struct unwind_rule rule = { .kind = UNWIND_NONE };

	if (common->kind == UNWIND_CFA && bytes >= 0 && bytes < INT32_MAX - WORD)
		rule = x86_64 ? rule_x86_64(bytes) : rule_arm64(bytes);
	else if (common->kind == UNWIND_END || (x86_64 && common->kind != UNWIND_CFA))
		rule.kind = common->kind;
	return rule;
}
