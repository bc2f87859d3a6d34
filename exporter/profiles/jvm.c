/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/jvm.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "identity/proc.h"

#define TEXT_LEN (512U << 10) /* of what is looked at: class paths are long */

/*
 * In the order in which they are read: what comes later counts (Arguments::parse() in HotSpot's
 * runtime/arguments.cpp). JDK_JAVA_OPTIONS is the launcher's, before its arguments. NULL: these.
 */
static const char *const sources[] = {
	"JAVA_TOOL_OPTIONS=",
	"JDK_JAVA_OPTIONS=",
	NULL,
	"_JAVA_OPTIONS=",
};

/* Options of the launcher whose value is an argument of its own (java(1)). */
static const char *const with_value[] = {
	"-cp",
	"-classpath",
	"--class-path",
	"-p",
	"--module-path",
	"--upgrade-module-path",
	"--add-modules",
	"--limit-modules",
	"--add-reads",
	"--add-exports",
	"--add-opens",
	"--patch-module",
	"--enable-native-access",
	"--source",
	"-d",
	"--describe-module",
};

/* Takes over what the word of @len bytes at @word says of it, if it does. */
static void word_take(const char *word, size_t len, bool *keeps)
{
	static const char on[] = "-XX:+PreserveFramePointer", off[] = "-XX:-PreserveFramePointer";

	if (len != sizeof(on) - 1)
		return;
	if (memcmp(word, on, len) == 0)
		*keeps = true;
	else if (memcmp(word, off, len) == 0)
		*keeps = false;
}

/* --- arguments ------------------------------------------------------------------------------- */

static bool has_value(const char *argument)
{
	for (size_t i = 0; i < sizeof(with_value) / sizeof(with_value[0]); i++)
		if (!strcmp(argument, with_value[i]))
			return true;
	return false;
}

/* Up to the first that is no option: the program, whose own arguments follow. */
static void arguments_take(const char *texts, size_t len, bool *keeps)
{
	size_t at = strlen(texts) + 1;

	while (at < len && (texts[at] == '-' || texts[at] == '@')) {
		const char *argument = texts + at;

		word_take(argument, strlen(argument), keeps);
		at += strlen(argument) + 1;
		if (has_value(argument) && at < len)
			at += strlen(texts + at) + 1;
	}
}

/* --- variables ------------------------------------------------------------------------------- */

/* Words are apart by white space that is in no quotes. */
static void words_take(const char *text, bool *keeps)
{
	const char *word = text;
	char quote = '\0';

	for (;; text++) {
		bool space = *text == ' ' || (*text >= '\t' && *text <= '\r');

		if (!*text || (space && !quote)) {
			word_take(word, (size_t)(text - word), keeps);
			word = text + 1;
		} else if (*text == quote) {
			quote = '\0';
		} else if (!quote && (*text == '"' || *text == '\'')) {
			quote = *text;
		}
		if (!*text)
			return;
	}
}

static void variable_take(const char *texts, size_t len, const char *prefix, bool *keeps)
{
	for (size_t at = 0; at < len; at += strlen(texts + at) + 1)
		if (text_has_prefix(texts + at, prefix))
			words_take(texts + at + strlen(prefix), keeps);
}

/* --- both ------------------------------------------------------------------------------------ */

/* A text of TEXT_LEN bytes at most, which the caller releases; "" where it cannot be read. */
static char *text_read(int dir_fd, int (*read)(int dir_fd, char *out, size_t size, size_t *len),
		       size_t *len)
{
	char *text = calloc(1, TEXT_LEN);

	*len = 0;
	if (text && read(dir_fd, text, TEXT_LEN, len))
		*len = 0;
	return text;
}

bool jvm_keeps_frame_pointers(int dir_fd)
{
	size_t arguments_len, variables_len;
	_cleanup_(cleanup_free) char *arguments = text_read(dir_fd, proc_cmdline_read,
							    &arguments_len);
	_cleanup_(cleanup_free) char *variables = text_read(dir_fd, proc_environment_read,
							    &variables_len);
	bool keeps = false;

	for (size_t i = 0; arguments && variables && i < sizeof(sources) / sizeof(sources[0]); i++)
		if (sources[i])
			variable_take(variables, variables_len, sources[i], &keeps);
		else if (arguments_len)
			arguments_take(arguments, arguments_len, &keeps);
	return keeps;
}
