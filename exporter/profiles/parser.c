/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/parser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "profiles/name_texts.h"
#include "profiles/parsed.h"
#include "profiles/perf_map.h"

#define NICENESS 5 /* it is waited for; beside a busy thread it has a fourth of a CPU */

/* --- the table ------------------------------------------------------------------------------- */

static enum parser_reason reason_of(int r)
{
	switch (r) {
	case 0:
		return PARSER_MADE;
	case -E2BIG:
		return PARSER_TOO_LARGE;
	case -ENOMEM:
		return PARSER_NO_MEMORY;
	default:
		return PARSER_NO_FRAMES;
	}
}

static void table_write(const struct unwind_table *table, union parser_shared *shared,
			struct parser_table *answer)
{
	memcpy(shared->table.rules, table->rules, table->rules_len * sizeof(*table->rules));
	memcpy(shared->table.rows, table->rows, table->rows_len * sizeof(*table->rows));
	answer->rules = (uint32_t)table->rules_len;
	answer->rows = (uint32_t)table->rows_len;
	answer->functions = (uint32_t)table->functions;
	answer->functions_bad = (uint32_t)table->functions_bad;
	answer->states_bad = (uint32_t)table->states_bad;
}

static void table_answer(const struct elf_image *image, union parser_shared *shared,
			 struct parser_table *answer)
{
	_cleanup_(unwind_table_free) struct unwind_table table = { 0 };
	int r = unwind_table_make(image->bytes, image->len, &table);

	answer->reason = reason_of(r);
	if (!r)
		table_write(&table, shared, answer);
	program_read(image, &answer->program);
}

/* --- names ----------------------------------------------------------------------------------- */

/* What is asked may change while it is read: it is copied first. */
static int addresses_take(const struct names *names, size_t len, uint64_t **out)
{
	_cleanup_(cleanup_free) uint64_t *addresses = calloc(len + 1, sizeof(*addresses));

	if (!addresses)
		return -ENOMEM;
	memcpy(addresses, names->addresses, len * sizeof(*addresses));
	for (size_t i = 1; i < len; i++)
		if (addresses[i] < addresses[i - 1])
			return -EINVAL;
	*out = TAKE_PTR(addresses);
	return 0;
}

/* @elf NULL: @image is a perf map. */
static int names_answer(const struct parser_question *question, const struct elf_image *elf,
			const void *image, size_t bytes, struct names *names,
			struct names_found *answer)
{
	_cleanup_(cleanup_free) uint64_t *addresses = NULL;
	size_t len = question->len;
	struct name_texts texts;
	int r = len <= NAMES_MAX ? addresses_take(names, len, &addresses) : -EINVAL;

	if (r)
		return r;
	name_texts_begin(&texts, names, answer, question->quick);
	return elf ? names_find(elf, addresses, len, question->quick, &texts)
		   : perf_map_find(image, bytes, addresses, len, &texts);
}

/* --- questions ------------------------------------------------------------------------------- */

int parser_read(const struct parser_question *question, const void *image, size_t bytes,
		union parser_shared *shared, struct parser_answer *answer)
{
	_cleanup_(elf_image_close) struct elf_image elf = { 0 };
	bool map = question->what == PARSER_PERF_MAP;
	int r = map ? 0 : elf_image_open(image, bytes, &elf);

	if (r)
		return r;
	answer->what = map ? PARSER_NAMES : question->what;
	switch (question->what) {
	case PARSER_TABLE:
		table_answer(&elf, shared, &answer->table);
		return 0;
	case PARSER_NAMES:
		return names_answer(question, &elf, image, bytes, &shared->names, &answer->names);
	case PARSER_PERF_MAP:
		return names_answer(question, NULL, image, bytes, &shared->names, &answer->names);
	default:
		return -EINVAL;
	}
}

int parser_read_file(const struct parser_question *question, int fd, union parser_shared *shared,
		     struct parser_answer *answer)
{
	struct stat stat;
	void *image;
	size_t bytes;
	int r;

	if (fstat(fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode) || stat.st_size <= 0)
		return -ENOEXEC;
	if ((uint64_t)stat.st_size > PARSER_FILE_BYTES_MAX)
		return -EFBIG;
	bytes = (size_t)stat.st_size;
	image = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED)
		return -errno;
	r = parser_read(question, image, bytes, shared, answer);
	munmap(image, bytes);
	return r;
}

/* --- the helper ------------------------------------------------------------------------------ */

static int question_answer(struct helper_work *work, void *question, void *answer)
{
	return parser_read_file(question, work->fd, work->shared, answer);
}

static bool answer_check(void *answer)
{
	return parsed_check(answer);
}

const struct helper_kind parser_kind = {
	.name = "parser",
	.worker = "parser-reader",
	.role = SANDBOX_PARSER,
	.niceness = NICENESS,
	.question_bytes = sizeof(struct parser_question),
	.answer_bytes = sizeof(struct parser_answer),
	.shared_bytes = sizeof(union parser_shared),
	.takes_fd = true,
	.answer = question_answer,
	.check = answer_check,
};
_Static_assert(sizeof(struct parser_answer) <= HELPER_BYTES_MAX,
	       "an answer is too long to be told");
