/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/generator.h"

#include <string.h>

#define WORD 8

/*
 * All builtins of V8 are one part of .text, of 1.3 MiB and more. What has no frame information for
 * another reason is assembler, and shorter.
 */
#define BUILTINS_MIN (256U << 10)

static const struct {
	const char *symbol;
	enum generator generator;
} exported[] = {
	/* v8::Script::Run(v8::Local<v8::Context>): a part of its interface for good. */
	{ "_ZN2v86Script3RunENS_5LocalINS_7ContextEEE", GENERATOR_V8 },
	/* Tells debuggers where the JVM has what. */
	{ "gHotSpotVMStructs", GENERATOR_HOTSPOT },
	/* Since 3.12, which is also the first that generates something. */
	{ "PyUnstable_WritePerfMapEntry", GENERATOR_CPYTHON },
};
#define EXPORTED_LEN (sizeof(exported) / sizeof(exported[0]))

/* --- which it is ----------------------------------------------------------------------------- */

static bool name_is(const struct reader *names, uint32_t at, const char *name)
{
	size_t bytes = strlen(name) + 1;

	return at < reader_left(names) && reader_left(names) - at >= bytes &&
	       memcmp(names->at + at, name, bytes) == 0;
}

static enum generator symbol_generator(const struct reader *names, const Elf64_Sym *symbol)
{
	if (symbol->st_shndx == SHN_UNDEF)
		return GENERATOR_NONE; /* an extension, which wants it of another */
	for (size_t i = 0; i < EXPORTED_LEN; i++)
		if (name_is(names, symbol->st_name, exported[i].symbol))
			return exported[i].generator;
	return GENERATOR_NONE;
}

enum generator generator_find(const struct elf_image *image)
{
	enum generator found = GENERATOR_NONE;
	struct reader symbols, names;
	Elf64_Sym symbol;

	if (!elf_image_symbols(image, ".dynsym", &symbols, &names))
		return GENERATOR_NONE;
	while (!found && elf_image_symbol_next(&symbols, &symbol))
		found = symbol_generator(&names, &symbol);
	return found;
}

/* --- the builtins of V8 ---------------------------------------------------------------------- */

struct unwind_rule generator_rule(bool frame_pointers)
{
	if (!frame_pointers)
		return (struct unwind_rule){ .kind = UNWIND_EPILOGUE };
	return (struct unwind_rule){
		.kind = UNWIND_EPILOGUE,
		.base = UNWIND_FP,
		.fp_place = UNWIND_AT_CFA,
		.ra_place = UNWIND_AT_CFA,
		.cfa_offset = 2 * WORD,
		.fp_offset = -2 * WORD,
		.ra_offset = -WORD,
	};
}

/* What is long enough between two functions. */
static int gap_add(struct frames *frames, uint64_t begin, uint64_t end)
{
	const struct frames_function function = {
		.begin = begin,
		.end = end,
		.common = frames->commons_len - 1,
	};

	return begin < end && end - begin >= BUILTINS_MIN ? frames_add(frames, &function) : 0;
}

static int gaps_add(struct frames *frames, uint64_t begin, uint64_t end)
{
	const size_t len = frames->functions_len;
	int r = 0;

	for (size_t i = 0; !r && i < len; i++) {
		const struct frames_function function = frames->functions[i];

		if (function.end <= begin || function.begin >= end)
			continue;
		r = gap_add(frames, begin, function.begin);
		begin = function.end;
	}
	return r ? r : gap_add(frames, begin, end);
}

int generator_frames_read(const struct elf_image *image, const struct cfi_machine *machine,
			  struct frames *frames)
{
	const struct frames_common common = { .told = FRAMES_POINTER, .cfi.machine = machine };
	GElf_Shdr text;
	uint64_t end;
	int r;

	if (image->machine != EM_X86_64 || generator_find(image) != GENERATOR_V8 ||
	    !elf_image_named(image, ".text", &text) ||
	    __builtin_add_overflow(text.sh_addr, text.sh_size, &end))
		return 0;
	r = frames_add_common(frames, &common);
	if (!r)
		r = gaps_add(frames, text.sh_addr, end);
	frames_order(frames);
	return r;
}
