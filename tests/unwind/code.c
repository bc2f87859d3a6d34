/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code PATH...: what instructions tell of the functions of each program and library of x86-64 there
 * and below (unwind/bare.h), beside what frame information tells of the same ones. It is read as if
 * there were no frame information, so all that differs is an error of one of the two.
 *
 * Prints what differs, and the totals. Exit 1: more does than FAULTS_MAX, more is not understood
 * than UNKNOWN_MAX, not wholly or not compared, or nothing was compared.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "unwind/bare.h"
#include "unwind/image.h"
#include "unwind/table.h"
#include "walk.h"

#define SHOWN_MAX 5 /* differences of one file */
#define FAULTS_MAX \
	2000 /* one of so many bytes: the frame information of glibc's assembler has some */
#define UNKNOWN_MAX 5 /* one of so many */

struct file {
	const char *path;
	struct frames framed; /* functions by frame information */
	struct unwind_table table; /* and what it tells of them */
	struct frames told; /* functions by symbols and instructions */
	uint64_t entry; /* where the kernel begins it */
	size_t shown;
};

static size_t files;
static size_t functions, found, parts; /* that there are; of those; in the midst of one */
static size_t bytes, unknown, faults, others, lost; /* of functions that were found */

static void show(const char *what, const struct unwind_rule *rule)
{
	printf("  %s: kind %u base %u %+d %+d, fp %u %+d, ra %u %+d\n", what, rule->kind,
	       rule->base, rule->cfa_offset, rule->cfa_add, rule->fp_place, rule->fp_offset,
	       rule->ra_place, rule->ra_offset);
}

/*
 * By the same register the CFA has to be the same. By another one it may be all the same, as gcc
 * takes the frame pointer wherever there is one; what is only known here cannot compare it.
 */
static bool is_same_frame(const struct unwind_rule *told, const struct unwind_rule *wanted)
{
	return told->kind == wanted->kind &&
	       (told->base != wanted->base || told->cfa_offset == wanted->cfa_offset);
}

/* Where gcc has read it again it does not always say so: then the place is below the stack. */
static bool is_same_pointer(const struct unwind_rule *told, const struct unwind_rule *wanted)
{
	if (told->fp_place == UNWIND_LOST || told->base != wanted->base)
		return true;
	if (told->fp_place == UNWIND_KEPT && wanted->fp_place == UNWIND_AT_CFA)
		return -wanted->fp_offset > told->cfa_offset;
	return told->fp_place == wanted->fp_place && told->fp_offset == wanted->fp_offset;
}

static void compare_rule(struct file *file, uint64_t at, uint64_t len,
			 const struct unwind_rule *told)
{
	const struct unwind_rule *wanted = unwind_table_find(&file->table, at);

	if (wanted->kind != UNWIND_CFA)
		return;
	bytes += len;
	if (told->kind == UNWIND_NONE) {
		unknown += len;
		return;
	}
	lost += told->fp_place == UNWIND_LOST && wanted->fp_place != UNWIND_LOST ? len : 0;
	others += told->base != wanted->base ? len : 0;
	if (is_same_frame(told, wanted) && is_same_pointer(told, wanted))
		return;
	faults += len;
	if (file->shown++ >= SHOWN_MAX)
		return;
	printf("%s: %#lx\n", file->path, at);
	show("frame", wanted);
	show("code ", told);
}

/* Of [begin, end), for which @told holds: each part of it of which frame information tells one
 * rule. */
static void compare_range(struct file *file, uint64_t begin, uint64_t end,
			  const struct unwind_rule *told)
{
	const struct unwind_table *table = &file->table;

	while (begin < end) {
		size_t row = array_above(table->rows, table->rows_len, sizeof(*table->rows), begin);
		uint64_t next = row < table->rows_len && table->rows[row].address < end
					? table->rows[row].address
					: end;

		compare_rule(file, begin, next - begin, told);
		begin = next;
	}
}

static void compare_function(struct file *file, const struct frames_function *function)
{
	const struct frames_function *framed = frames_find(&file->framed, function->begin);
	const struct frames_rule *rules = (const void *)function->code.at;
	const size_t len = reader_left(&function->code) / sizeof(*rules);

	if (!framed)
		return;
	/* What the kernel begins has no caller, whatever is written of it. */
	if (function->begin == file->entry)
		return;
	/* Assembler is jumped into where nothing has been pushed yet: then it is as good as one. */
	found += framed->begin == function->begin;
	parts += framed->begin != function->begin;
	for (size_t i = 0; i < len; i++)
		compare_range(file, rules[i].address,
			      i + 1 < len ? rules[i + 1].address : function->end, &rules[i].rule);
}

static void compare_all(struct file *file)
{
	for (size_t i = 0; i < file->told.functions_len; i++) {
		const struct frames_function *function = &file->told.functions[i];

		if (file->told.commons[function->common].told == FRAMES_RULES)
			compare_function(file, function);
	}
	functions += file->framed.functions_len;
	files++;
}

static void compare_elf(struct file *file, const struct elf_image *image)
{
	struct frames_section section;
	GElf_Ehdr header;

	if (image->machine != EM_X86_64 || !gelf_getehdr(image->elf, &header) ||
	    image_frames(image, &section) || frames_read(&section, &file->framed) ||
	    unwind_table_from(&section, &file->table))
		return;
	file->entry = header.e_entry;
	if (bare_frames_read(image, section.machine, &file->told))
		printf("%s: %s\n", file->path, "no memory");
	else
		compare_all(file);
}

static void walk_file(const char *path, int fd, const void *image_bytes, size_t len)
{
	struct file file = { .path = path };
	struct elf_image image;

	(void)fd;
	if (elf_image_open(image_bytes, len, &image))
		return;
	compare_elf(&file, &image);
	elf_image_close(&image);
	frames_free(&file.framed);
	frames_free(&file.told);
	unwind_table_free(&file.table);
}

int main(int argc, char **argv)
{
	(void)argc;
	elf_version(EV_CURRENT);
	walk_all(argv);
	printf("%zu of %zu functions of %zu files were found without frame information, and %zu "
	       "parts of such\n",
	       found, functions, files, parts);
	printf("of their %zu bytes %zu are not understood, %zu otherwise, %zu by another "
	       "register\n",
	       bytes, unknown, faults, others);
	printf("of %zu the frame pointer is not\n", lost);
	return !bytes || faults > bytes / FAULTS_MAX ||
	       unknown + others + lost > bytes / UNKNOWN_MAX;
}
