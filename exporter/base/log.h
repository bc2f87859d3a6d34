/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines on standard error, as logfmt or JSON, one line each, values escaped.
 *
 * Only main.c and the code it wires at the top level log; library code returns errors instead.
 */
#ifndef WORKLOAD_BASE_LOG_H
#define WORKLOAD_BASE_LOG_H

#include <stdio.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };
#define LOG_LEVELS (LOG_LEVEL_DEBUG + 1)
#define LOG_FORMATS (LOG_FORMAT_JSON + 1)

extern const char *const log_level_names[LOG_LEVELS]; /* as in lines and in --log.level */
extern const char *const log_format_names[LOG_FORMATS]; /* as in --log.format */

struct log {
	FILE *out; /* not owned */
	enum log_level level; /* lines above it are left out */
	enum log_format format;
};

/*
 * Writes one line: ts (RFC 3339, UTC, milliseconds), level, msg. @message is a printf format; the
 * result is cut at 2 KiB and escaped as the format requires, whatever bytes it holds.
 */
void log_line(const struct log *log, enum log_level level, const char *message, ...)
	__attribute__((format(printf, 3, 4)));

#define log_error(log, ...) log_line(log, LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(log, ...) log_line(log, LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(log, ...) log_line(log, LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_line(log, LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
