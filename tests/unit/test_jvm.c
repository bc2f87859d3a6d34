/* SPDX-License-Identifier: Apache-2.0 */
/* What Java virtual machines are told, in folders as /proc has them. */
#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "opening.h"
#include "profiles/jvm.h"

#define ON "-XX:+PreserveFramePointer"
#define OFF "-XX:-PreserveFramePointer"
#define TEXTS(texts) texts, sizeof(texts) - 1

static void file_write(const struct opening *opening, const char *name, const char *bytes,
		       size_t len)
{
	FILE *file = fopen(opening_path(opening, name), "we");

	cr_assert_not_null(file);
	cr_assert_eq(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

/* Where stat says that the environment is in the memory of the process. */
static void environment_write(const struct opening *opening, const char *bytes, size_t len)
{
	static const char before[0x100];
	FILE *file = fopen(opening_path(opening, "mem"), "we");
	char stat[256];
	int at = snprintf(stat, sizeof(stat), "7 (made up) S");

	cr_assert_not_null(file);
	cr_assert_eq(fwrite(before, 1, sizeof(before), file), sizeof(before));
	cr_assert_eq(fwrite(bytes, 1, len, file), len);
	cr_assert_eq(fwrite("=x", 1, 2, file), 2, "what follows is no part of it");
	fclose(file);
	for (int i = 4; i < 50; i++)
		at += snprintf(stat + at, sizeof(stat) - (size_t)at, " 1");
	snprintf(stat + at, sizeof(stat) - (size_t)at, " %zu %zu 0\n", sizeof(before),
		 sizeof(before) + len);
	file_write(opening, "stat", stat, strlen(stat));
}

static bool told_by(const char *arguments, size_t arguments_len, const char *environment,
		    size_t environment_len)
{
	struct opening opening = opening_make();
	_cleanup_(cleanup_close) int folder = open(opening.folder, O_PATH | O_CLOEXEC);
	bool keeps;

	file_write(&opening, "cmdline", arguments, arguments_len);
	environment_write(&opening, environment, environment_len);
	keeps = jvm_keeps_frame_pointers(folder);
	opening_remove(&opening);
	return keeps;
}

Test(jvm, is_told_by_its_arguments)
{
	cr_expect(told_by(TEXTS("java\0" ON "\0Main\0"), TEXTS("")));
	cr_expect(told_by(TEXTS("java\0" OFF "\0" ON "\0Main\0"), TEXTS("")));
	cr_expect(told_by(TEXTS("java\0" ON), TEXTS("")), "its title has no end");
	cr_expect_not(told_by(TEXTS("java\0Main\0"), TEXTS("")));
	cr_expect_not(told_by(TEXTS("java\0" ON "\0" OFF "\0Main\0"), TEXTS("")));
	cr_expect_not(told_by(TEXTS("java\0-XX:+PreserveFrame\0Pointer\0"), TEXTS("")));
	cr_expect_not(told_by(TEXTS("java\0-XX:PreserveFramePointer\0"), TEXTS("")));
	cr_expect_not(told_by(TEXTS("java\0-Dchild=" ON "\0Main\0"), TEXTS("")));
	cr_expect_not(told_by(TEXTS("java\0" ON "s\0Main\0"), TEXTS("")));
	cr_expect_not(told_by(TEXTS(""), TEXTS("")));
}

Test(jvm, is_told_nothing_by_arguments_of_its_program)
{
	cr_expect(told_by(TEXTS("java\0-cp\0classes\0" ON "\0Main\0" OFF "\0"), TEXTS("")));
	cr_expect(told_by(TEXTS("java\0--add-opens\0a/b=c\0@file\0" ON "\0Main\0"), TEXTS("")));
	cr_expect_not(told_by(TEXTS("java\0Main\0" ON "\0"), TEXTS("")));
	cr_expect_not(told_by(TEXTS("java\0-jar\0main.jar\0" ON "\0"), TEXTS("")));
	cr_expect_not(told_by(TEXTS("java\0-cp\0" ON "\0Main\0"), TEXTS("")));
	cr_expect_not(told_by(TEXTS(ON "\0Main\0"), TEXTS("")), "its own name");
	cr_expect_not(told_by(TEXTS("java\0-cp"), TEXTS("")));
}

Test(jvm, is_told_by_variables_that_it_reads)
{
	cr_expect(told_by(TEXTS("java\0"), TEXTS("A=b\0JAVA_TOOL_OPTIONS=-Dx " ON " -Dy\0")));
	cr_expect(told_by(TEXTS("java\0"), TEXTS("JDK_JAVA_OPTIONS=" ON "\0")));
	cr_expect(told_by(TEXTS("java\0"), TEXTS("JAVA_TOOL_OPTIONS=-Dx='a \" b'\t" ON "\0")));
	cr_expect_not(told_by(TEXTS("java\0"), TEXTS("JAVA_TOOL_OPTIONS=-Dx='a " ON " b'\0")));
	cr_expect_not(told_by(TEXTS("java\0"), TEXTS("JAVA_TOOL_OPTIONS=-Dx=" ON "\0")));
	cr_expect(told_by(TEXTS("java\0"), TEXTS("_JAVA_OPTIONS=" ON "\0")));
	cr_expect_not(told_by(TEXTS("java\0"), TEXTS("JAVA_OPTS=" ON "\0")));
	cr_expect_not(told_by(TEXTS("java\0"), TEXTS("MY_JAVA_TOOL_OPTIONS=" ON "\0")));
}

Test(jvm, takes_the_word_that_it_reads_last)
{
	cr_expect_not(told_by(TEXTS("java\0" OFF "\0"), TEXTS("JAVA_TOOL_OPTIONS=" ON "\0")));
	cr_expect_not(told_by(TEXTS("java\0" OFF "\0"), TEXTS("JDK_JAVA_OPTIONS=" ON "\0")));
	cr_expect(told_by(TEXTS("java\0" OFF "\0"), TEXTS("_JAVA_OPTIONS=" ON "\0")));
	cr_expect_not(told_by(TEXTS("java\0"),
			      TEXTS("_JAVA_OPTIONS=" OFF "\0JAVA_TOOL_OPTIONS=" ON "\0")));
	cr_expect_not(told_by(TEXTS("java\0"), TEXTS("JAVA_TOOL_OPTIONS=" ON " " OFF "\0")));
}

Test(jvm, that_cannot_be_read_was_told_nothing)
{
	struct opening opening = opening_make();
	_cleanup_(cleanup_close) int folder = open(opening.folder, O_PATH | O_CLOEXEC);

	cr_expect_not(jvm_keeps_frame_pointers(folder));
	cr_expect_not(jvm_keeps_frame_pointers(-1));
	environment_write(&opening, TEXTS("JAVA_TOOL_OPTIONS=" ON "\0"));
	cr_expect(jvm_keeps_frame_pointers(folder), "the arguments are not there");
	opening_remove(&opening);
}
