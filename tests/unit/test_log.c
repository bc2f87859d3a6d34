/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/utf8.h"

/* Logs one message at info; returns the line, to be freed. */
static char *logged(enum log_format format, enum log_level level, const char *message)
{
	char *line = NULL;
	size_t len;
	FILE *out = open_memstream(&line, &len);
	struct log log = { .out = out, .level = level, .format = format };

	log_info(&log, "%s", message);
	fclose(out);
	return line;
}

/* What follows the time stamp in a logfmt line. */
static void expect_logfmt(const char *message, const char *rest)
{
	char *line = logged(LOG_FORMAT_LOGFMT, LOG_LEVEL_INFO, message);
	struct tm time = { 0 };
	char *end = strptime(line, "ts=%Y-%m-%dT%H:%M:%S", &time);

	cr_assert_not_null(end, "no time stamp: %s", line);
	cr_assert_eq(strspn(end, ".0123456789"), 4);
	cr_expect_str_eq(end + 4, rest);
	free(line);
}

Test(log, a_logfmt_line_has_time_level_and_message)
{
	expect_logfmt("ready", "Z level=info msg=\"ready\"\n");
}

Test(log, a_json_line_has_time_level_and_message)
{
	char *line = logged(LOG_FORMAT_JSON, LOG_LEVEL_INFO, "ready");

	cr_expect_eq(strncmp(line, "{\"ts\":\"2", 8), 0);
	cr_expect_str_eq(line + strlen("{\"ts\":\"2026-01-02T03:04:05.678Z"),
			 "\",\"level\":\"info\",\"msg\":\"ready\"}\n");
	free(line);
}

Test(log, a_message_cannot_leave_its_quotes)
{
	expect_logfmt("a\"b\\c\nd\te\rf\x01g\x7f",
		      "Z level=info msg=\"a\\\"b\\\\c\\nd\\te\\rf\\u0001g\\u007f\"\n");
}

Test(log, bytes_that_are_not_utf8_are_replaced)
{
	expect_logfmt("\xc3\xa9 \xff \xc3",
		      "Z level=info msg=\"\xc3\xa9 " UTF8_REPLACEMENT " " UTF8_REPLACEMENT "\"\n");
}

Test(log, lines_above_the_level_are_left_out)
{
	char *line = logged(LOG_FORMAT_LOGFMT, LOG_LEVEL_WARN, "not seen");

	cr_expect_str_empty(line);
	free(line);
}

Test(log, a_long_message_is_cut)
{
	char message[5000];
	char *line;

	memset(message, '\x01', sizeof(message) - 1);
	message[sizeof(message) - 1] = '\0';
	line = logged(LOG_FORMAT_LOGFMT, LOG_LEVEL_INFO, message);
	cr_expect_eq(strlen(strstr(line, "msg=")), strlen("msg=\"\"\n") + 2047 * 6);
	free(line);
}

Test(log, a_message_is_not_cut_within_a_character)
{
	char message[5000];
	char *line;

	memset(message, 'x', sizeof(message));
	message[sizeof(message) - 1] = '\0';
	memcpy(message + 2045, "\xe2\x82\xac", 3); /* its last byte is the first one cut */
	line = logged(LOG_FORMAT_LOGFMT, LOG_LEVEL_INFO, message);
	cr_expect_eq(strlen(strstr(line, "msg=")), strlen("msg=\"\"\n") + 2045);
	cr_expect_null(strstr(line, UTF8_REPLACEMENT));
	free(line);
}
