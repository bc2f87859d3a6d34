/* SPDX-License-Identifier: Apache-2.0 */
/* Which symbol has an address, in files that are made up. */
#include "elf_made.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "profiles/symbols.h"

/* What is found for each of up to four addresses: "" for none. */
static void expect(const struct made *made, const uint64_t *addresses, size_t len,
		   const char *const *names)
{
	_cleanup_(elf_image_close) struct elf_image image = { 0 };
	struct symbol found[4];

	cr_assert_eq(elf_image_open(made, sizeof(*made), &image), 0);
	cr_assert_eq(symbols_find(&image, addresses, len, found), 0);
	for (size_t i = 0; i < len; i++) {
		const char *name = found[i].rank ? (const char *)found[i].name.at : "";

		cr_expect_str_eq(name, names[i], "%#lx: %s, not %s", addresses[i], name, names[i]);
		cr_expect(!found[i].rank ||
			  (found[i].begin <= addresses[i] && addresses[i] < found[i].end));
	}
}

#define EXPECT(made, one, two, three, four, ...)                     \
	expect(made, (const uint64_t[]){ one, two, three, four }, 4, \
	       (const char *const[]){ __VA_ARGS__ })

Test(symbols, have_addresses_from_their_first_to_their_last_byte)
{
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), 0x1100, 0x10);
	EXPECT(&made, 0x10ff, 0x1100, 0x110f, 0x1110, "", "f", "f", "");
}

Test(symbols, are_functions_and_labels_of_code)
{
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_SYMTAB, "indirect", GLOBAL(STT_GNU_IFUNC), 0x1100, 0x10);
	made_symbol(&made, MADE_SYMTAB, "object", GLOBAL(STT_OBJECT), 0x1200, 0x10);
	made_symbol(&made, MADE_SYMTAB, "section", LOCAL(STT_SECTION), 0x1200, 0x10);
	made_symbol(&made, MADE_SYMTAB, "file", LOCAL(STT_FILE), 0x1200, 0x10);
	made_symbol(&made, MADE_SYMTAB, "elsewhere", GLOBAL(STT_FUNC), 0x1300, 0x10)->st_shndx =
		SHN_UNDEF;
	made_symbol(&made, MADE_SYMTAB, "label", LOCAL(STT_NOTYPE), 0x1400, 0x10);
	EXPECT(&made, 0x1100, 0x1200, 0x1300, 0x1400, "indirect", "", "", "label");
}

Test(symbols, without_a_size_go_on_to_the_next_one)
{
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_SYMTAB, "entry", GLOBAL(STT_NOTYPE), 0x1100, 0);
	made_symbol(&made, MADE_SYMTAB, "next", LOCAL(STT_NOTYPE), 0x1200, 0);
	made_symbol(&made, MADE_SYMTAB, "sized", GLOBAL(STT_FUNC), 0x1300, 0x10);
	EXPECT(&made, 0x11ff, 0x1200, 0x12ff, 0x1310, "entry", "next", "next", "");
}

Test(symbols, without_a_size_end_with_their_section)
{
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_SYMTAB, "last", GLOBAL(STT_FUNC), 0x1f00, 0);
	made_symbol(&made, MADE_SYMTAB, "end", GLOBAL(STT_NOTYPE), 0x2000, 0)->st_shndx = MADE_DATA;
	made_symbol(&made, MADE_SYMTAB, "behind", GLOBAL(STT_NOTYPE), 0x2000, 0);
	made_symbol(&made, MADE_SYMTAB, "absolute", GLOBAL(STT_NOTYPE), 0x1f80, 0)->st_shndx =
		SHN_ABS;
	EXPECT(&made, 0x1eff, 0x1f00, 0x1fff, 0x2000, "", "last", "last", "");
}

Test(symbols, that_say_their_size_come_before_others)
{
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_SYMTAB, "label", GLOBAL(STT_NOTYPE), 0x1108, 0);
	made_symbol(&made, MADE_SYMTAB, "f", LOCAL(STT_FUNC), 0x1100, 0x10);
	EXPECT(&made, 0x1107, 0x1108, 0x110f, 0x1110, "f", "f", "f", "label");
}

Test(symbols, inside_of_others_come_before_those)
{
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_SYMTAB, "inner", LOCAL(STT_FUNC), 0x1110, 0x10);
	made_symbol(&made, MADE_SYMTAB, "outer", GLOBAL(STT_FUNC), 0x1100, 0x100);
	EXPECT(&made, 0x110f, 0x1110, 0x111f, 0x1120, "outer", "inner", "inner", "outer");
}

Test(symbols, that_say_where_code_is_and_where_data_are_ignored)
{
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_SYMTAB, "entry", GLOBAL(STT_NOTYPE), 0x1100, 0);
	made_symbol(&made, MADE_SYMTAB, "$x", LOCAL(STT_NOTYPE), 0x1100, 0);
	made_symbol(&made, MADE_SYMTAB, "$d.7", LOCAL(STT_NOTYPE), 0x1110, 0);
	made_symbol(&made, MADE_SYMTAB, "", LOCAL(STT_NOTYPE), 0x1118, 0);
	EXPECT(&made, 0x1100, 0x1110, 0x1118, 0x1120, "entry", "entry", "entry", "entry");
}

/* Each of two at an address, in both orders. */
Test(symbols, at_one_address_are_the_most_global_then_the_plainest_then_the_first)
{
	static const struct {
		const char *best, *other;
		unsigned char best_info, other_info;
		bool ordered; /* only the order tells */
	} rows[] = {
		{ "__g", "w", GLOBAL(STT_FUNC), WEAK(STT_FUNC), false },
		{ "__w", "l", WEAK(STT_FUNC), LOCAL(STT_FUNC), false },
		{ "malloc", "__libc_malloc", GLOBAL(STT_FUNC), GLOBAL(STT_FUNC), false },
		{ "_a", "__a", LOCAL(STT_FUNC), LOCAL(STT_FUNC), false },
		{ "b", "a", GLOBAL(STT_FUNC), GLOBAL(STT_FUNC), true },
	};
	struct made made;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		for (uint64_t bytes = 0; bytes <= 0x10; bytes += 0x10) {
			const char *best = rows[i].best;

			made_init(&made);
			made_symbol(&made, MADE_SYMTAB, best, rows[i].best_info, 0x1100, bytes);
			made_symbol(&made, MADE_SYMTAB, rows[i].other, rows[i].other_info, 0x1100,
				    bytes);
			EXPECT(&made, 0x1100, 0x1100, 0x1101, 0x110f, best, best, best, best);
			if (rows[i].ordered)
				continue;
			made_init(&made);
			made_symbol(&made, MADE_SYMTAB, rows[i].other, rows[i].other_info, 0x1100,
				    bytes);
			made_symbol(&made, MADE_SYMTAB, best, rows[i].best_info, 0x1100, bytes);
			EXPECT(&made, 0x1100, 0x1100, 0x1101, 0x110f, best, best, best, best);
		}
	}
}

Test(symbols, are_of_both_tables)
{
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_DYNSYM, "exported", GLOBAL(STT_FUNC), 0x1100, 0x10);
	made_symbol(&made, MADE_DYNSYM, "twice_dynamic", GLOBAL(STT_FUNC), 0x1200, 0x10);
	made_symbol(&made, MADE_SYMTAB, "local", LOCAL(STT_FUNC), 0x1300, 0x10);
	made_symbol(&made, MADE_SYMTAB, "skipped", LOCAL(STT_FUNC), 0x1380, 0x10);
	made_symbol(&made, MADE_SYMTAB, "twice", GLOBAL(STT_FUNC), 0x1200, 0x10);
	EXPECT(&made, 0x1100, 0x1200, 0x1300, 0x1400, "exported", "twice", "local", "");
}

Test(symbols, of_tables_that_lie_are_none)
{
	struct made made, kept;
	Elf64_Shdr *table = &made.sections[MADE_SYMTAB], *names = &made.sections[MADE_STRTAB];

	made_init(&kept);
	made_symbol(&kept, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), 0x1100, 0x10);
	made = kept;
	table->sh_entsize = 23;
	EXPECT(&made, 0x1100, 0x1100, 0x1100, 0x1100, "", "", "", "");
	made = kept;
	table->sh_link = MADE_SECTIONS;
	EXPECT(&made, 0x1100, 0x1100, 0x1100, 0x1100, "", "", "", "");
	made = kept;
	table->sh_link = MADE_TEXT;
	EXPECT(&made, 0x1100, 0x1100, 0x1100, 0x1100, "", "", "", "");
	made = kept;
	table->sh_offset = sizeof(made);
	EXPECT(&made, 0x1100, 0x1100, 0x1100, 0x1100, "", "", "", "");
	made = kept;
	names->sh_size = 1; /* the name is behind */
	EXPECT(&made, 0x1100, 0x1100, 0x1100, 0x1100, "", "", "", "");
	made = kept;
	made.symtab[0].st_size = UINT64_MAX; /* beyond the last address */
	EXPECT(&made, 0x1100, 0x1100, 0x1100, 0x1100, "", "", "", "");
	made = kept;
	EXPECT(&made, 0x1100, 0x1100, 0x1100, 0x1100, "f", "f", "f", "f");
}

/* What is right of one address, and of many, by another way: each symbol is asked of each. */
Test(symbols, are_found_among_many_as_one_by_one)
{
	enum { ADDRESSES = 777 };
	static uint64_t addresses[ADDRESSES];
	static struct symbol found[ADDRESSES];
	_cleanup_(elf_image_close) struct elf_image image = { 0 };
	struct made made;

	made_init(&made);
	srand(7);
	for (int i = 0; i < MADE_SYMBOLS_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%d", i);
		made_symbol(&made, MADE_SYMTAB, name, GLOBAL(STT_FUNC), CODE + rand() % 700,
			    rand() % 4 ? rand() % 200 : 0);
	}
	for (size_t i = 0; i < ADDRESSES; i++)
		addresses[i] = CODE - 10 + i;
	cr_assert_eq(elf_image_open(&made, sizeof(made), &image), 0);
	cr_assert_eq(symbols_find(&image, addresses, ADDRESSES, found), 0);
	for (size_t i = 0; i < ADDRESSES; i++) {
		const Elf64_Sym *best = NULL, *last = NULL;
		const char *name = found[i].rank ? (const char *)found[i].name.at : "";

		for (const Elf64_Sym *each = made.symtab; each < made.symtab + MADE_SYMBOLS_MAX;
		     each++) {
			if (each->st_value > addresses[i])
				continue;
			if (addresses[i] < each->st_value + each->st_size &&
			    (!best || each->st_value > best->st_value))
				best = each;
			if (!last || each->st_value > last->st_value ||
			    (each->st_value == last->st_value && last->st_size && !each->st_size))
				last = each;
		}
		if (!best && last && !last->st_size)
			best = last;
		cr_expect_str_eq(name, best ? made.strtab + best->st_name : "", "%#lx",
				 addresses[i]);
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Each of them has all addresses: to write down each of each would be 8 billion. */
Test(symbols, that_all_have_all_addresses_take_no_time, .timeout = 60)
{
	enum { SYMBOLS = 500000, ADDRESSES = 16384 };
	const size_t len = sizeof(struct made) + SYMBOLS * sizeof(Elf64_Sym);
	_cleanup_(cleanup_free) struct made *made = malloc(len);
	_cleanup_(cleanup_free) uint64_t *addresses = calloc(ADDRESSES, sizeof(*addresses));
	_cleanup_(cleanup_free) struct symbol *found = calloc(ADDRESSES, sizeof(*found));
	_cleanup_(elf_image_close) struct elf_image image = { 0 };
	Elf64_Sym *symbols = (Elf64_Sym *)(made + 1);
	double began;

	made_init(made);
	made_symbol(made, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), 1, UINT64_MAX - SYMBOLS - 1);
	made->sections[MADE_SYMTAB].sh_offset = sizeof(*made);
	made->sections[MADE_SYMTAB].sh_size = SYMBOLS * sizeof(*symbols);
	for (size_t i = 0; i < SYMBOLS; i++) {
		symbols[i] = made->symtab[0];
		symbols[i].st_value += i;
	}
	for (size_t i = 0; i < ADDRESSES; i++)
		addresses[i] = SYMBOLS + 2 * i;
	cr_assert_eq(elf_image_open(made, len, &image), 0);
	began = seconds();
	cr_expect_eq(symbols_find(&image, addresses, ADDRESSES, found), 0);
	cr_expect_lt(seconds() - began, 10);
	cr_expect_eq(found[ADDRESSES - 1].begin, SYMBOLS);
}

Test(symbols, of_a_table_that_is_too_large_are_left_out)
{
	const size_t len = SYMBOLS_BYTES_MAX + sizeof(struct made) + 1;
	_cleanup_(cleanup_free) struct made *made = calloc(1, len);
	_cleanup_(elf_image_close) struct elf_image image = { 0 };
	const uint64_t address = 0x1100;
	struct symbol found;

	made_init(made);
	made_symbol(made, MADE_DYNSYM, "f", GLOBAL(STT_FUNC), 0x1100, 0x10);
	made->sections[MADE_SYMTAB].sh_size = SYMBOLS_BYTES_MAX;
	cr_assert_eq(elf_image_open(made, len, &image), 0);
	cr_expect_eq(symbols_find(&image, &address, 1, &found), 0);
	elf_image_close(&image);
	made->sections[MADE_SYMTAB].sh_size++;
	cr_assert_eq(elf_image_open(made, len, &image), 0);
	cr_expect_eq(symbols_find(&image, &address, 1, &found), -EFBIG);
	cr_expect_str_eq((const char *)found.name.at, "f", "the other table is read");
}

Test(symbols, of_no_addresses_are_none)
{
	_cleanup_(elf_image_close) struct elf_image image = { 0 };
	struct made made;

	made_init(&made);
	made_symbol(&made, MADE_SYMTAB, "f", GLOBAL(STT_FUNC), 0x1100, 0x10);
	cr_assert_eq(elf_image_open(&made, sizeof(made), &image), 0);
	cr_expect_eq(symbols_find(&image, NULL, 0, NULL), 0);
}
