/* SPDX-License-Identifier: Apache-2.0 */
/* Names of generated functions, in texts as runtimes write them, and as none does. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/name_texts.h"
#include "profiles/perf_map.h"

static struct names *names;
static struct names_found found;

static void names_make(void)
{
	names = calloc(1, sizeof(*names));
	cr_assert_not_null(names);
}

static void names_free(void)
{
	free(names);
}

TestSuite(perf_map, .init = names_make, .fini = names_free);

static int find(const char *map, size_t len, const uint64_t *addresses, size_t asked)
{
	struct name_texts texts;

	name_texts_begin(&texts, names, &found, false);
	return perf_map_find(map, len, addresses, asked, &texts);
}

static const char *name_at(const char *map, size_t len, uint64_t address)
{
	const struct name *name = &names->names[0];

	memset(names, 0xa5, sizeof(names->names) + sizeof(names->addresses));
	cr_assert_eq(find(map, len, &address, 1), 0);
	if (!name->text)
		return NULL;
	cr_expect_leq(name->begin, address);
	cr_expect_eq(strlen(names->texts + name->text), name->bytes);
	return names->texts + name->text;
}

static void expect_name(const char *map, uint64_t address, const char *expected)
{
	const char *name = name_at(map, strlen(map), address);

	if (expected)
		cr_expect_str_eq(name ? name : "none", expected, "at %#lx of %s", address, map);
	else
		cr_expect_null(name, "at %#lx of %s: %s", address, map, name);
}

Test(perf_map, names_what_is_between_begin_and_end)
{
	static const char map[] =
		"1000 10 one\n1010 8 two words\n0x7fff00002000 0xff JS:*f /a.js:1:2\n";

	expect_name(map, 0xfff, NULL);
	expect_name(map, 0x1000, "one");
	expect_name(map, 0x100f, "one");
	expect_name(map, 0x1010, "two words");
	expect_name(map, 0x1017, "two words");
	expect_name(map, 0x1018, NULL);
	expect_name(map, 0x7fff000020fe, "JS:*f /a.js:1:2");
	expect_name(map, 0x7fff000020ff, NULL);
	expect_name("", 0x1000, NULL);
}

Test(perf_map, takes_the_last_word_of_a_place_that_was_used_again)
{
	static const char map[] = "1000 100 first\n1040 10 second\n1000 20 third\n";

	expect_name(map, 0x1000, "third");
	expect_name(map, 0x101f, "third");
	expect_name(map, 0x1020, "first");
	expect_name(map, 0x1040, "second");
	expect_name(map, 0x1050, "first");
}

/* The process goes on writing: of the last line there may be a part. */
Test(perf_map, passes_over_a_line_that_has_no_end)
{
	expect_name("1000 10 one", 0x1000, NULL);
	expect_name("1000 10 one\n1000 10 tw", 0x1000, "one");
	expect_name("1000 10 one\n1000 10 ", 0x1000, "one");
	expect_name("1000 10 one\n1000 1", 0x1000, "one");
	expect_name("1000 10 one\n1000", 0x1000, "one");
}

Test(perf_map, passes_over_what_is_no_line)
{
	static const char *const maps[] = {
		"\n",
		"\n\n",
		"one\n",
		"1000 10\n",
		"1000 10 \n",
		"1000  10 one\n",
		" 1000 10 one\n",
		"1000 x one\n",
		"1000 0 one\n",
		"0x 10 one\n",
		"-1000 10 one\n",
		"1000 ffffffffffffffff one\n",
		"1000 00000000000000010 one\n",
		"00000000000001000 10 one\n",
		"1000\t10\tone\n",
	};
	char text[64];

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
		expect_name(maps[i], 0x1000, NULL);
		snprintf(text, sizeof(text), "%s1000 10 good\n%s", maps[i], maps[i]);
		expect_name(text, 0x1001, "good");
	}
}

Test(perf_map, shows_any_bytes_as_text)
{
	static const char map[] = "1000 10 a\xff"
				  "b\n2000 10 a\0b\n3000 10 \0\n";

	cr_expect_str_eq(name_at(map, sizeof(map) - 1, 0x1000), "a\xef\xbf\xbd"
								"b");
	cr_expect_str_eq(name_at(map, sizeof(map) - 1, 0x2000), "a");
	cr_expect_null(name_at(map, sizeof(map) - 1, 0x3000));
}

Test(perf_map, writes_a_name_once_for_all_its_addresses)
{
	static const char map[] = "1000 100 one\n2000 100 two\n";
	const uint64_t addresses[] = { 0x1000, 0x1080, 0x1800, 0x2000, 0x2001 };
	const size_t len = sizeof(addresses) / sizeof(*addresses);

	cr_assert_eq(find(map, strlen(map), addresses, len), 0);
	cr_expect_eq(names->names[0].text, names->names[1].text);
	cr_expect_eq(names->names[1].begin, 0x1000);
	cr_expect_eq(names->names[2].text, 0);
	cr_expect_eq(names->names[3].text, names->names[4].text);
	cr_expect_eq(found.texts_bytes, 1 + 4 + 4);
	cr_expect_eq(found.no_room, 0);
}

/* Each line is of all addresses: the last takes them, and the others have none to look at. */
Test(perf_map, takes_no_time_for_lines_that_say_the_same, .timeout = 20)
{
	static const char line[] = "0 7fffffffffff one\n";
	static uint64_t addresses[NAMES_MAX];
	const size_t lines = (16U << 20) / (sizeof(line) - 1), bytes = sizeof(line) - 1;
	char *map = malloc(lines * bytes);

	cr_assert_not_null(map);
	for (size_t i = 0; i < lines; i++)
		memcpy(map + i * bytes, line, bytes);
	for (size_t i = 0; i < NAMES_MAX; i++)
		addresses[i] = i;
	addresses[NAMES_MAX - 1] = UINT64_MAX; /* of no line: none is left out */
	cr_assert_eq(find(map, lines * bytes, addresses, NAMES_MAX), 0);
	cr_expect_neq(names->names[NAMES_MAX - 2].text, 0);
	cr_expect_eq(names->names[NAMES_MAX - 1].text, 0);
	free(map);
}

Test(perf_map, is_read_at_its_end_where_it_is_too_large)
{
	static const char first[] = "1000 10 first\n", last[] = "2000 10 last\n";
	const size_t len = PERF_MAP_BYTES_MAX + 1000;
	char *map = malloc(len);

	cr_assert_not_null(map);
	memset(map, '\n', len);
	memcpy(map, first, sizeof(first) - 1);
	memcpy(map + len - sizeof(last) + 1, last, sizeof(last) - 1);
	cr_expect_null(name_at(map, len, 0x1000));
	cr_expect_str_eq(name_at(map, len, 0x2000), "last");
	memcpy(map + 1000 - 5, "ff1000 10 cut\n", 14); /* it is looked at from the digit 1 on */
	cr_expect_null(name_at(map, len, 0x1000));
	free(map);
}
