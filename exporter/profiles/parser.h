/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser: a helper without privileges that reads ELF files and perf maps, of which the owners
 * of processes have chosen every byte. It gets a file as a descriptor, and answers with what
 * profiles need of it: where its code is, how its stacks are followed, what its functions are
 * called. What is long is in memory that it shares with the exporter. A file that makes it crash,
 * or that shrinks while it is mapped, ends it: it is replaced (helpers/helper.h).
 *
 * What it says is checked before it is used (profiles/parsed.h).
 */
#ifndef WORKLOAD_PROFILES_PARSER_H
#define WORKLOAD_PROFILES_PARSER_H

#include <stddef.h>
#include <stdint.h>

#include "helpers/helper.h"
#include "profiles/names.h"
#include "profiles/program.h"
#include "unwind/table.h"

#define PARSER_FILE_BYTES_MAX (1ULL << 30) /* a larger file is not read */

enum parser_what {
	PARSER_TABLE,
	PARSER_NAMES,
	PARSER_PERF_MAP, /* names as well, of a perf map (profiles/perf_map.h): answered as such */
};

struct parser_question {
	uint32_t what; /* enum parser_what */
	uint32_t len; /* of names: addresses in the shared memory */
	uint32_t quick; /* not 0: names of C++ and Rust are not demangled, and functions that only
			 * their instructions tell of are not looked for */
};

/* Why a file has no unwind table. It can be named nevertheless. */
enum parser_reason {
	PARSER_MADE, /* it has one */
	PARSER_NO_FRAMES, /* there is no frame information, or none that is understood */
	PARSER_TOO_LARGE, /* UNWIND_ROWS_MAX and the like */
	PARSER_NO_MEMORY,
	PARSER_REASONS,
};

/* Of PARSER_TABLE. */
struct parser_table {
	uint32_t reason; /* enum parser_reason */
	uint32_t rows, rules; /* in the shared memory; 0 but for PARSER_MADE */
	uint32_t functions, functions_bad, states_bad; /* as in struct unwind_table */
	struct program program;
};

struct parser_answer {
	uint32_t what; /* as in the question: which of the others it is */
	uint32_t zero;
	struct parser_table table;
	struct names_found names;
};

union parser_shared {
	struct {
		struct unwind_rule rules[UNWIND_RULES_MAX];
		struct unwind_row rows[UNWIND_ROWS_MAX];
	} table; /* answer */
	struct names names; /* question and answer */
};

/*
 * Answers @question about the file whose bytes are @image; @shared may change meanwhile, and of
 * images a perf map. 0 with @answer, which is zeros; -ENOEXEC: it is no ELF file of x86-64 or
 * arm64; -EINVAL: that is no question; -ENOMEM.
 */
int parser_read(const struct parser_question *question, const void *image, size_t bytes,
		union parser_shared *shared, struct parser_answer *answer);

/*
 * The same about the regular file @fd, as far as it is now. Also -EFBIG: PARSER_FILE_BYTES_MAX;
 * -errno.
 */
int parser_read_file(const struct parser_question *question, int fd, union parser_shared *shared,
		     struct parser_answer *answer);

/*
 * Its questions are struct parser_question with a file (helper_ask_with()), its answers struct
 * parser_answer, and its shared memory union parser_shared: helper_shared_clear() gives back what a
 * large table has taken of it.
 */
extern const struct helper_kind parser_kind;

#endif
