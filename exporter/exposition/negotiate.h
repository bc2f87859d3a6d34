/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content negotiation (RFC 9110, section 12.5): which format and which coding a client prefers,
 * from its Accept and Accept-Encoding headers. Pure functions of any bytes up to a NUL.
 */
#ifndef WORKLOAD_EXPOSITION_NEGOTIATE_H
#define WORKLOAD_EXPOSITION_NEGOTIATE_H

#include <stdbool.h>

/* In the order in which they are preferred where a client likes several equally. */
enum exposition_format {
	EXPOSITION_TEXT,
	EXPOSITION_OPENMETRICS,
	EXPOSITION_PROTOBUF,
	EXPOSITION_FORMATS,
};

/*
 * The format with the highest weight (q); of equal ones that which is named rather than matched by
 * a wildcard, then that which is named first. A more specific element overrides a wildcard, and
 * q=0 excludes. A format is named by type and subtype with the parameters of its content type:
 * version (1.0.0 for OpenMetrics, 0.0.4 for text; none is as good), and for protobuf proto and
 * encoding=delimited; further parameters do not matter. Elements that cannot be read are skipped.
 *
 * EXPOSITION_TEXT if nothing matches: a scrape that could be read is better than 406.
 */
enum exposition_format exposition_negotiate(const char *accept);

/* Whether gzip is accepted, and no less liked than no coding at all. */
bool exposition_accepts_gzip(const char *accept_encoding);

#endif
