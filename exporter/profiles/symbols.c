/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

struct search {
	const struct elf_image *image;
	const uint64_t *addresses;
	size_t len;
	/*
	 * Symbols that say how long they are. A tree, as a hostile file's may all hold all
	 * addresses: node n is of the addresses of nodes 2n and 2n + 1, and nodes from @len on are
	 * of one each. A symbol is in the fewest nodes that make up its addresses.
	 */
	struct symbol *holding;
	/* The last that begins at or before an address, and behind the address before that one. */
	struct symbol *before;
};

struct table {
	struct reader symbols, names;
	bool first; /* it is .symtab */
};

/* --- which is taken -------------------------------------------------------------------------- */

static bool is_better(const struct symbol *one, const struct symbol *other)
{
	return one->begin != other->begin ? one->begin > other->begin : one->rank > other->rank;
}

static void better(struct symbol *best, const struct symbol *symbol)
{
	if (is_better(symbol, best))
		*best = *symbol;
}

/* Never 0. What is compared has no bounds but these: names may be long, and alike. */
static uint64_t rank_of(const struct table *table, uint32_t index, const Elf64_Sym *symbol,
			const struct reader *name)
{
	uint64_t global = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL  ? 1
			  : ELF64_ST_BIND(symbol->st_info) == STB_WEAK ? 2
								       : 3;
	uint64_t plain = 3;

	for (size_t i = 0; plain && i < reader_left(name) && name->at[i] == '_'; i++)
		plain--;
	return global << 36 | plain << 34 | (uint64_t)table->first << 33 | (UINT32_MAX - index);
}

/* --- symbols --------------------------------------------------------------------------------- */

/* Mapping symbols tell code from data (ELF for the Arm 64-bit Architecture, 5.5.4). */
static bool name_read(const struct table *table, const Elf64_Sym *symbol, struct reader *name)
{
	*name = table->names;
	if (symbol->st_name >= reader_left(name))
		return false;
	name->at += symbol->st_name;
	return *name->at && *name->at != '$';
}

/* A symbol without a size is of a section of code, and ends with that. */
static bool unsized_end(const struct search *search, const Elf64_Sym *symbol, uint64_t *end)
{
	GElf_Shdr section;

	return symbol->st_shndx < SHN_LORESERVE &&
	       elf_image_section(search->image, symbol->st_shndx, &section) &&
	       section.sh_flags & SHF_EXECINSTR && symbol->st_value >= section.sh_addr &&
	       !__builtin_add_overflow(section.sh_addr, section.sh_size, end) &&
	       symbol->st_value < *end;
}

static void sized_add(struct search *search, const struct table *table, uint32_t index,
		      const Elf64_Sym *elf, size_t first)
{
	struct symbol symbol = { .begin = elf->st_value, .sized = true };
	size_t from, to;

	/* The rank is 0: it is no answer, but one before it ends here. */
	better(&search->before[first], &symbol);
	if (__builtin_add_overflow(elf->st_value, elf->st_size, &symbol.end))
		return;
	from = first + search->len;
	to = array_first_at(search->addresses, search->len, symbol.end) + search->len;
	if (from >= to || !name_read(table, elf, &symbol.name))
		return;
	symbol.rank = rank_of(table, index, elf, &symbol.name);
	for (; from < to; from /= 2, to /= 2) {
		if (from & 1)
			better(&search->holding[from++], &symbol);
		if (to & 1)
			better(&search->holding[--to], &symbol);
	}
}

static void unsized_add(struct search *search, const struct table *table, uint32_t index,
			const Elf64_Sym *elf, size_t first)
{
	struct symbol symbol = { .begin = elf->st_value };

	if (!unsized_end(search, elf, &symbol.end) || !name_read(table, elf, &symbol.name))
		return;
	symbol.rank = rank_of(table, index, elf, &symbol.name);
	better(&search->before[first], &symbol);
}

static void symbol_add(struct search *search, const struct table *table, uint32_t index,
		       const Elf64_Sym *symbol)
{
	unsigned char type = ELF64_ST_TYPE(symbol->st_info);
	size_t first;

	if (symbol->st_shndx == SHN_UNDEF ||
	    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
		return;
	first = array_first_at(search->addresses, search->len, symbol->st_value);
	if (first == search->len)
		return;
	if (symbol->st_size)
		sized_add(search, table, index, symbol, first);
	else
		unsized_add(search, table, index, symbol, first);
}

/* --- tables ---------------------------------------------------------------------------------- */

/* A file has one table of each type (ELF specification, "Sections"): others are not looked at. */
static bool table_find(const struct search *search, GElf_Word type, struct table *table)
{
	GElf_Shdr header, names;

	for (size_t i = 1; i < search->image->sections; i++)
		if (elf_image_section(search->image, i, &header) && header.sh_type == type)
			return header.sh_entsize == sizeof(Elf64_Sym) &&
			       elf_image_bytes(search->image, &header, &table->symbols) &&
			       elf_image_section(search->image, header.sh_link, &names) &&
			       names.sh_type == SHT_STRTAB &&
			       elf_image_bytes(search->image, &names, &table->names);
	return false;
}

static int table_search(struct search *search, GElf_Word type)
{
	struct table table = { .first = type == SHT_SYMTAB };
	Elf64_Sym symbol;
	size_t len;

	if (!table_find(search, type, &table))
		return 0;
	len = reader_left(&table.symbols);
	if (len > SYMBOLS_BYTES_MAX)
		return -EFBIG;
	for (uint32_t i = 0; i < len / sizeof(symbol); i++) {
		memcpy(&symbol, table.symbols.at + i * sizeof(symbol), sizeof(symbol));
		symbol_add(search, &table, i, &symbol);
	}
	return 0;
}

/* --- answers --------------------------------------------------------------------------------- */

/* The last symbol before an address may begin before the address before that one. */
static void before_spread(struct search *search)
{
	for (size_t i = 1; i < search->len; i++)
		better(&search->before[i], &search->before[i - 1]);
}

static struct symbol answer_of(const struct search *search, size_t i)
{
	const struct symbol *before = &search->before[i];
	struct symbol best = { 0 };

	for (size_t node = i + search->len; node; node /= 2)
		better(&best, &search->holding[node]);
	if (!best.rank && before->rank && search->addresses[i] < before->end)
		best = *before;
	return best;
}

int symbols_find(const struct elf_image *image, const uint64_t *addresses, size_t len,
		 struct symbol *found)
{
	_cleanup_(cleanup_free) struct symbol *nodes = calloc(3 * len + 1, sizeof(*nodes));
	struct search search = { .image = image, .addresses = addresses, .len = len };
	int first, second;

	if (!nodes)
		return -ENOMEM;
	search.holding = nodes;
	search.before = nodes + 2 * len;
	first = table_search(&search, SHT_SYMTAB);
	second = table_search(&search, SHT_DYNSYM);
	before_spread(&search);
	for (size_t i = 0; i < len; i++)
		found[i] = answer_of(&search, i);
	return first ? first : second;
}
