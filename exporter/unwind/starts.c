/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/starts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define TABLES_MAX 64 /* of relocations */
#define NAME_MAX_BYTES 512 /* that are looked at of a symbol's */

/* --- where they begin ------------------------------------------------------------------------ */

static bool has_bit(const struct starts *starts, const uint8_t *bits, uint64_t address)
{
	const uint64_t at = address - starts->begin;

	return bits[at / 8] & 1U << at % 8;
}

/* Whether it is the first time. */
static bool set_bit(const struct starts *starts, uint8_t *bits, uint64_t address)
{
	const uint64_t at = address - starts->begin;
	const bool first = !has_bit(starts, bits, address);

	bits[at / 8] |= (uint8_t)(1U << at % 8);
	return first;
}

/* It is in the text, and in no function that is known otherwise. */
static bool is_unknown(const struct starts *starts, uint64_t address)
{
	return address >= starts->begin && address < starts->end &&
	       !frames_find(starts->frames, address);
}

/* 0 or -ENOMEM; more than there may be are left out. @bytes 0: not known. */
int starts_add(struct starts *starts, uint64_t begin, uint64_t bytes, enum start_kind kind)
{
	struct start *all;
	uint64_t end;

	if (!is_unknown(starts, begin) ||
	    (kind == START_FUNCTION && !set_bit(starts, starts->seen, begin)))
		return 0;
	if (__builtin_add_overflow(begin, bytes, &end) || end > starts->end)
		end = begin;
	all = array_grow(starts->all, starts->len, &starts->size, STARTS_MAX, sizeof(*all));
	if (!all)
		return errno == E2BIG ? 0 : -errno;
	starts->all = all;
	all[starts->len++] =
		(struct start){ .begin = begin, .end = end == begin ? 0 : end, .kind = kind };
	starts->changed = true;
	return 0;
}

/* The same of an address that is noted somewhere: of a function, or of anything else. */
int starts_add_maybe(struct starts *starts, uint64_t address)
{
	uint64_t *maybe;

	if (!is_unknown(starts, address) || !set_bit(starts, starts->named, address))
		return 0;
	maybe = array_grow(starts->maybe, starts->maybe_len, &starts->maybe_size, STARTS_MAX,
			   sizeof(*maybe));
	if (!maybe)
		return errno == E2BIG ? 0 : -errno;
	starts->maybe = maybe;
	maybe[starts->maybe_len++] = address;
	return 0;
}

/* Compilers move what is rarely run to another place: such a part begins within a frame. */
static bool is_part(const struct reader *names, uint32_t at)
{
	const char *name;
	size_t len;

	if (at >= reader_left(names))
		return true;
	name = (const char *)names->at + at;
	len = reader_left(names) - at;
	len = strnlen(name, len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES);
	return memmem(name, len, ".cold", strlen(".cold")) ||
	       memmem(name, len, ".__part.", strlen(".__part."));
}

static int symbols_add(struct starts *starts, const struct elf_image *image, const char *name)
{
	struct reader symbols, names;
	Elf64_Sym symbol;
	int r = 0;

	if (!elf_image_symbols(image, name, &symbols, &names))
		return 0;
	while (!r && elf_image_symbol_next(&symbols, &symbol))
		if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF &&
		    is_unknown(starts, symbol.st_value))
			r = starts_add(starts, symbol.st_value, symbol.st_size,
				       is_part(&names, symbol.st_name) ? START_BOUNDARY
								       : START_FUNCTION);
	return r;
}

/*
 * mov $15, %rax; syscall: all that a function is which handlers of signals return to, by which
 * debuggers know it as well. What is called there is the byte before it (unwind_code()).
 */
static int signals_add(struct starts *starts)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	const uint8_t *at = starts->text.at;
	int r = 0;

	while (!r && (at = memmem(at, (size_t)(starts->text.end - at), code, sizeof(code)))) {
		r = starts_add(starts, starts->begin + (uint64_t)(at - starts->text.at) - 1,
			       sizeof(code) + 1, START_SIGNAL);
		at += sizeof(code);
	}
	return r;
}

/* Pointers that are moved with the program when it is loaded: among them those to functions. */
static int relocations_add(struct starts *starts, struct reader relocations)
{
	Elf64_Rela relocation;
	int r = 0;

	while (!r && reader_left(&relocations) >= sizeof(relocation)) {
		memcpy(&relocation, relocations.at, sizeof(relocation));
		relocations.at += sizeof(relocation);
		if (ELF64_R_TYPE(relocation.r_info) == R_X86_64_RELATIVE)
			r = starts_add_maybe(starts, (uint64_t)relocation.r_addend);
	}
	return r;
}

static int pointers_add(struct starts *starts, const struct elf_image *image)
{
	struct reader relocations;
	GElf_Shdr section;
	int r = 0, tables = 0;

	for (size_t i = 1; !r && i < image->sections && tables < TABLES_MAX; i++)
		if (elf_image_section(image, i, &section) && section.sh_type == SHT_RELA &&
		    elf_image_bytes(image, &section, &relocations)) {
			tables++;
			r = relocations_add(starts, relocations);
		}
	return r;
}

static int start_compare(const void *a, const void *b)
{
	const struct start *left = a, *right = b;

	if (left->begin != right->begin)
		return left->begin < right->begin ? -1 : 1;
	return left->kind < right->kind ? -1 : left->kind > right->kind;
}

/* Of equal ones the first kind is kept. What is in one of START_SIGNAL has another frame. */
void starts_order(struct starts *starts)
{
	size_t kept = 0;

	if (starts->len)
		qsort(starts->all, starts->len, sizeof(*starts->all), start_compare);
	for (size_t i = 0; i < starts->len; i++)
		if (!kept || (starts->all[i].begin != starts->all[kept - 1].begin &&
			      (starts->all[kept - 1].kind != START_SIGNAL ||
			       starts->all[i].begin >= starts->all[kept - 1].end)))
			starts->all[kept++] = starts->all[i];
	starts->len = starts->ordered = kept;
}

/* The last one that begins at or before @address; NULL: there is none. */
const struct start *starts_find(const struct starts *starts, uint64_t address)
{
	size_t behind = array_above(starts->all, starts->ordered, sizeof(*starts->all), address);

	return behind ? &starts->all[behind - 1] : NULL;
}

/* --- where they end -------------------------------------------------------------------------- */

/* The first address behind @address at which something else begins. */
uint64_t starts_next(const struct starts *starts, uint64_t address)
{
	const struct frames *frames = starts->frames;
	size_t known = frames_behind(frames, address);
	size_t start = array_above(starts->all, starts->ordered, sizeof(*starts->all), address);
	uint64_t end = starts->end;

	if (known < frames->functions_len && frames->functions[known].begin < end)
		end = frames->functions[known].begin;
	if (start < starts->ordered && starts->all[start].begin < end)
		end = starts->all[start].begin;
	return end;
}

uint64_t starts_end(const struct starts *starts, const struct start *start)
{
	uint64_t end = starts_next(starts, start->begin);

	return start->end && start->end < end ? start->end : end;
}

/* --- all of it ------------------------------------------------------------------------------- */

static bool text_find(struct starts *starts, const struct elf_image *image)
{
	GElf_Ehdr header;
	GElf_Shdr text;

	if (image->machine != EM_X86_64 || !gelf_getehdr(image->elf, &header) ||
	    !elf_image_find(image, ".text", &text) || !elf_image_bytes(image, &text, &starts->text))
		return false;
	starts->begin = text.sh_addr;
	starts->entry = header.e_entry;
	return !__builtin_add_overflow(text.sh_addr, reader_left(&starts->text), &starts->end);
}

static int bits_make(struct starts *starts)
{
	const size_t bytes = (starts->end - starts->begin) / 8 + 1;

	starts->seen = calloc(1, bytes);
	starts->named = calloc(1, bytes);
	return starts->seen && starts->named ? 0 : -ENOMEM;
}

/* Those that the file names. 0 or -ENOMEM. */
static int all_read(struct starts *starts, const struct elf_image *image)
{
	int r = signals_add(starts);

	if (!r)
		r = symbols_add(starts, image, ".symtab");
	if (!r)
		r = symbols_add(starts, image, ".dynsym");
	if (!r)
		r = starts_add(starts, starts->entry, 0, START_FUNCTION);
	if (!r)
		r = pointers_add(starts, image);
	starts_order(starts);
	return r;
}

int starts_open(struct starts *starts, const struct elf_image *image, const struct frames *frames)
{
	int r;

	*starts = (struct starts){ .frames = frames };
	if (!text_find(starts, image))
		return 0;
	r = bits_make(starts);
	return r ? r : all_read(starts, image);
}

bool starts_know(const struct starts *starts, uint64_t address)
{
	return is_unknown(starts, address) && has_bit(starts, starts->seen, address);
}

void starts_close(struct starts *starts)
{
	free(starts->all);
	free(starts->maybe);
	free(starts->seen);
	free(starts->named);
}
