/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"

#define LOG_MESSAGE_BYTES 2048
#define LOG_ESCAPE_BYTES 6 /* the longest: \u001f */

const char *const log_level_names[LOG_LEVELS] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

const char *const log_format_names[LOG_FORMATS] = {
	[LOG_FORMAT_LOGFMT] = "logfmt",
	[LOG_FORMAT_JSON] = "json",
};

/* Writes @byte, which JSON does not allow as it is, to @out; returns the end. */
static char *log_escape_byte(char *out, unsigned char byte)
{
	static const char hex[] = "0123456789abcdef";
	const char *short_form = byte == '"'    ? "\\\""
				 : byte == '\\' ? "\\\\"
				 : byte == '\n' ? "\\n"
				 : byte == '\r' ? "\\r"
				 : byte == '\t' ? "\\t"
						: NULL;

	if (short_form)
		return mempcpy(out, short_form, 2);
	out = mempcpy(out, "\\u00", 4);
	*out++ = hex[byte >> 4];
	*out++ = hex[byte & 15];
	return out;
}

/* A JSON string's inside, which is what logfmt readers take between quotes as well. */
static void log_escape(const char *text, char *out)
{
	while (*text) {
		unsigned char byte = (unsigned char)*text;
		size_t length = utf8_length(text);

		if (byte < 0x20 || byte == 0x7f || byte == '"' || byte == '\\')
			out = log_escape_byte(out, byte);
		else if (length)
			out = mempcpy(out, text, length);
		else
			out = mempcpy(out, UTF8_REPLACEMENT, 3);
		text += length ? length : 1;
	}
	*out = '\0';
}

/* A message cut in the middle of a character must not end in half of it. */
static void log_trim_character(char *message, size_t len)
{
	size_t start = len;

	while (start && len - start < 4 && (message[start - 1] & 0xc0) == 0x80)
		start--;
	if (start && (unsigned char)message[start - 1] >= 0xc0 && !utf8_length(message + start - 1))
		message[start - 1] = '\0';
}

static void log_time(char *text, size_t size)
{
	struct timespec now;
	struct tm utc;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ", utc.tm_year + 1900,
		 utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
		 now.tv_nsec / 1000000);
}

void log_line(const struct log *log, enum log_level level, const char *message, ...)
{
	char text[LOG_MESSAGE_BYTES], escaped[LOG_MESSAGE_BYTES * LOG_ESCAPE_BYTES];
	char line[sizeof(escaped) + 128], ts[96];
	va_list args;
	int len;

	if (level > log->level)
		return;
	va_start(args, message);
	len = vsnprintf(text, sizeof(text), message, args);
	va_end(args);
	if (len < 0)
		return;
	if ((size_t)len >= sizeof(text))
		log_trim_character(text, sizeof(text) - 1);
	log_escape(text, escaped);
	log_time(ts, sizeof(ts));
	if (log->format == LOG_FORMAT_JSON)
		len = snprintf(line, sizeof(line),
			       "{\"ts\":\"%s\",\"level\":\"%s\",\"msg\":\"%s\"}\n", ts,
			       log_level_names[level], escaped);
	else
		len = snprintf(line, sizeof(line), "ts=%s level=%s msg=\"%s\"\n", ts,
			       log_level_names[level], escaped);
	/* One write, so that lines of several processes on one terminal do not mix. */
	fwrite(line, 1, (size_t)len, log->out);
	fflush(log->out);
}
