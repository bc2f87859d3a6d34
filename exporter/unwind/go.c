/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/go.h"

#include <string.h>

#include "base/cleanup.h"
#include "unwind/elf_image.h"

#define X86_64_WORD 8
#define DATA_FACTOR (-4) /* in what the linker of Go writes (src/cmd/link/internal/ld/dwarf.go) */

/* Without the suffix of those that are written in assembler, where linkers keep it. */
static const struct {
	const char *name;
	enum unwind_kind kind;
} functions[] = {
	{ "runtime.goexit", UNWIND_END },
	{ "runtime.mstart", UNWIND_END },
	{ "runtime.rt0_go", UNWIND_END },
	/* The goroutine may be on another thread already, or gone: what follows is the thread's. */
	{ "runtime.mcall", UNWIND_END },
	{ "runtime.morestack", UNWIND_END },
	{ "runtime.sigreturn", UNWIND_SIGNAL },
	{ "runtime.sigreturn__sigaction", UNWIND_SIGNAL },
	{ "runtime.systemstack", UNWIND_SWITCH },
	{ "runtime.asmcgocall", UNWIND_SWITCH },
	{ "runtime.cgocallback", UNWIND_SWITCH },
	/* For the vDSO, which takes more of a stack than a goroutine may have. */
	{ "time.now", UNWIND_SWITCH },
	{ "runtime.nanotime1", UNWIND_SWITCH },
	{ "runtime.walltime", UNWIND_SWITCH },
	{ "runtime.walltime1", UNWIND_SWITCH },
	{ "runtime.vgetrandom1", UNWIND_SWITCH },
};
#define FUNCTIONS_LEN (sizeof(functions) / sizeof(functions[0]))
#define GOEXIT 0 /* the first of them: every goroutine begins there */
#define SUFFIX ".abi0"

static bool text_is(const struct reader *names, size_t at, const char *text, size_t bytes)
{
	return reader_left(names) >= at + bytes && memcmp(names->at + at, text, bytes) == 0;
}

/* No more is looked at than is compared: all names of a hostile file may be long, and alike. */
static bool name_is(const struct reader *names, const char *name)
{
	size_t len = strlen(name);

	return text_is(names, 0, name, len) &&
	       (text_is(names, len, "", 1) || text_is(names, len, SUFFIX, sizeof(SUFFIX)));
}

static void symbol_add(struct go_code *go, const Elf64_Sym *symbol, struct reader names)
{
	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_size ||
	    symbol->st_name >= reader_left(&names) || go->len == GO_FUNCTIONS_MAX)
		return;
	names.at += symbol->st_name;
	for (size_t i = 0; i < FUNCTIONS_LEN; i++) {
		struct go_function *function = &go->functions[go->len];

		if (!name_is(&names, functions[i].name) ||
		    __builtin_add_overflow(symbol->st_value, symbol->st_size, &function->end))
			continue;
		function->begin = symbol->st_value;
		function->kind = functions[i].kind;
		go->is_named |= i == GOEXIT;
		go->len++;
		return;
	}
}

static void symbols_read(const struct elf_image *image, struct go_code *go)
{
	struct reader symbols, names;
	GElf_Shdr header, texts;
	Elf64_Sym symbol;

	if (!elf_image_find(image, ".symtab", &header) || header.sh_type != SHT_SYMTAB ||
	    header.sh_entsize != sizeof(symbol) || header.sh_size > GO_SYMBOLS_BYTES_MAX ||
	    !elf_image_bytes(image, &header, &symbols) ||
	    !elf_image_section(image, header.sh_link, &texts) ||
	    !elf_image_bytes(image, &texts, &names))
		return;
	for (; reader_left(&symbols) >= sizeof(symbol); symbols.at += sizeof(symbol)) {
		memcpy(&symbol, symbols.at, sizeof(symbol));
		symbol_add(go, &symbol, names);
	}
}

int go_find(const void *image, size_t bytes, struct go_code *go)
{
	_cleanup_(elf_image_close) struct elf_image elf = { 0 };
	GElf_Shdr header;
	int r = elf_image_open(image, bytes, &elf);

	*go = (struct go_code){ 0 };
	if (r)
		return r;
	go->is_go = elf_image_named(&elf, ".gopclntab", &header) ||
		    elf_image_named(&elf, ".go.buildinfo", &header);
	go->arm64 = elf.machine == EM_AARCH64;
	if (go->is_go)
		symbols_read(&elf, go);
	return 0;
}

static const struct go_function *function_at(const struct go_code *go, uint64_t address)
{
	for (size_t i = 0; i < go->len; i++)
		if (address >= go->functions[i].begin && address < go->functions[i].end)
			return &go->functions[i];
	return NULL;
}

/*
 * Functions of x86-64 that have a frame keep the frame pointer of their caller at its top, right
 * below the return address.
 */
static void keep_frame_pointer(struct unwind_rule *rule)
{
	if (rule->kind != UNWIND_CFA || rule->base != UNWIND_SP || rule->fp_place != UNWIND_KEPT ||
	    rule->cfa_offset < 2 * X86_64_WORD)
		return;
	rule->fp_place = UNWIND_AT_CFA;
	rule->fp_offset = -2 * X86_64_WORD;
}

bool go_rule(const struct go_code *go, const struct cfi_common *common, uint64_t address,
	     struct unwind_rule *rule)
{
	static const struct unwind_rule none;
	const struct go_function *function = function_at(go, address);

	if (!go->is_go || common->data_factor != DATA_FACTOR)
		return rule->kind != UNWIND_NONE;
	if (!go->is_named)
		*rule = none;
	else if (function)
		*rule = (struct unwind_rule){ .kind = go->arm64 && function->kind != UNWIND_END
							      ? UNWIND_NONE
							      : function->kind };
	else if (!go->arm64)
		keep_frame_pointer(rule);
	return rule->kind != UNWIND_NONE;
}

uint64_t go_row_begin(const struct go_code *go, uint64_t address)
{
	const struct go_function *function = function_at(go, address);

	return function && function->kind == UNWIND_SIGNAL && address == function->begin
		       ? address - 1
		       : address;
}
