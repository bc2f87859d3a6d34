/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/pclntab.h"

#include <errno.h>
#include <string.h>

#define MAGIC_18 0xfffffff0U /* Go 1.18 */
#define MAGIC_20 0xfffffff1U /* Go 1.20: functions have the line they begin at as well */
#define WORD 8
#define FLAG_AT_18 37
#define FLAG_AT_20 41
#define MODULE_TEXT_AT (22 * WORD) /* struct moduledata, src/runtime/symtab.go */
#define CANDIDATES_MAX 8 /* that are looked at */
#define NUMBER_BYTES_MAX 5 /* of 32 bits */
#define ENTRY_BYTES 8 /* of the list of functions: begin, offset; behind the last only the end */

/* --- what is in it --------------------------------------------------------------------------- */

/* What begins at @offset of @all. */
static struct reader part_at(const struct reader *all, uint64_t offset)
{
	struct reader part = *all;

	if (offset > reader_left(all))
		offset = reader_left(all);
	part.at += offset;
	return part;
}

/* Whether addresses of @table are code. */
static bool text_is_code(const struct elf_image *image, const struct pclntab *table)
{
	GElf_Shdr section;

	for (size_t i = 1; i < image->sections; i++)
		if (elf_image_section(image, i, &section) && section.sh_flags & SHF_EXECINSTR &&
		    table->text >= section.sh_addr &&
		    table->text - section.sh_addr < section.sh_size)
			return true;
	return false;
}

/* Since Go 1.26 the table does not say it: runtime.moduledata does. */
static uint64_t text_of_module(const struct elf_image *image)
{
	struct reader module, text;
	GElf_Shdr header;

	if (!elf_image_find(image, ".go.module", &header) ||
	    !elf_image_bytes(image, &header, &module))
		return 0;
	text = part_at(&module, MODULE_TEXT_AT);
	return reader_number(&text, WORD);
}

/* magic, 0, 0, quantum, bytes of a word; then words */
static int table_read(const struct elf_image *image, struct reader all, struct pclntab *table)
{
	struct reader header = all;
	uint64_t names, steps, functions;
	uint64_t magic = reader_number(&header, 4), zero = reader_number(&header, 2), word;

	*table = (struct pclntab){ .quantum = (uint32_t)reader_number(&header, 1) };
	word = reader_number(&header, 1);
	table->flag_at = magic == MAGIC_20 ? FLAG_AT_20 : FLAG_AT_18;
	table->len = reader_number(&header, WORD);
	reader_number(&header, WORD); /* files */
	table->text = reader_number(&header, WORD);
	names = reader_number(&header, WORD);
	reader_number(&header, WORD); /* compilation units */
	reader_number(&header, WORD); /* names of files */
	steps = reader_number(&header, WORD);
	functions = reader_number(&header, WORD);
	if (header.bad || (magic != MAGIC_18 && magic != MAGIC_20) || zero || word != WORD ||
	    !table->quantum)
		return -ENODATA;
	if (!table->text)
		table->text = text_of_module(image);
	table->names = part_at(&all, names);
	table->steps = part_at(&all, steps);
	table->functions = part_at(&all, functions);
	if (table->len > reader_left(&table->functions) / ENTRY_BYTES ||
	    !text_is_code(image, table))
		return -ENODATA;
	return 0;
}

bool go_is(const struct elf_image *image)
{
	GElf_Shdr header;

	return elf_image_named(image, ".go.buildinfo", &header) ||
	       elf_image_named(image, ".gopclntab", &header);
}

/* --- where it is ----------------------------------------------------------------------------- */

static bool header_may_be(const uint8_t *bytes)
{
	static const uint8_t magic[] = { 0xff, 0xff, 0xff, 0, 0 };

	return (bytes[0] == (MAGIC_18 & 0xff) || bytes[0] == (MAGIC_20 & 0xff)) &&
	       memcmp(bytes + 1, magic, sizeof(magic)) == 0 && bytes[7] == WORD;
}

/* Another linker merges its section with others where the program can run anywhere. */
static int merged_find(const struct elf_image *image, struct pclntab *table)
{
	unsigned int candidates = CANDIDATES_MAX;
	struct reader all;
	GElf_Shdr header;

	if (!elf_image_find(image, ".data.rel.ro", &header) ||
	    !elf_image_bytes(image, &header, &all))
		return -ENODATA;
	for (; reader_left(&all) >= WORD && candidates; all.at += WORD) {
		if (!header_may_be(all.at))
			continue;
		if (!table_read(image, all, table))
			return 0;
		candidates--;
	}
	return -ENODATA;
}

int pclntab_find(const struct elf_image *image, struct pclntab *table)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	struct reader all;
	GElf_Shdr header;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (elf_image_find(image, names[i], &header))
			return elf_image_bytes(image, &header, &all) ? table_read(image, all, table)
								     : -ENODATA;
	return go_is(image) ? merged_find(image, table) : -ENODATA;
}

/* --- functions ------------------------------------------------------------------------------- */

static uint32_t number_at(const struct reader *bytes, uint64_t offset)
{
	struct reader number = part_at(bytes, offset);

	return (uint32_t)reader_number(&number, 4);
}

static uint64_t begin_of(const struct pclntab *table, size_t index)
{
	return table->text + number_at(&table->functions, index * ENTRY_BYTES);
}

bool pclntab_function(const struct pclntab *table, size_t index, struct pclntab_function *function)
{
	struct reader entry;
	uint32_t steps;

	if (index >= table->len)
		return false;
	entry = part_at(&table->functions, number_at(&table->functions, index * ENTRY_BYTES + 4));
	if (reader_left(&entry) <= table->flag_at)
		return false;
	*function = (struct pclntab_function){
		.begin = begin_of(table, index),
		.end = begin_of(table, index + 1),
		.name = part_at(&table->names, number_at(&entry, 4)),
		.flags = entry.at[table->flag_at],
	};
	steps = number_at(&entry, 16);
	if (steps)
		function->steps = part_at(&table->steps, steps);
	return function->begin && function->begin < function->end;
}

bool pclntab_search(const struct pclntab *table, uint64_t address,
		    struct pclntab_function *function)
{
	size_t from = 0, to = table->len;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (begin_of(table, middle) > address)
			to = middle;
		else
			from = middle + 1;
	}
	return from && pclntab_function(table, from - 1, function) && address >= function->begin &&
	       address < function->end;
}

/* --- steps ----------------------------------------------------------------------------------- */

void pclntab_begin(struct reader steps, uint64_t begin, uint32_t quantum, struct pclntab_step *step)
{
	*step = (struct pclntab_step){
		.code = steps,
		.next = begin,
		.bytes = -1,
		.quantum = quantum,
	};
}

/* A number of 32 bits; no more is read than it may have. */
static uint64_t number_read(struct reader *code)
{
	struct reader number = *code;
	uint64_t value;

	if (reader_left(&number) > NUMBER_BYTES_MAX)
		number.end = number.at + NUMBER_BYTES_MAX;
	value = reader_uleb(&number);
	code->at = number.at;
	code->bad |= number.bad || value > UINT32_MAX;
	return value;
}

/* Pairs of what is added to the value, with its sign in the lowest bit, and to the address. */
int pclntab_next(struct pclntab_step *step)
{
	uint64_t change = number_read(&step->code), quanta;

	if (!change && step->begun)
		return step->code.bad ? -EINVAL : 0;
	quanta = number_read(&step->code);
	step->begin = step->next;
	if (step->code.bad || !quanta ||
	    __builtin_add_overflow(step->begin, quanta * step->quantum, &step->next))
		return -EINVAL;
	step->begun = true;
	step->bytes += change & 1 ? -(int64_t)(change >> 1) - 1 : (int64_t)(change >> 1);
	return 1;
}
