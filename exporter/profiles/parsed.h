/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter's side of the parser (profiles/parser.h): takes what it has answered, and checks it.
 * The parser is taken for hostile: it has read hostile files. It can write to the shared memory at
 * any time: what is there is copied first and checked then.
 */
#ifndef WORKLOAD_PROFILES_PARSED_H
#define WORKLOAD_PROFILES_PARSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiles/parser.h"

/* Whether @answer, which holds any bytes, can be one. */
bool parsed_check(const struct parser_answer *answer);

/*
 * The unwind table of an answer to PARSER_TABLE. 0 with @table, which unwind_table_free() releases;
 * its rows and rules hold any bytes, which unwind_store_add() checks. -ENODATA: the file has none
 * (answer->table.reason); -EPROTO: that is no such answer; -ENOMEM.
 */
int parsed_table(const struct parser_answer *answer, const union parser_shared *shared,
		 struct unwind_table *table);

/* Names of addresses, in the order in which these were asked. */
struct parsed_names {
	struct name *names; /* owned */
	size_t len;
	char *texts; /* owned */
	uint32_t no_room; /* as in struct names_found */
	bool too_large;
};

/*
 * The names of an answer to PARSER_NAMES, of the @len @addresses that were asked: the caller's own
 * copy. 0 with @out, which parsed_names_free() releases: texts are valid UTF-8, and a begin is not
 * behind its address; -EPROTO: that is no such answer; -ENOMEM.
 */
int parsed_names(const struct parser_answer *answer, const union parser_shared *shared,
		 const uint64_t *addresses, size_t len, struct parsed_names *out);

/* The name of the address @i; NULL: it has none. Valid as long as @names. */
const char *parsed_names_text(const struct parsed_names *names, size_t i);

void parsed_names_free(struct parsed_names *names);

#endif
