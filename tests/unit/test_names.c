/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdint.h>
#include <string.h>

#include "machine/names.h"

/*
 * Normalises the COMM_LEN bytes at @comm and compares every byte of the result with @expected,
 * padded with NULs. The copies are of the exact size: a read or write beyond them is caught.
 */
static void expect_pattern_of_bytes(const char comm[COMM_LEN], const char *expected)
{
	char padded[COMM_LEN] = "", name[COMM_LEN] = "";

	memcpy(padded, expected, strlen(expected));
	name_normalise(comm, name);
	cr_expect_arr_eq(name, padded, COMM_LEN, "`%.16s` became `%.16s`, not `%s`", comm, name,
			 expected);
}

static void expect_pattern(const char *text, const char *expected)
{
	char comm[COMM_LEN] = "";

	memcpy(comm, text, strlen(text));
	expect_pattern_of_bytes(comm, expected);
}

Test(names, a_run_of_digits_becomes_one_mark)
{
	expect_pattern("worker-7", "worker-#");
	expect_pattern("worker-1234567", "worker-#");
	expect_pattern("http-nio-8080-e", "http-nio-#-e");
	expect_pattern("1st", "#st");
	expect_pattern("a1b22c333d", "a#b#c#d");
	expect_pattern("kworker/0:1-ev", "kworker/#:#-ev");
}

Test(names, a_name_of_digits_alone_is_one_mark)
{
	expect_pattern("0", "#");
	expect_pattern("9", "#");
	expect_pattern("0123456789", "#");
	expect_pattern("012345678901234", "#");
}

Test(names, a_name_without_digits_stays)
{
	expect_pattern("nginx", "nginx");
	expect_pattern("C2 CompilerThre", "C# CompilerThre");
	expect_pattern("##", "##");
	expect_pattern("/:", "/:");
	expect_pattern(" ", " ");
}

Test(names, fifteen_characters_fit)
{
	expect_pattern("abcdefghijklmno", "abcdefghijklmno");
	expect_pattern("abcdefghijklmn7", "abcdefghijklmn#");
	expect_pattern("1a2b3c4d5e6f7g8", "#a#b#c#d#e#f#g#");
}

Test(names, an_empty_name_stays_empty)
{
	expect_pattern("", "");
}

Test(names, what_follows_the_terminator_is_not_read)
{
	char comm[COMM_LEN] = "ab\0cdefghijklmn";

	expect_pattern_of_bytes(comm, "ab");
	comm[0] = '\0';
	expect_pattern_of_bytes(comm, "");
}

Test(names, a_name_without_terminator_is_cut_and_the_pattern_terminated)
{
	char comm[COMM_LEN];

	memset(comm, 'x', sizeof(comm));
	expect_pattern_of_bytes(comm, "xxxxxxxxxxxxxxx");
	memset(comm, '5', sizeof(comm));
	expect_pattern_of_bytes(comm, "#");
	memset(comm, '\xff', sizeof(comm));
	expect_pattern_of_bytes(comm,
				"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
}

/* Every byte there is, between two letters: only the ten digits change. */
Test(names, bytes_that_are_no_ascii_digits_stay_as_they_are)
{
	for (int byte = 1; byte < 256; byte++) {
		char comm[COMM_LEN] = { 'a', (char)byte, 'z' }, expected[COMM_LEN] = "a#z";

		if (byte < 0x30 || byte > 0x39)
			expected[1] = (char)byte;
		expect_pattern_of_bytes(comm, expected);
	}
	expect_pattern("\xd0\xbf\xd1\x83\xd0\xbb-12", "\xd0\xbf\xd1\x83\xd0\xbb-#");
}

Test(names, a_pattern_is_its_own_pattern)
{
	expect_pattern("worker-#", "worker-#");
	expect_pattern("#st#", "#st#");
}

/* Threads of one pool must meet in one key, which is compared as bytes. */
Test(names, threads_that_differ_in_digits_alone_share_a_pattern)
{
	char first[COMM_LEN] = "", second[COMM_LEN] = "";

	name_normalise((const char[COMM_LEN]){ "exec-9" }, first);
	name_normalise((const char[COMM_LEN]){ "exec-1000" }, second);
	cr_expect_arr_eq(first, second, COMM_LEN);
}

/* The same rule, said with decisions about every byte: what the kernel's verifier has to follow. */
static void normalise_by_branches(const char comm[COMM_LEN], char name[COMM_LEN])
{
	int length = 0, digits = 0;

	for (int i = 0; i < COMM_LEN - 1 && comm[i]; i++) {
		int digit = comm[i] >= '0' && comm[i] <= '9';

		if (!digit)
			name[length++] = comm[i];
		else if (!digits)
			name[length++] = '#';
		digits = digit;
	}
}

static void expect_same_by_branches(const char comm[COMM_LEN])
{
	char name[COMM_LEN] = "", expected[COMM_LEN] = "";

	name_normalise(comm, name);
	normalise_by_branches(comm, expected);
	if (memcmp(name, expected, COMM_LEN))
		cr_assert_fail("`%.16s` became `%.16s`, not `%.16s`", comm, name, expected);
}

Test(names, every_order_of_digits_and_letters_of_every_length_is_as_by_branches)
{
	for (int length = 0; length <= COMM_LEN; length++) {
		for (unsigned int order = 0; order < 1U << length; order++) {
			char comm[COMM_LEN] = "";

			for (int i = 0; i < length; i++)
				comm[i] = order >> i & 1 ? (char)('0' + i % 10) : 'x';
			expect_same_by_branches(comm);
		}
	}
}

/* Half of the bytes are of those that decide, and their neighbours. */
Test(names, a_million_random_names_are_as_by_branches)
{
	static const char special[] = "0189/:#\0";
	uint64_t random = 88172645463325252ULL;

	for (int n = 0; n < 1000000; n++) {
		char comm[COMM_LEN];

		for (int i = 0; i < COMM_LEN; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			comm[i] = random & 1 ? special[random >> 8 & 7] : (char)(random >> 8);
		}
		expect_same_by_branches(comm);
	}
}
