/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle PATH...: compares the unwind table of each ELF file there and below, row by row, with what
 * libdw says about the same addresses, which reads frame information by code of its own. Passed
 * over are files of other kinds, and those in which libdw finds no frame information either.
 *
 * Prints each difference, and the totals. Exit 1: there was one, or nothing was compared.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/image.h"
#include "unwind/table.h"
#include "walk.h"

#define SHOWN_MAX 5 /* differences of one file */
#define GAP 16 /* up to the next function, in which a table need not say that there is none */

struct machine {
	int sp, fp, ra;
};

struct file {
	const char *path;
	struct machine machine;
	Dwarf_CFI *cfi;
	struct unwind_table table;
	struct unwind_table framed; /* of .eh_frame alone */
	size_t rows, differences, refused;
};

static size_t files, rows, functions, unsaid, failed, refused;

/* --- what libdw says, as a rule -------------------------------------------------------------- */

static bool is_small(Dwarf_Sword number)
{
	return number == (int32_t)number;
}

static const struct unwind_rule none;

/* The base of a CFA, and its offset. */
static bool base_of(const struct machine *machine, const Dwarf_Op *op, struct unwind_rule *rule)
{
	Dwarf_Word number = op->number;
	Dwarf_Sword offset = (Dwarf_Sword)(op->atom == DW_OP_bregx ? op->number2 : op->number);

	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		number = op->atom - DW_OP_breg0;
	else if (op->atom != DW_OP_bregx)
		return false;
	rule->base = number == (Dwarf_Word)machine->fp ? UNWIND_FP : UNWIND_SP;
	rule->cfa_offset = (int32_t)offset;
	return is_small(offset) &&
	       (number == (Dwarf_Word)machine->fp || number == (Dwarf_Word)machine->sp);
}

static bool is_plt(const Dwarf_Op *ops, size_t len, struct unwind_rule *rule)
{
	static const uint8_t atoms[] = { DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
					 DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,   DW_OP_plus };

	if (len != sizeof(atoms) || ops[0].number != 8 || ops[1].number)
		return false;
	for (size_t i = 0; i < len; i++)
		if (atoms[i] && ops[i].atom != atoms[i])
			return false;
	rule->kind = UNWIND_PLT;
	rule->cfa_offset = 8;
	rule->cfa_add = ops[4].atom - DW_OP_lit0;
	return true;
}

static bool cfa_of(const struct file *file, Dwarf_Frame *frame, struct unwind_rule *rule)
{
	Dwarf_Op *ops;
	size_t len;

	if (dwarf_frame_cfa(frame, &ops, &len))
		return false;
	if (is_plt(ops, len, rule))
		return true;
	if (!base_of(&file->machine, &ops[0], rule))
		return false;
	rule->kind = len > 1 ? UNWIND_CFA_AT : UNWIND_CFA;
	if (len > 1 && ops[1].atom != DW_OP_deref)
		return false;
	if (len > 2)
		rule->cfa_add = (int32_t)ops[2].number;
	return len < 3 || (len == 3 && ops[2].atom == DW_OP_plus_uconst &&
			   is_small((Dwarf_Sword)ops[2].number));
}

enum place { KEPT, LOST, AT_CFA, AT_FP, ELSEWHERE };

static enum place place_of(const struct file *file, Dwarf_Frame *frame, int number, int32_t *offset)
{
	Dwarf_Op memory[3], *ops;
	size_t len;

	*offset = 0;
	if (dwarf_frame_register(frame, number, memory, &ops, &len))
		return ELSEWHERE;
	if (!len)
		return ops ? LOST : KEPT;
	if (ops[0].atom != DW_OP_call_frame_cfa || len > 2)
		return ELSEWHERE;
	if (len == 1)
		return AT_CFA;
	*offset = (int32_t)ops[1].number;
	if (!is_small((Dwarf_Sword)ops[1].number))
		return ELSEWHERE;
	if (ops[1].atom == DW_OP_breg0 + file->machine.fp && number == file->machine.fp)
		return AT_FP;
	return ops[1].atom == DW_OP_plus_uconst ? AT_CFA : ELSEWHERE;
}

/* The stack pointer is in the kernel's struct ucontext on x86-64, at which the handler returned. */
static bool is_kernel_signal(const struct file *file, Dwarf_Frame *frame)
{
	struct unwind_rule rule = none;

	return file->machine.ra == 16 && cfa_of(file, frame, &rule) && rule.kind == UNWIND_CFA_AT &&
	       rule.base == UNWIND_SP && rule.cfa_offset == 160 && !rule.cfa_add;
}

static struct unwind_rule rule_of(const struct file *file, Dwarf_Frame *frame)
{
	struct unwind_rule rule = none;
	Dwarf_Addr begin, end;
	enum place fp, ra;
	bool signal;

	/* Some functions return elsewhere than others: _mcount of arm64 to x15. */
	if (dwarf_frame_info(frame, &begin, &end, &signal) != file->machine.ra)
		return none;
	if (signal)
		return is_kernel_signal(file, frame) ? (struct unwind_rule){ .kind = UNWIND_SIGNAL }
						     : none;
	ra = place_of(file, frame, file->machine.ra, &rule.ra_offset);
	if (ra == LOST)
		return (struct unwind_rule){ .kind = UNWIND_END };
	fp = place_of(file, frame, file->machine.fp, &rule.fp_offset);
	if (!cfa_of(file, frame, &rule) || (ra != KEPT && ra != AT_CFA))
		return none;
	rule.ra_place = ra == KEPT ? UNWIND_KEPT : UNWIND_AT_CFA;
	rule.fp_place = fp == KEPT     ? UNWIND_KEPT
			: fp == AT_CFA ? UNWIND_AT_CFA
			: fp == AT_FP  ? UNWIND_AT_FP
				       : UNWIND_LOST;
	if (rule.fp_place == UNWIND_LOST)
		rule.fp_offset = 0;
	return rule;
}

/* --- comparing ------------------------------------------------------------------------------- */

static void show(const char *what, const struct unwind_rule *rule)
{
	printf("  %s: kind %u base %u %+d %+d, fp %u %+d, ra %u %+d\n", what, rule->kind,
	       rule->base, rule->cfa_offset, rule->cfa_add, rule->fp_place, rule->fp_offset,
	       rule->ra_place, rule->ra_offset);
}

static void differ(struct file *file, Dwarf_Addr at, const struct unwind_rule *wanted,
		   const struct unwind_rule *found)
{
	if (file->differences++ >= SHOWN_MAX)
		return;
	printf("%s: %#lx\n", file->path, at);
	show("libdw", wanted);
	show("table", found);
}

/* The first row that begins at @address or behind it. */
static size_t row_at(const struct unwind_table *table, uint64_t address)
{
	size_t from = 0, to = table->rows_len;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (table->rows[middle].address < address)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* All that the table says of [begin, end), where libdw knows one rule. */
static void compare_range(struct file *file, Dwarf_Addr begin, Dwarf_Addr end,
			  const struct unwind_rule *wanted)
{
	const struct unwind_rule *found = unwind_table_find(&file->table, begin);

	file->rows++;
	unsaid += wanted->kind == UNWIND_NONE;
	if (memcmp(wanted, found, sizeof(*found)) != 0)
		differ(file, begin, wanted, found);
	for (size_t i = row_at(&file->table, begin + 1);
	     i < file->table.rows_len && file->table.rows[i].address < end; i++) {
		found = &file->table.rules[file->table.rows[i].rule];
		differ(file, file->table.rows[i].address, wanted, found);
	}
}

static void compare_function(struct file *file, Dwarf_Addr begin, Dwarf_Addr end)
{
	while (begin < end) {
		struct unwind_rule wanted;
		Dwarf_Addr from, to;
		Dwarf_Frame *frame;
		Dwarf_Op *ops;
		bool signal;
		size_t len;

		if (dwarf_cfi_addrframe(file->cfi, begin, &frame)) {
			file->refused++;
			return;
		}
		dwarf_frame_info(frame, &from, &to, &signal);
		wanted = rule_of(file, frame);
		/*
		 * An offset behind an expression is an error to libdw, and common in assembler: gdb
		 * and libgcc take it as the table does.
		 */
		if (dwarf_frame_cfa(frame, &ops, &len))
			file->refused++;
		else
			compare_range(file, begin, to < end ? to : end, &wanted);
		free(frame);
		begin = to;
	}
}

struct range {
	uint64_t begin, end;
};

static int range_compare(const void *a, const void *b)
{
	const struct range *left = a, *right = b;

	return left->begin < right->begin ? -1 : left->begin > right->begin;
}

/* The table says nothing about what is in no function of libdw's. */
static void compare_gaps(struct file *file, const struct range *ranges, size_t len)
{
	for (size_t i = 0; i < file->framed.rows_len; i++) {
		const struct unwind_row *row = &file->framed.rows[i];
		size_t from = 0, to = len;

		while (from < to) {
			size_t middle = (from + to) / 2;

			if (ranges[middle].begin <= row->address)
				from = middle + 1;
			else
				to = middle;
		}
		if (row->rule && (!from || ranges[from - 1].end + GAP <= row->address))
			differ(file, row->address, &none, &file->framed.rules[row->rule]);
	}
}

/* The encoding of pointers in the functions of a CIE (LSB 5.0, 10.6.1.1.1); 0 is absolute. */
static uint8_t encoding_of(const Dwarf_CIE *cie)
{
	const uint8_t *data = cie->augmentation_data;

	for (const char *letter = cie->augmentation; data && *letter; letter++) {
		if (*letter == 'R')
			return *data;
		if (*letter == 'L')
			data++;
		if (*letter == 'P')
			data += (*data & 7) == 3 ? 5 : (*data & 7) == 2 ? 3 : 9;
	}
	return 0;
}

/* A pointer at *@at, 4 bytes or 8, relative to its @address or absolute. */
static uint64_t pointer_read(const uint8_t **at, uint8_t encoding, uint64_t address)
{
	size_t bytes = (encoding & 7) == 3 ? 4 : 8;
	uint64_t value = 0;

	memcpy(&value, *at, bytes);
	*at += bytes;
	if (bytes == 4 && encoding & 8)
		value = (uint64_t)(int32_t)value;
	return encoding & 0x10 ? value + address : value;
}

/* The functions of .eh_frame as libdw lists them. */
static size_t ranges_read(Elf *elf, Elf_Data *data, uint64_t address, struct range **out)
{
	const uint8_t *ident = (const uint8_t *)elf_getident(elf, NULL);
	struct range *ranges = NULL;
	size_t len = 0, size = 0;
	Dwarf_CFI_Entry entry;
	Dwarf_Off at = 0, next;
	int r;

	while ((r = dwarf_next_cfi(ident, data, true, at, &next, &entry)) <= 0 && next > at) {
		if (!r && !dwarf_cfi_cie_p(&entry)) {
			const uint8_t *pointer = entry.fde.start;
			Dwarf_CFI_Entry common;
			Dwarf_Off end;
			uint8_t encoding;

			dwarf_next_cfi(ident, data, true, entry.fde.CIE_pointer, &end, &common);
			encoding = encoding_of(&common.cie);
			if (len == size) {
				size = size ? 2 * size : 1024;
				ranges = realloc(ranges, size * sizeof(*ranges));
			}
			ranges[len].begin = pointer_read(
				&pointer, encoding,
				address + (uint64_t)(pointer - (uint8_t *)data->d_buf));
			ranges[len].end = ranges[len].begin +
					  pointer_read(&pointer, encoding & 7, 0);
			len += ranges[len].begin && ranges[len].end > ranges[len].begin;
		}
		at = next;
	}
	qsort(ranges, len, sizeof(*ranges), range_compare);
	*out = ranges;
	return len;
}

/* The bytes of a section; NULL: there is none. */
static Elf_Data *section_of(Elf *elf, const char *wanted, uint64_t *address)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		gelf_getshdr(section, &header);
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strcmp(name, wanted) != 0 || header.sh_type == SHT_NOBITS)
			continue;
		*address = header.sh_addr;
		return elf_rawdata(section, NULL);
	}
	return NULL;
}

static void compare_elf(struct file *file, Elf *elf, Elf_Data *data, uint64_t address)
{
	struct range *ranges;
	size_t len = ranges_read(elf, data, address, &ranges);

	if (len && !file->table.rows_len) {
		printf("%s: has no table\n", file->path);
		file->differences++;
	}
	len = file->table.rows_len ? len : 0;
	for (size_t i = 0; i < len; i++)
		if (!i || ranges[i].begin >= ranges[i - 1].end)
			compare_function(file, ranges[i].begin, ranges[i].end);
	/* Of those of Go libdw does not know. */
	if (!section_of(elf, ".gopclntab", &address))
		compare_gaps(file, ranges, len);
	free(ranges);
	functions += len;
}

/* What the table says without what it knows by other means. */
static void framed_make(struct file *file, const void *image, size_t bytes)
{
	struct frames_section section;
	struct elf_image elf;

	if (elf_image_open(image, bytes, &elf))
		return;
	if (!image_frames(&elf, &section))
		unwind_table_from(&section, &file->framed);
	elf_image_close(&elf);
}

static void compare_file(struct file *file, int fd, const void *image, size_t bytes)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	uint64_t address;
	GElf_Ehdr header;
	Elf_Data *data;
	int r;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header) ||
	    gelf_getclass(elf) != ELFCLASS64 ||
	    (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64) ||
	    (header.e_type != ET_DYN && header.e_type != ET_EXEC))
		goto end;
	data = section_of(elf, ".eh_frame", &address);
	file->cfi = dwarf_getcfi_elf(elf);
	if (!data || data->d_size < 16 || !file->cfi)
		goto end;
	file->machine = header.e_machine == EM_X86_64 ? (struct machine){ 7, 6, 16 }
						      : (struct machine){ 31, 29, 30 };
	r = unwind_table_make(image, bytes, &file->table);
	if (r && r != -ENODATA) {
		printf("%s: %s\n", file->path, strerror(-r));
		file->differences++;
	}
	framed_make(file, image, bytes);
	compare_elf(file, elf, data, address);
	unwind_table_free(&file->table);
	unwind_table_free(&file->framed);
	files += !r;
	rows += file->rows;
	refused += file->refused;
	if (file->differences)
		printf("%s: %zu differences in %zu rows\n", file->path, file->differences,
		       file->rows);
	failed += file->differences != 0;
end:
	if (file->cfi)
		dwarf_cfi_end(file->cfi);
	elf_end(elf);
}

static void walk_file(const char *path, int fd, const void *image, size_t bytes)
{
	struct file file = { .path = path };

	compare_file(&file, fd, image, bytes);
}

int main(int argc, char **argv)
{
	(void)argc;
	elf_version(EV_CURRENT);
	walk_all(argv);
	printf("%zu rows of %zu functions are as libdw has them, %zu of them of no rule; libdw did "
	       "not understand %zu others\n",
	       rows, functions, unsaid, refused);
	printf("unwind: %zu passed, %zu failed\n", files - failed, failed);
	return failed || !files || refused > rows / 1000;
}
